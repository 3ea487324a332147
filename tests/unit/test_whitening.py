"""The inverse of a Cholesky factor."""

from __future__ import annotations

import numpy as np
import pytest

from covey.arrays import _BLOCK, Whitening


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
