"""The partial Cholesky factor."""

from __future__ import annotations

import numpy as np

from covey.arrays import unit
from covey.covariance import PivotedCholesky


def test_the_residual_is_the_conditional_variance():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    L = root @ root.T
    factor, given = PivotedCholesky(L.diagonal(), 3), [4, 0, 2]
    for pivot in given:
        factor.grow(pivot, L[:, pivot])
    schur = L - L[:, given] @ np.linalg.solve(L[np.ix_(given, given)], L[given])
    np.testing.assert_allclose(factor.residual, schur.diagonal(), atol=1e-12)
    np.testing.assert_allclose(L - factor.rows.T @ factor.rows, schur, atol=1e-12)
    assert (factor.residual[given] <= 0.0).all()  # a pivot is never chosen again
    assert factor.rank == 3


def test_the_floor_separates_rounding_from_rank():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(40, 5)) * 10.0 ** rng.uniform(-4, 4, size=(40, 1))
    L = root @ root.T
    factor = PivotedCholesky(L.diagonal(), 5)
    for _ in range(5):
        pivot = int(np.argmax(factor.residual))
        assert factor.residual[pivot] > factor.floor[pivot]
        factor.grow(pivot, L[:, pivot])
    assert (factor.residual <= factor.floor).all()


def test_the_given_diagonal_is_left_alone():
    diagonal = np.array([2.0, 2.0])
    PivotedCholesky(diagonal, 1).grow(0, np.array([2.0, 1.0]))
    assert diagonal.tolist() == [2.0, 2.0]


def test_known_rows_are_taken_over_part_by_part():
    root = np.random.default_rng(2).normal(size=(7, 7))
    L = root @ root.T
    grown, taken = PivotedCholesky(L.diagonal(), 3), PivotedCholesky(L.diagonal(), 3)
    for pivot in (5, 1):
        grown.grow(pivot, L[:, pivot])
    parts = (slice(0, 4), slice(4, 7))
    taken.take(np.array([5, 1]), [(part, grown.rows[:, part]) for part in parts])
    for factor in (grown, taken):
        factor.grow(3, L[:, 3])
    np.testing.assert_allclose(taken.rows, grown.rows, rtol=1e-12)
    np.testing.assert_allclose(taken.residual, grown.residual, atol=1e-12)


def test_the_largest_is_the_first_above_rounding():
    factor = PivotedCholesky(np.array([1.0, 3.0, 3.0 + 1e-12, 0.0]), 3)
    assert factor.largest() == (3.0 + 1e-12, 1)
    for pivot in (1, 2, 0):
        factor.grow(pivot, np.eye(4)[pivot] * factor.residual[pivot])
    assert factor.largest()[0] == -np.inf


def test_rounding_is_of_the_precision_of_the_array():
    assert unit(np.zeros(1), 2) == 160 * np.finfo(np.float64).eps
    assert unit(np.zeros(1, dtype=np.float32), 0) == 128 * np.finfo(np.float32).eps
