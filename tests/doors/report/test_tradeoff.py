"""The report of a study whose outcomes have names: front, trade-off, attained hypervolume."""

import json

import numpy as np
import pytest

import covey
from covey.errors import HistoryError, StrategyError
from covey.hypervolume import hypervolume
from covey.report import card, draw_front, draw_run, page
from covey.report.format import significant

SPACE = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})


def measured(point):
    x, y = point["x"], point["y"]
    return {"yield": x, "cost": x * x + (y - 0.4) ** 2, "heat": y}


def studied(goal, batches=2, **options):
    study = covey.Study(SPACE, goal=goal, seed=0, **options)
    for _ in range(batches):
        batch = study.ask(6, strategy="sobol")
        names = study.outcomes.names
        study.tell(batch, [{n: measured(t.point)[n] for n in names} for t in batch])
    return study


@pytest.fixture(scope="module")
def study():
    worst = {"yield": 0.1, "cost": 0.9}
    made = studied({"yield": "max", "cost": "min"}, limits={"heat": ("<=", 0.8)}, worst=worst)
    made.exclude(3, "spilt")
    return made


def test_the_card_has_the_front_and_what_each_batch_attained(study):
    found = card(study).trade_off
    assert {dot.id for dot in found.front} == {trial.id for trial in study.front}
    assert [dot.excluded for dot in found.dots].count(True) == 1
    assert found.limits == ("heat <= 0.8",)
    kept = [t for t in study.history.told if not t.excluded and t.values["heat"] <= 0.8]
    values = np.array([[t.values["yield"], -t.values["cost"]] for t in kept])
    worst = np.array(found.worst) * [1.0, -1.0]
    first = values[[t.id < 6 for t in kept]]
    share = 100.0 * hypervolume(first, worst) / hypervolume(values, worst)
    assert found.attained == (("1", pytest.approx(share)), ("2", pytest.approx(100.0)))


def test_the_page_says_from_where_the_goals_count(study):
    assert "counted from yield 0.1, cost 0.9 on, as `worst` says" in page(card(study))
    learnt = studied({"yield": "max", "cost": "min"})
    found = card(learnt).trade_off
    values = np.array([[t.values["yield"], t.values["cost"]] for t in learnt.history.told])
    assert found.worst[0] < values[:, 0].min()
    assert found.worst[1] > values[:, 1].max()
    assert found.worst[0] < found.tail[0] < values[:, 0].max()
    worst, tail = ([significant(value) for value in each] for each in (found.worst, found.tail))
    text = page(card(learnt))
    assert f"from yield {worst[0]}, cost {worst[1]} on, which is learnt" in text
    assert f"worse than yield {tail[0]}, cost {tail[1]} counts a tenth" in text


def test_the_headline_counts_the_front(study):
    said = card(study).headline
    assert f"{len(study.front)} of 11 results are on the front" in said
    assert "Batch 2: 6 of 6 in" in said


def test_the_card_is_json(study):
    made = json.loads(json.dumps(card(study).to_json()))
    assert made["trade_off"]["goals"] == [["yield", "max"], ["cost", "min"]]
    assert made["standing"]["outcome"] == "yield"


def test_the_page_shows_the_trade_off(study):
    text = page(card(study))
    assert "The trade-off" in text
    assert "yield</bdi> max" in text
    assert "hypervolume" in text
    assert "Best so far: <bdi>yield</bdi>" in text
    assert page(card(study)) == text  # the same card gives the same bytes


def test_a_plain_study_has_no_trade_off():
    plain = covey.Study(SPACE, seed=0)
    batch = plain.ask(4)
    plain.tell(batch, [t.point["x"] for t in batch])
    made = card(plain)
    assert made.trade_off is None
    assert "The trade-off" not in page(made)


def test_one_goal_with_a_limit_names_the_best_that_keeps_it():
    made = card(studied({"yield": "max"}, limits={"heat": ("<=", 0.5)}))
    best = studied({"yield": "max"}, limits={"heat": ("<=", 0.5)}).best
    assert f"(trial {best.id}, which keeps heat <= 0.5)" in made.headline
    assert made.best == best.id
    assert "The limits" in page(made)


def test_one_goal_with_a_name_and_no_limits_has_no_section_about_limits():
    text = page(card(studied({"yield": "max"})))
    assert "The limits" not in text
    assert "the first goal" not in text


def test_no_result_keeps_the_limit():
    made = card(studied({"yield": "max", "cost": "min"}, limits={"heat": (">=", 2.0)}))
    assert "No result is known to keep heat >= 2" in made.headline
    assert "No result is known to keep the limits yet" in page(made)


def test_nothing_told_yet():
    made = card(covey.Study(SPACE, goal={"yield": "max", "cost": "min"}, seed=0))
    assert "Nothing has been told" in made.headline
    assert page(made)


def test_three_goals_have_a_chart_for_each_pair():
    made = card(studied({"yield": "max", "cost": "min", "heat": "min"}))
    text = page(made)
    assert "yield (max)" in text
    assert "heat (min)" in text


def test_the_picture_of_a_front(study, tmp_path):
    assert draw_front(study, tmp_path / "front.png").stat().st_size > 1000
    with pytest.raises(StrategyError, match="draw_front"):
        draw_run(study.history, study.goal, tmp_path / "run.png")
    one = studied({"yield": "max"})
    assert draw_run(one.history, one.goal, tmp_path / "run.png").exists()
    with pytest.raises(StrategyError, match="one goal"):
        draw_front(one, tmp_path / "front.png")
    with pytest.raises(HistoryError, match="no front to draw"):
        draw_front(covey.Study(SPACE, goal={"a": "max", "b": "max"}), tmp_path / "none.png")
