"""A region where evaluations fail is left alone, and what fails at random costs next to nothing."""

import math
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import covey
from covey import Pool
from covey.gp import Success, success

SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
BRANIN = covey.Space({"x": covey.Real(-5.0, 10.0), "y": covey.Real(0.0, 15.0)})


def hill(point):
    return -((point["x"] - 0.9) ** 2) - (point["y"] - 0.5) ** 2


def branin(point):
    x, y = point["x"], point["y"]
    bend = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return -(bend**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) - 10.0


def run(f, fails, *, space=SQUARE, rounds=12, seed=0):
    study = covey.Study(space, seed=seed)
    for _ in range(rounds):
        for trial in study.ask(5):
            if fails(trial.point):
                study.fail(trial)
            else:
                study.tell(trial, f(trial.point))
    return study


def half_plane(point):
    return point["x"] > 0.7


def disc(point):
    return hill(point) > -0.0225


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("fails", "most"), [(half_plane, -0.04), (disc, -0.0225)])
def test_a_failing_region_that_looks_good_takes_few_trials(fails, most, seed):
    study = run(hill, fails, seed=seed)
    assert len(study.history.failed) <= 20  # of 60; all but ten, if failures teach nothing
    assert most - study.best.value < 0.05


def test_if_failures_taught_nothing_all_later_trials_would_fail(monkeypatch):
    """The control."""
    monkeypatch.setattr(success, "ENOUGH", 10**9)
    assert len(run(hill, half_plane).history.failed) > 45


def test_failures_at_random_cost_next_to_nothing():
    rng = np.random.default_rng(0)
    study = run(branin, lambda _: rng.random() < 0.2, space=BRANIN, rounds=15)
    assert len(study.history.failed) > 8
    assert -0.397887 - study.best.value < 0.005  # of a range of 300


def test_taken_as_told_such_failures_would_cost_more():
    """The control: the worst value told for each, as people do."""
    rng = np.random.default_rng(0)
    study = covey.Study(BRANIN, seed=0)
    best = -math.inf
    for _ in range(15):
        for trial in study.ask(5):
            told = [t.value for t in study.history.told]
            if told and rng.random() < 0.2:
                study.tell(trial, min(told))
            else:
                best = max(best, branin(trial.point))
                study.tell(trial, branin(trial.point))
    assert -0.397887 - best > 0.01


def rising(point):
    x, y = point["x"], point["y"]
    return -((x - 0.9) ** 2) - 0.3 * (y - 0.3 - 0.2 * math.sin(5.0 * x)) ** 2


def failing_share(seed, *, strategy="auto", space=SQUARE, batch=8):
    """Of batches three to six, where half of the space fails and the objective rises to it."""
    study, late = covey.Study(space, strategy=strategy, seed=seed), []
    for i in range(6):
        for trial in study.ask(batch):
            fails = trial.point["x"] > 0.5
            late += [fails] * (i >= 2)
            if fails:
                study.fail(trial)
            else:
                study.tell(trial, rising(trial.point))
    return float(np.mean(late))


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_a_border_is_learnt_where_half_of_the_space_fails(seed):
    assert failing_share(seed) <= 0.2


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_without_a_model_of_it_more_would_fail(seed, monkeypatch):
    """The control."""
    monkeypatch.setattr(success, "ENOUGH", 10**9)
    assert failing_share(seed) > 0.25


def lattice(side):
    axis = np.linspace(0.0, 1.0, side)
    return covey.Pool([{"x": x, "y": y} for x in axis for y in axis])


@pytest.mark.parametrize("strategy", ["bucb", "est-dpp-sample", "thompson", "lp-ucb", "ucb-pe"])
def test_every_strategy_learns_a_border(strategy):
    assert failing_share(3, strategy=strategy, space=lattice(25)) <= 0.3


def test_a_border_is_learnt_in_a_pool():
    assert failing_share(1, space=lattice(61)) <= 0.2


def option_share(seed):
    """Of batches four to eight, the share with the option that always fails."""
    options = covey.Choice(["a", "b", "c", "broken"])
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0), "by": options}), seed=seed)
    late = []
    for i in range(8):
        for trial in study.ask(6):
            fails = trial.point["by"] == "broken"
            late += [fails] * (i >= 3)
            if fails:
                study.fail(trial)
            else:
                study.tell(
                    trial, -((trial.point["x"] - 0.3) ** 2) - 0.1 * (trial.point["by"] == "a")
                )
    return float(np.mean(late))


def test_an_option_that_always_fails_is_not_given_turn_after_turn(monkeypatch):
    assert option_share(0) <= 0.1
    monkeypatch.setattr(success, "ENOUGH", 10**9)
    assert option_share(0) > 0.1  # the control: without a model it is tried again and again


def test_two_failures_are_too_few_for_a_model(study, monkeypatch):
    monkeypatch.setattr(Success, "among", None)  # a call would raise
    study.fail(study.ask(2))
    assert study.ask(2)
    assert study.predict([{"x": 0.8, "y": 0.5}]).success is None


