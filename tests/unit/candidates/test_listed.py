import numpy as np
import pytest

import covey
from covey import candidates
from covey.candidates import ContinuousSet, Exclusions, FiniteSet, candidate_set, sobol_blocks
from covey.errors import ExhaustedError

SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def excluded(points=(), seed=0, asked=0):
    return Exclusions(points, seed, asked)


def test_finite_spaces_are_listed_and_others_searched():
    pool = covey.Pool([{"a": 1.0}, {"a": 2.0}])
    grid = covey.Space({"i": covey.Integer(0, 4), "c": covey.Choice(["u", "v"])})
    assert isinstance(candidate_set(pool, {}, excluded()), FiniteSet)
    assert isinstance(candidate_set(grid, {}, excluded()), FiniteSet)
    assert isinstance(candidate_set(SQUARE, {}, excluded()), ContinuousSet)


def test_a_pool_in_sobol_order_is_spread_out():
    pool = covey.Pool([{"a": i / 99} for i in range(100)])
    first = candidate_set(pool, {}, excluded()).in_order(4)
    assert np.ptp(first.at) > 0.5
    assert len({p["a"] for p in first.points(range(4))}) == 4


def test_a_pool_asked_for_more_than_it_holds():
    pool = covey.Pool([{"a": 1.0, "b": "u"}, {"a": 2.0, "b": "u"}, {"a": 3.0, "b": "v"}])
    left = candidate_set(pool, {"b": "u"}, excluded([pool.point(0)]))
    assert left.scattered(1, np.random.default_rng(0)).points([0]) == [{"a": 2.0, "b": "u"}]
    with pytest.raises(ExhaustedError, match=r"asked for 2 points.*before: 1"):
        left.scattered(2, np.random.default_rng(0))


def test_rows_of_a_wide_pool_stay_apart():
    """Coordinates a rounding error apart are still other rows."""
    pool = covey.Pool([{"x": v} for v in (0.0, 1.0, 2.0, 1e15)])
    left = candidate_set(pool, {}, excluded([{"x": 1.0}])).scattered(3, np.random.default_rng(0))
    assert [p["x"] for p in left.points(range(3))] == [0.0, 2.0, 1e15]


def test_sobol_order_is_that_of_the_nearest_rows(monkeypatch):
    monkeypatch.setattr(candidates, "_ROWS", 7)
    rows = np.random.default_rng(0).random((50, 2))
    places = np.arange(len(rows))
    finite = candidates.FiniteSet(
        rows, lambda i: [{"i": int(j)} for j in i], excluded(asked=3), places
    )
    targets = next(sobol_blocks(2, 0, 3))[:20]
    left = list(range(50))
    for target, point in zip(targets, finite.in_order(20).points(range(20)), strict=True):
        nearest = min(left, key=lambda i: np.square(rows[i] - target).sum())
        assert point == {"i": nearest}
        left.remove(nearest)


def test_what_was_measured_is_left_out_of_a_large_pool_and_nothing_else():
    rng = np.random.default_rng(1)
    pool = covey.Pool(rng.integers(0, 1000, (20_000, 3)) + np.arange(20_000)[:, None])
    gone = rng.choice(pool.size, 500, replace=False)
    elsewhere = [{"x0": 0.5, "x1": 0.5, "x2": 0.5}]
    points = [pool.point(int(i)) for i in gone]
    left = candidate_set(pool, {}, excluded([*points, *elsewhere]))
    np.testing.assert_array_equal(left.rows, np.delete(pool.rows, gone, axis=0))
