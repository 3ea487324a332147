"""Every symmetric matrix here answers alike: diagonal, block, columns, and a subset of them."""

from __future__ import annotations

import numpy as np
import pytest

from covey.covariance import Dense, Information, RandomFunction, Subset, conditional_variances
from covey.dpp.kernel import adapt
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
