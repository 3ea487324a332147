"""Runs of studies whose outcomes have names."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import covey
from covey.errors import EvaluationError, StrategyError
from covey.run.command import Command
from covey.run.task import Outcome

GOALS = {"yield": "max", "cost": "min"}
SPACE = covey.Space({"x": covey.Real(0, 1)})


def measured(point):
    return {"yield": point["x"], "cost": point["x"] ** 2, "colour": "red"}


def run(f, **options):
    with ThreadPoolExecutor(2) as workers:
        return covey.maximize(f, SPACE, batch=4, rounds=2, workers=workers, seed=0, **options)


def test_maximize_takes_goals_by_name():
    result = run(measured, goal=GOALS)
    assert math.isnan(result.value)
    assert set(result.values) == {"yield", "cost"}
    assert result.point in [trial.point for trial in result.front]
    assert len(result.front) == 8  # more of the one is less of the other
    assert result.study.history.metrics(0) == {"colour": "red"}


def test_a_limit_is_kept_by_the_result():
    result = run(
        lambda p: {"value": p["x"], "heat": p["x"]}, goal={"value": "max"},
        limits={"heat": ("<=", 0.5)},
    )  # fmt: skip
    assert result.value <= 0.5


def test_a_plain_goal_with_a_limit():
    result = run(lambda p: {"value": p["x"], "heat": p["x"]}, limits={"heat": ("<=", 0.5)})
    assert result.value <= 0.5


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (1.0, "it returned 1.0, not {'yield': number, 'cost': number}"),
        ({"yield": 1.0}, "it returned {'yield': 1.0}, without cost"),
        ({"yield": 1.0, "cost": math.nan}, "in which cost is no finite number"),
        ({"yield": None, "cost": None}, "in which yield is no finite number"),
    ],
)
def test_a_result_that_lacks_an_outcome_is_a_failure(returned, said):
    outcome = Outcome.of("a", returned, ("yield", "cost"))
    assert outcome.status == "failed"
    assert said in outcome.reason
    with pytest.raises(EvaluationError, match="yield"):
        run(lambda _: returned, goal=GOALS)


def test_an_outcome_of_an_evaluation_may_come_later():
    outcome = Outcome.of("a", {"yield": 1.0, "cost": None}, ("yield", "cost"))
    assert (outcome.status, outcome.values) == ("succeeded", {"yield": 1.0})


def test_maximize_takes_no_plain_goal_by_option():
    with pytest.raises(StrategyError, match="goal names outcomes"):
        run(measured, goal="min")


def test_a_command_prints_several_numbers():
    program = "import sys; x = float(sys.argv[1]); print({'yield': x, 'cost': x * x})"
    program = program.replace("print(", "import json; print(json.dumps(").replace("})", "}))")
    study = covey.Study(SPACE, goal=GOALS, seed=0)
    result = study.run(Command([sys.executable, "-c", program, "{x.x}"]), batch=2, rounds=1)
    assert len(result.front) == 2
