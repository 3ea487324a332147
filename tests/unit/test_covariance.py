"""Every symmetric matrix here answers alike: diagonal, block, columns, and a subset of them."""

from __future__ import annotations

import numpy as np
import pytest

from covey import arrays
from covey.arrays import cholesky, unit
from covey.covariance import (
    Conditional,
    Dense,
    Information,
    PivotedCholesky,
    RandomFunction,
    Subset,
    check_semidefinite,
    conditional_variances,
    entries_each,
)
from covey.dpp.kernel import adapt
from covey.errors import NumericsError
from covey.kernels import KernelMatrix, Matern52

AT = np.random.default_rng(0).random((7, 2))
PRIOR = KernelMatrix(Matern52((0.3, 0.4), 2.0), AT)
EVERY = np.arange(7)
WHOLE = PRIOR.block(EVERY, EVERY)


class OnlyColumns:
    diagonal = WHOLE.diagonal()

    def columns(self, indices):
        return WHOLE[:, indices]


@pytest.fixture
def covariances(make_belief):
    gaussian = make_belief(3, n=7).after_looking_at([2]).parts[0]
    two = (PRIOR, Dense.of(WHOLE))
    return [
        PRIOR,
        Dense.of(WHOLE),
        Subset(PRIOR, EVERY[::-1]),
        gaussian,
        Information(two, (0.1, 0.4)),
        Information((gaussian,), (0.5,)),
        adapt(WHOLE),
        adapt(OnlyColumns()),
        adapt(PRIOR),
        adapt(OnlyColumns()).on(EVERY[1:]),
    ]


def test_blocks_columns_and_subsets_are_read_off_one_matrix(covariances):
    rows, cols, some = np.array([4, 0, 4]), np.array([1, 4]), np.array([5, 1, 3])
    for found in covariances:
        n = len(found.diagonal)
        matrix = found.columns(np.arange(n))
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        np.testing.assert_allclose(found.diagonal, matrix.diagonal(), rtol=1e-9)
        np.testing.assert_allclose(found.block(rows, cols), matrix[np.ix_(rows, cols)], atol=1e-12)
        part = found.on(some)
        np.testing.assert_allclose(part.diagonal, matrix.diagonal()[some], rtol=1e-9)
        np.testing.assert_allclose(
            part.columns(np.array([2, 0])), matrix[np.ix_(some, some[[2, 0]])], atol=1e-12
        )


def test_information_is_the_identity_plus_the_mean_of_its_members():
    found = Information((PRIOR, Dense.of(np.eye(7))), (0.5, 0.25))
    whole = np.eye(7) + (WHOLE / 0.5 + np.eye(7) / 0.25) / 2
    np.testing.assert_allclose(found.columns(EVERY), whole)
    np.testing.assert_allclose(found.block(EVERY, EVERY), whole)
    np.testing.assert_allclose(found.diagonal, whole.diagonal())


def test_only_a_function_can_be_drawn_elsewhere():
    assert isinstance(PRIOR, RandomFunction)
    assert not isinstance(Dense.of(WHOLE), RandomFunction)


def test_conditional_variances_are_ratios_of_determinants():
    given, one = np.array([3, 1, 5]), 6
    white = np.linalg.solve(np.linalg.cholesky(PRIOR.block(given, given)), WHOLE[given][:, [one]])
    more = np.append(given, one)
    ratio = np.linalg.det(WHOLE[np.ix_(more, more)]) / np.linalg.det(WHOLE[np.ix_(given, given)])
    np.testing.assert_allclose(conditional_variances(WHOLE.diagonal()[[one]], white), ratio)


# Conditional variances


def kernel(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T


def given(L, items):
    """Some items of a matrix to condition on."""
    return Conditional(adapt(L), items, cholesky(L[np.ix_(items, items)]))


def schur(L, items):
    rest = L - L[:, items] @ np.linalg.solve(L[np.ix_(items, items)], L[items])
    return rest.diagonal()


@pytest.mark.parametrize("size", [1, 5, 40])  # above and below the size of a block
def test_variances_are_schur_complements(size):
    L = kernel(60)
    items = np.random.default_rng(1).permutation(60)[:size]
    found = given(L, items).variances(np.arange(60))
    np.testing.assert_allclose(found, schur(L, items), atol=1e-8)
    assert (found[items] == 0.0).all()


def test_all_variances_come_in_chunks(monkeypatch):
    monkeypatch.setattr(arrays, "CACHE", 1)
    found = given(kernel(150), np.array([3, 149, 70]))
    np.testing.assert_allclose(found.all_variances(), found.variances(np.arange(150)), rtol=1e-12)


def test_chunks_are_shared_by_the_items_given():
    assert [entries_each(np.arange(m), np.zeros(1)) for m in (0, 3, 400)] == [1, 1, 100]
    torch = pytest.importorskip("torch", reason="install torch to test tensors")
    assert entries_each(np.arange(400), torch.zeros(1)) == 400


def test_given_nothing_the_variances_are_the_diagonal():
    L = kernel(4)
    found = given(L, np.array([], dtype=np.intp)).variances(np.arange(4))
    np.testing.assert_allclose(found, L.diagonal())


def test_a_singular_set_is_conditioned_on_as_well_as_can_be():
    found = given(np.ones((3, 3)), np.array([0, 1])).variances(np.arange(3))
    np.testing.assert_allclose(found, 0.0, atol=1e-5)


def test_items_of_very_different_scale():
    scale = np.diag(10.0 ** np.array([6.0, -6.0, 0.0, 3.0]))
    L = kernel(4)
    found = given(scale @ L @ scale, np.array([0, 1])).variances(np.array([2, 3]))
    np.testing.assert_allclose(
        found, (scale.diagonal() ** 2 * schur(L, np.array([0, 1])))[2:], rtol=1e-9
    )


# The partial Cholesky factor


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


# What is forgiven as rounding, and what is no kernel


def test_rounding_below_zero_is_forgiven_and_more_is_not():
    diagonal = np.array([1.0, 100.0])
    check_semidefinite(np.array([0.5, -1e-9]), diagonal)
    with pytest.raises(NumericsError, match=r"item 1 has conditional variance -0\.1"):
        check_semidefinite(np.array([0.5, -0.1]), diagonal)
    with pytest.raises(NumericsError, match="item 40"):
        check_semidefinite(np.array([0.5, -0.1]), diagonal, np.array([7, 40]))


def test_single_precision_is_forgiven_its_own_rounding():
    diagonal = np.array([1.0, 10_000.0], dtype=np.float32)
    found = np.array([0.5, -0.0161], dtype=np.float32)
    check_semidefinite(found, diagonal)
    with pytest.raises(NumericsError, match="item 1"):
        check_semidefinite(found.astype(np.float64), diagonal.astype(np.float64))
    with pytest.raises(NumericsError, match="item 1"):
        check_semidefinite(1000 * found, diagonal)
