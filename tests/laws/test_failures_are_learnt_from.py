"""A region where evaluations fail is left alone, and what fails at random costs next to nothing."""

import math

import numpy as np
import pytest

import covey
from covey.gp import Failures, success

SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
BRANIN = covey.Space({"x": covey.Real(-5.0, 10.0), "y": covey.Real(0.0, 15.0)})


def hill(point):
    return -((point["x"] - 0.9) ** 2) - (point["y"] - 0.5) ** 2


def branin(point):
    x, y = point["x"], point["y"]
    bend = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return -(bend**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) - 10.0


def run(f, fails, *, space=SQUARE, rounds=20, seed=0):
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
    assert len(study.history.failed) <= 30  # of 100; all but ten, if failures teach nothing
    assert most - study.best.value < 0.05


def test_if_failures_taught_nothing_all_later_trials_would_fail(monkeypatch):
    """The control."""
    monkeypatch.setattr(success, "ENOUGH", 10**9)
    monkeypatch.setattr(Failures, "lowered", lambda self, mean, at: mean)
    monkeypatch.setattr(Failures, "climbed", lambda self, mean, slope, at: (mean, slope))
    assert len(run(hill, half_plane).history.failed) > 80


def test_failures_at_random_cost_next_to_nothing():
    rng = np.random.default_rng(0)
    study = run(branin, lambda _: rng.random() < 0.2, space=BRANIN, rounds=15)
    assert len(study.history.failed) > 8
    assert -0.397887 - study.best.value < 0.1  # of a range of 300


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
    assert -0.397887 - best > 0.1


@pytest.fixture
def study():
    made = covey.Study(SQUARE, seed=0)
    batch = made.ask(6)
    made.tell(batch, [hill(trial.point) for trial in batch])
    return made


def test_without_failures_nothing_of_this_is_done(study, monkeypatch):
    """Pending, cancelled and lost trials leave every batch as it was, to the last bit."""
    monkeypatch.setattr(Failures, "among", None)  # a call would raise
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
