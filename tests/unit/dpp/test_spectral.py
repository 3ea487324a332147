"""The eigendecomposition method; its law is checked in tests/laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey.dpp import spectral
from covey.dpp.kernel import adapt
from covey.errors import NumericsError


def test_an_exact_sampler_says_so():
    sampler = spectral.prepare(adapt(np.diag([1.0, 2.0, 3.0, 0.0])), 2)
    assert (sampler.method, sampler.steps, sampler.error) == ("spectral", 0, 0.0)
    assert sampler.rank == 3
    assert sampler.log_normalizer == pytest.approx(math.log(11.0))


def test_columns_are_enough():
    class ByColumn:
        diagonal = np.array([1.0, 2.0, 3.0])

        def columns(self, indices):
            return np.diag(self.diagonal)[:, indices]

    assert spectral.eigenvalues(adapt(ByColumn())) == pytest.approx([1.0, 2.0, 3.0])


def test_items_of_no_weight_are_never_drawn():
    sampler = spectral.prepare(adapt(np.diag([0.0, 1.0, 0.0, 5.0, 2.0])), 3)
    rng = np.random.default_rng(0)
    assert all(sampler.draw(rng) == [1, 3, 4] for _ in range(20))


def test_a_rank_below_k_is_named():
    with pytest.raises(NumericsError, match="kernel of rank 1; use k <= 1"):
        spectral.prepare(adapt(np.ones((4, 4))), 2)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(NumericsError, match="smallest eigenvalue is -1"):
        spectral.prepare(adapt(np.array([[1.0, 2.0], [2.0, 1.0]])), 2)


def test_rounding_below_zero_is_forgiven():
    root = np.random.default_rng(0).normal(size=(20, 3))
    matrix = root @ root.T - 1e-13 * np.eye(20)
    assert spectral.prepare(adapt(matrix), 3).rank == 3