def test_what_is_lost_or_cancelled_is_no_failure(study):
    one, two, three, four = study.ask(4)
    study.fail([one, two])
    study.cancel(three)
    study.note(covey.history.Lost((four.id,), "the machine"))
    assert study.predict([{"x": 0.8, "y": 0.5}]).success is None


def test_the_probability_of_success_comes_beside_the_prediction(study):
    study.enqueue([{"x": 0.9, "y": 0.2 * i} for i in range(5)])
    study.fail(range(6, 11))
    points = [{"x": 0.95, "y": 0.5}, {"x": 0.05, "y": 0.5}]
    mean, std = found = study.predict(points)
    assert found.mean is mean
    assert found.std is std
    assert found.success[0] < 0.5 < found.success[1]


def test_the_same_log_gives_the_same_batch(study, tmp_path):
    study.enqueue([{"x": 0.9, "y": 0.2 * i} for i in range(5)])
    study.fail(range(6, 11))
    twin = covey.Study(SQUARE, seed=0)
    for event in study.history.events:
        twin.note(event)
    twin.predict([{"x": 0.1, "y": 0.1}])
    assert [t.point for t in study.ask(4)] == [t.point for t in twin.ask(4)]


@pytest.fixture
def study():
    made = covey.Study(SQUARE, seed=0)
    batch = made.ask(6)
    made.tell(batch, [hill(trial.point) for trial in batch])
    return made


def test_without_failures_nothing_of_this_is_done(study, monkeypatch):
    """Pending, cancelled and lost trials leave every batch as it was, to the last bit."""
    monkeypatch.setattr(Success, "among", None)  # a call would raise
    study.ask(1)
    study.cancel(study.ask(1))
    (lost,) = study.ask(1)
    study.note(covey.history.Lost((lost.id,), "the machine"))
    assert study.ask(2)


def test_a_value_that_comes_late_takes_the_place_of_the_failure(study):
    twin = covey.Study(SQUARE, seed=0)
    batch = twin.ask(6)
    twin.tell(batch, [hill(trial.point) for trial in batch])
    for one in (study, twin):
        one.enqueue([{"x": 0.8, "y": 0.5}])
    study.fail(6)
    study.tell(6, -0.01)
    twin.tell(6, -0.01)
    assert [t.point for t in study.ask(4)] == [t.point for t in twin.ask(4)]


def test_what_is_expected_and_fitted_knows_only_what_was_told(study):
    points = [{"x": 0.8, "y": 0.5}, {"x": 0.2, "y": 0.9}]
    study.enqueue(points[:1])
    before = study.predict(points), study.recommend()
    study.fail(6)
    after = study.predict(points), study.recommend()
    assert np.array_equal(before[0].mean, after[0].mean)
    assert np.array_equal(before[0].std, after[0].std)
    assert before[1] == after[1]
    twin = covey.Study(SQUARE, seed=0)
    batch = twin.ask(6)
    twin.tell(batch, [hill(trial.point) for trial in batch])
    study.ask(2)
    twin.ask(2)
    assert study.history.models == twin.history.models


def test_the_code_of_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "failures.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    good, bad = names["found"].success
    assert bad < 0.5 < good


def region_size(monkeypatch, chance: float, strategy: str) -> int:
    """Size of the relevance region where every point succeeds with the same probability."""
    learnt = success.Success.among

    def alike(*given):
        return replace(learnt(*given), where=0.0, chance=chance)

    monkeypatch.setattr(success.Success, "among", alike)
    study = covey.Study(SQUARE, seed=0, strategy=strategy)
    batch = study.ask(20)
    study.tell(batch[:14], [hill(trial.point) for trial in batch[:14]])
    study.fail(batch[14:])
    study.ask(6)
    return study.diagnostics.region


@pytest.mark.parametrize("strategy", ["ucb-dpp-sample", "est-dpp-sample"])
def test_where_all_may_fail_alike_the_region_is_as_without_failures(monkeypatch, strategy):
    sizes = {chance: region_size(monkeypatch, chance, strategy) for chance in (1.0, 0.8, 0.5)}
    assert len(set(sizes.values())) == 1


@pytest.mark.parametrize("strategy", ["ucb-dpp-max", "ucb-dpp-sample", "est-dpp-sample", "ucb-pe"])
def test_in_a_pool_where_few_succeed_the_region_is_not_filled_with_failures(strategy):
    rows = [
        {"x": float(x), "kind": kind} for x, kind in product(np.linspace(0.0, 1.0, 60), "abcde")
    ]
    study = covey.Study(Pool(rows), seed=0, strategy=strategy)
    failed = []
    for _ in range(5):
        batch = study.ask(8)
        bad = [trial for trial in batch if trial.point["kind"] != "a"]
        good = [trial for trial in batch if trial.point["kind"] == "a"]
        if bad:
            study.fail(bad)
        if good:
            study.tell(good, [trial.point["x"] for trial in good])
        failed.append(len(bad))
    assert sum(failed[3:]) <= 4
