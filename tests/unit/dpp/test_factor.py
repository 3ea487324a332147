"""The partial Cholesky factor."""

from __future__ import annotations

import numpy as np

from covey.dpp.factor import Factor


def test_the_residual_is_the_conditional_variance():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    L = root @ root.T
    factor, given = Factor(L.diagonal(), 3), [4, 0, 2]
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
    factor = Factor(L.diagonal(), 5)
    for _ in range(5):
        pivot = int(np.argmax(factor.residual))
        assert factor.residual[pivot] > factor.floor[pivot]
        factor.grow(pivot, L[:, pivot])
    assert (factor.residual <= factor.floor).all()


def test_the_given_diagonal_is_left_alone():
    diagonal = np.array([2.0, 2.0])
    Factor(diagonal, 1).grow(0, np.array([2.0, 1.0]))
    assert diagonal.tolist() == [2.0, 2.0]
