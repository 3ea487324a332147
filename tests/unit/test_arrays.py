"""Linear algebra, the largest of many numbers, and loops over chunks."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_triangular
from scipy.stats import norm

import covey
from covey import arrays
from covey.arrays import (
    _BLOCK,
    Whitening,
    cholesky,
    close_to,
    each_chunk,
    largest,
    log_normal_cdf,
    reporting_chunks,
    solve_lower,
    spread,
)
from covey.errors import MissingExtraError, NumericsError


def test_cholesky_adds_jitter_only_where_it_must():
    good = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert np.array_equal(cholesky(good), np.linalg.cholesky(good))
    singular = np.ones((3, 3))
    factor = cholesky(singular)
    np.testing.assert_allclose(factor @ factor.T, singular, atol=1e-5)


def test_cholesky_refuses_what_jitter_cannot_mend():
    with pytest.raises(NumericsError, match="2 x 2 covariance is not positive definite"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_solve_lower_both_ways_and_empty():
    factor = np.array([[2.0, 0.0], [1.0, 3.0]])
    right = np.array([2.0, 7.0])
    np.testing.assert_allclose(factor @ solve_lower(factor, right), right)
    np.testing.assert_allclose(factor.T @ solve_lower(factor, right, transposed=True), right)
    assert solve_lower(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)
    assert solve_lower(factor, np.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("order", ["C", "F", "slice"])
def test_solve_lower_agrees_with_scipy_in_every_layout(order, transposed):
    rng = np.random.default_rng(0)
    whole = np.tril(rng.standard_normal((7, 7))) + 7.0 * np.eye(7)
    factor = whole[:5, :5] if order == "slice" else np.array(whole, order=order)
    right = rng.standard_normal((len(factor), 3))
    expected = solve_triangular(factor, right, lower=True, trans="T" if transposed else "N")
    np.testing.assert_allclose(solve_lower(factor, right, transposed=transposed), expected)


def test_solve_lower_refuses_a_factor_with_a_zero_on_its_diagonal():
    with pytest.raises(NumericsError, match="zero at place 2"):
        solve_lower(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))


def test_log_normal_cdf_far_below():
    np.testing.assert_allclose(log_normal_cdf(np.array([-1.0, 2.0])), norm.logcdf([-1.0, 2.0]))
    assert log_normal_cdf(np.array([-100.0]))[0] == pytest.approx(-5005.524, abs=1e-2)


# The inverse of a Cholesky factor


@pytest.mark.parametrize("size", [0, 1, 17, _BLOCK - 1, _BLOCK, _BLOCK + 1, 2 * _BLOCK, 100])
def test_whitening_undoes_the_factor(size):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(size, size))
    factor = np.linalg.cholesky(root @ root.T + np.eye(size))
    right = rng.normal(size=(size, 3))
    white = Whitening(factor, right)(right)
    assert white.shape == (size, 3)
    np.testing.assert_allclose(factor @ white, right, atol=1e-12)


def test_rows_of_very_different_scale():
    factor = np.diag([1e-8, 1e8, 1.0]) @ np.array([[1.0, 0, 0], [3.0, 2.0, 0], [5.0, 1.0, 1.0]])
    white = Whitening(factor, factor)(factor)
    np.testing.assert_allclose(white, np.eye(3), atol=1e-12)


def test_an_ill_conditioned_factor_loses_no_more_than_substitution():
    at = np.linspace(0.0, 1.0, 40)
    L = 1e-6 * np.eye(40) + np.exp(-0.5 * (np.subtract.outer(at, at) / 0.3) ** 2)
    factor = np.linalg.cholesky(L)
    white = Whitening(factor, L)(L)
    np.testing.assert_allclose(L.diagonal() - (white**2).sum(axis=0), 0.0, atol=1e-13)


# Few of very many items


values = st.lists(st.integers(0, 5), min_size=1, max_size=20).map(lambda v: np.array(v, float))


@given(values, st.integers(1, 20))
def test_the_largest_are_the_largest_and_the_first_of_equals(values, count):
    order = np.lexsort([np.arange(len(values)), -values])
    assert sorted(largest(values, count).tolist()) == sorted(order[:count].tolist())


def test_rounding_does_not_decide_who_is_on_the_list():
    assert largest(np.array([1.0, 1.0, 1.0 + 1e-12]), 1).tolist() == [0]


def test_what_is_out_of_the_race_is_not_on_the_list():
    assert largest(np.array([-np.inf, 2.0, -np.inf]), 2).tolist() == [1]


@pytest.mark.parametrize("count", [1, 4, 10, 100])
def test_a_spread_list_holds_the_largest_and_reaches_everywhere(count):
    values = np.zeros(50)
    values[[7, 23]] = 1.0
    found = spread(values, count)
    assert found.tolist() == sorted(set(found.tolist()))
    assert 7 in found
    assert len(found) <= max(count, 1)
    if count >= 4:
        assert {0, 23, 49} <= set(found.tolist())


# Loops over chunks, in threads


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("per_row", [1, 2**11, 2**20])
def test_chunks_cover_every_row_once_and_in_order(n, per_row):
    rows = np.arange(float(n))
    assert np.array_equal(np.concatenate([[], *each_chunk(rows.__getitem__, rows, per_row)]), rows)


def test_a_chunk_is_small_where_a_row_takes_much():
    rows = np.zeros(10_000)
    sizes = [part.stop - part.start for part in each_chunk(lambda part: part, rows, 2**20)]
    assert max(sizes) == 64
    assert len(list(each_chunk(lambda part: part, rows, 1))) == 1


def test_the_number_of_cores_changes_nothing(monkeypatch):
    rows = np.random.default_rng(0).random((500, 3))

    def work(part):
        return np.sin(rows[part]).sum()

    made = []
    for cores in (1, 3):
        monkeypatch.setattr(arrays, "cores", lambda cores=cores: cores)
        made.append(list(each_chunk(work, rows, 2**20)))
    assert made[0] == made[1]


def test_chunks_are_worked_on_side_by_side(monkeypatch):
    monkeypatch.setattr(arrays, "cores", lambda: 2)
    meet = threading.Barrier(2, timeout=60.0)  # broken unless two threads are inside at once
    rows = np.zeros(128)
    assert len(list(each_chunk(lambda part: meet.wait(), rows, 2**20))) == 2


def test_a_failure_is_raised_and_stops_the_rest(monkeypatch):
    monkeypatch.setattr(arrays, "cores", lambda: 2)
    done = []

    def work(part):
        if part.start == 64:
            raise KeyboardInterrupt
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        list(each_chunk(work, np.zeros(64 * 1000), 2**20))
    assert len(done) < 20


def test_progress_is_reported_to_whoever_asked():
    rows, seen = np.zeros(1000), []
    with reporting_chunks(seen.append):
        list(each_chunk(lambda part: None, rows, 2**20))
    assert sum(seen) == 1000
    assert len(seen) == 16
    list(each_chunk(lambda part: None, rows, 2**20))
    assert sum(seen) == 1000


def close_by_hand(at, points, least):
    return (np.abs(at[:, None] - points) < least).all(axis=2).any(axis=1)


@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([0, 1, 16, 17, 60]),
    width=st.integers(1, 5),
    steps=st.sampled_from([0, 3, 100]),
)
def test_rows_close_to_points_are_those_found_by_hand(seed, count, width, steps):
    """Few points go one by one, many by a tree; steps of a hundredth put rows on the very edge."""
    rng = np.random.default_rng(seed)
    at, points = rng.random((80, width)), rng.random((count, width))
    if steps:
        at, points = np.round(at * steps) / steps, np.round(points * steps) / steps
    least = rng.choice([0.01, 0.1, 0.3], size=width)
    assert np.array_equal(close_to(at, points, least), close_by_hand(at, points, least))


def test_nothing_is_closer_than_nought():
    at = np.zeros((3, 2))
    assert not close_to(at, at, np.array([0.0, 1.0])).any()
    assert not close_to(at[:0], at, np.array([1.0, 1.0])).any()


def test_a_tree_beside_rows_by_the_ten_thousand(monkeypatch):
    """More rows than a chunk holds."""
    monkeypatch.setattr(arrays, "CACHE", 64)
    rng = np.random.default_rng(0)
    at, points, least = rng.random((500, 2)), rng.random((40, 2)), np.array([0.02, 0.05])
    found = close_to(at, points, least)
    assert 0 < found.sum() < 500
    assert np.array_equal(found, close_by_hand(at, points, least))


# Threads, and packages that only torch needs


def test_the_libraries_of_arithmetic_are_looked_for_once(monkeypatch):
    made = []

    class Counting(threadpoolctl.ThreadpoolController):
        def __init__(self):
            made.append(self)
            super().__init__()

    def threads():
        return {one["num_threads"] for one in made[0].info() if one["user_api"] == "blas"}

    arrays._libraries.cache_clear()
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Counting)
        for _ in range(3):
            with arrays.one_thread():
                assert threads() == {1}
            assert threads() == {2}
    assert len(made) == 1
    arrays._libraries.cache_clear()


def test_a_study_needs_no_package_of_the_extra_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    for _ in range(2):
        batch = study.ask(3)
        study.tell(batch, [trial.point["x"] for trial in batch])
    assert study.predict([{"x": 0.5}])[0] is not None
    with pytest.raises(MissingExtraError, match=r"array-api-compat.*covey\[torch\]"):
        arrays.namespace(object())
