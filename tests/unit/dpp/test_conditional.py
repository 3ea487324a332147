"""Conditional variances."""

from __future__ import annotations

import numpy as np
import pytest

from covey import arrays as chunks
from covey.arrays import cholesky
from covey.covariance import Conditional, entries_each
from covey.dpp.kernel import adapt


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
    monkeypatch.setattr(chunks, "CACHE", 1)
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
