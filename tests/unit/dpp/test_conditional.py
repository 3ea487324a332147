"""Conditional variances."""

from __future__ import annotations

import numpy as np
import pytest

from covey.dpp.conditional import given
from covey.dpp.kernel import adapt


def kernel(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T


def schur(L, items):
    rest = L - L[:, items] @ np.linalg.solve(L[np.ix_(items, items)], L[items])
    return rest.diagonal()


@pytest.mark.parametrize("size", [1, 5, 40])  # above and below the size where SciPy takes over
def test_variances_are_schur_complements(size):
    L = kernel(60)
    items = np.random.default_rng(1).permutation(60)[:size]
    found = given(adapt(L), items).variances(np.arange(60))
    np.testing.assert_allclose(found, schur(L, items), atol=1e-8)
    assert (found[items] == 0.0).all()


@pytest.mark.parametrize("split", [1, 3, 6])
def test_items_may_be_given_in_two_parts(split):
    L = kernel(12)
    items = np.array([7, 2, 9, 0, 4, 11])
    part = given(adapt(L), items[:split]).also(items[split:])
    np.testing.assert_allclose(
        part.variances(np.arange(12)), given(adapt(L), items).variances(np.arange(12)), atol=1e-9
    )
    assert part.items.tolist() == items.tolist()


def test_given_nothing_more_is_the_same():
    base = given(adapt(kernel(4)), np.array([1]))
    assert base.also(np.array([], dtype=np.intp)) is base


def test_a_singular_set_is_conditioned_on_as_well_as_can_be():
    found = given(adapt(np.ones((3, 3))), np.array([0, 1])).variances(np.arange(3))
    np.testing.assert_allclose(found, 0.0, atol=1e-5)


def test_items_of_very_different_scale():
    scale = np.diag(10.0 ** np.array([6.0, -6.0, 0.0, 3.0]))
    L = kernel(4)
    found = given(adapt(scale @ L @ scale), np.array([0, 1])).variances(np.array([2, 3]))
    np.testing.assert_allclose(
        found, (scale.diagonal() ** 2 * schur(L, np.array([0, 1])))[2:], rtol=1e-9
    )
