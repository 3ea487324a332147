"""What an ask leaves out to end in time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey import Pool, Study
from covey.baselines import Random
from covey.candidates import Candidates
from covey.large import budget
from covey.large.budget import Resources, Size, TimeLimit
from covey.policies import UCB
from covey.strategies import DPP

ROWS = np.random.default_rng(0).random((20_000, 2))
EVERY = Candidates(ROWS, lambda i: [{"row": int(j)} for j in i])
SIZE = Size(len(ROWS), 30, 5)


def study(**options):
    made = Study(Pool(ROWS), seed=0, **options)
    made.add([made.space.point(i) for i in range(30)], np.sin(9.0 * ROWS[:30]).sum(axis=1))
    return made


def test_without_a_budget_nothing_is_left_out():
    limit = TimeLimit(Resources())
    rng = np.random.default_rng(0)
    assert limit.left == math.inf
    assert limit.thinned(EVERY, SIZE, rng) is EVERY
    assert rng.random() == np.random.default_rng(0).random()
    strategy = DPP(UCB())
    assert limit.apply(strategy) is strategy


def test_time_runs(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    limit = TimeLimit(Resources(seconds=3.0), began=100.0)
    assert limit.left == 3.0
    now[0] = 102.0
    assert limit.left == 1.0
    assert limit.apply(DPP(UCB())).seconds == 1.0
    assert limit.apply(Random()) == Random()
    now[0] = 110.0
    assert limit.left == 0.0


def test_as_many_are_looked_at_as_there_is_time_for(monkeypatch):
    monkeypatch.setattr(budget, "affordable", lambda size, seconds: int(1000 * seconds))
    some = TimeLimit(Resources(seconds=10.0)).thinned(EVERY, SIZE, np.random.default_rng(0))
    assert 6900 <= len(some) <= 7000
    rows = [point["row"] for point in some.points(range(len(some)))]
    assert sorted(set(rows)) == rows
    np.testing.assert_array_equal(some.at, ROWS[rows])
    assert 4500 < np.median(rows) * 0.5 < 5500  # from all over the pool


def test_never_fewer_than_make_a_choice(monkeypatch):
    monkeypatch.setattr(budget, "affordable", lambda size, seconds: 0)
    rng = np.random.default_rng(0)
    assert len(TimeLimit(Resources(seconds=1e-9)).thinned(EVERY, SIZE, rng)) == 2000
    large = Size(len(ROWS), 30, 700)
    assert len(TimeLimit(Resources(seconds=1e-9)).thinned(EVERY, large, rng)) == 7000


@pytest.mark.parametrize("strategy", ["ucb-dpp-sample", "auto"])
def test_an_ask_in_haste_says_what_it_left_out(strategy):
    made = study(strategy=strategy)
    batch = made.ask(40, time_budget=1e-6)
    told = made.diagnostics
    assert told.candidates == 2000
    assert told.left_out == 20_000 - 30 - 2000
    assert len({tuple(t.point.values()) for t in batch}) == 40


def test_a_walk_in_haste_says_so():
    made = study(strategy=DPP(UCB(), method="walk"))
    made.ask(40, time_budget=1e-6)
    told = made.diagnostics
    assert told.sampler.startswith("walk, 64 steps of ")
    assert told.sampler.endswith("for want of time")
    assert told.error > 0.01


def test_a_generous_budget_changes_nothing():
    plain, timed = study(strategy="ucb-dpp-sample"), study(strategy="ucb-dpp-sample")
    batches = plain.ask(8), timed.ask(8, time_budget=3600.0)
    assert [t.point for t in batches[0]] == [t.point for t in batches[1]]
    assert timed.diagnostics.left_out == 0


def test_a_first_batch_looks_at_some_of_a_large_pool(monkeypatch):
    monkeypatch.setattr("covey.propose.FIRST", 500)
    made = Study(Pool(ROWS), seed=0)
    batch = made.ask(20)
    assert (made.diagnostics.candidates, made.diagnostics.left_out) == (500, 19_500)
    at = made.space.encode([t.point for t in batch])
    gaps = np.square(at[:, None] - at).sum(axis=-1) + np.eye(20)
    assert np.sqrt(gaps.min()) > 0.1  # spread out all the same
    assert [t.point for t in Study(Pool(ROWS), seed=0).ask(20)] == [t.point for t in batch]
