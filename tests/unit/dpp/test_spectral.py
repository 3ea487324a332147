"""The eigendecomposition method; its law is checked in tests/laws."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from covey import dpp
from covey.dpp import spectral
from covey.dpp.kernel import adapt
from covey.dpp.spectral import log_elementary
from covey.errors import NumericsError


def test_an_exact_sampler_says_so():
    sampler = spectral.prepare_spectral(adapt(np.diag([1.0, 2.0, 3.0, 0.0])), 2)
    assert (sampler.method, sampler.steps, sampler.error) == ("spectral", 0, 0.0)
    assert sampler.rank == 3
    assert sampler.log_normalizer == pytest.approx(math.log(11.0))


def test_columns_are_enough():
    class ByColumn:
        diagonal = np.array([1.0, 2.0, 3.0])

        def columns(self, indices):
            return np.diag(self.diagonal)[:, indices]

    assert spectral.spectral_log_normalizer(adapt(ByColumn()), 2) == pytest.approx(math.log(11.0))


def test_items_of_no_weight_are_never_drawn():
    sampler = spectral.prepare_spectral(adapt(np.diag([0.0, 1.0, 0.0, 5.0, 2.0])), 3)
    rng = np.random.default_rng(0)
    assert all(sampler.draw(rng) == [1, 3, 4] for _ in range(20))


def test_a_rank_below_k_is_named():
    with pytest.raises(NumericsError, match="kernel of rank 1; use k <= 1"):
        spectral.prepare_spectral(adapt(np.ones((4, 4))), 2)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(NumericsError, match="smallest eigenvalue is -1"):
        spectral.prepare_spectral(adapt(np.array([[1.0, 2.0], [2.0, 1.0]])), 2)


def test_rounding_below_zero_is_forgiven():
    root = np.random.default_rng(0).normal(size=(20, 3))
    matrix = root @ root.T - 1e-13 * np.eye(20)
    assert spectral.prepare_spectral(adapt(matrix), 3).rank == 3


def elementary(values, k):
    """log e_k of numbers of any size, the largest taken out first."""
    return float(log_elementary(np.sort(values)[::-1], k)[-1, -1])


def test_the_normaliser_of_weights_of_any_size():
    weights = 10.0 ** np.random.default_rng(0).uniform(-150.0, 150.0, 500)
    found = dpp.log_normalizer(np.diag(weights), 250)
    assert found == pytest.approx(elementary(weights, 250), rel=1e-12)
    narrow = 10.0 ** np.random.default_rng(1).uniform(-8.0, 8.0, 300)
    found = dpp.log_normalizer(np.diag(narrow), 150)
    assert found == pytest.approx(elementary(narrow, 150), abs=1e-9)


def test_the_normaliser_of_items_weighted_by_quality():
    """Of all items it is the determinant, which is that of the correlations and the weights."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(40, 40))
    plain = root @ root.T / 40.0 + 0.1 * np.eye(40)
    quality = 10.0 ** rng.uniform(-10.0, 10.0, 40)
    weighted = quality[:, None] * plain * quality
    whole = 2.0 * np.log(quality).sum() + np.linalg.slogdet(plain)[1]
    assert dpp.log_normalizer(weighted, 40) == pytest.approx(whole, abs=1e-9)
    # And so are its draws: by far the likeliest set is that of the largest qualities.
    sampler = spectral.prepare_spectral(adapt(weighted), 39)
    assert sampler.error == 0.0
    assert sampler.draw(rng) == sorted(np.argsort(quality)[1:].tolist())


def smooth(n):
    at = np.linspace(0.0, 1.0, n)
    return np.exp(-0.5 * (np.subtract.outer(at, at) / 0.3) ** 2)


def test_eigenvalues_lost_in_rounding_are_an_error_where_they_matter():
    L, subsets = smooth(20), combinations(range(20), 4)
    total = sum(np.linalg.det(L[np.ix_(s, s)]) for s in subsets)
    assert dpp.log_normalizer(L, 4) == pytest.approx(math.log(total), abs=1e-6)
    rank = spectral.prepare_spectral(adapt(smooth(20)), 2).rank
    with pytest.raises(NumericsError, match="eigenvalues of the kernel are lost in rounding"):
        dpp.log_normalizer(smooth(20), rank)
    with pytest.raises(NumericsError, match=f"kernel of rank {rank}"):
        dpp.log_normalizer(smooth(20), rank + 1)


def test_a_sampler_says_what_it_left_out():
    rank = spectral.prepare_spectral(adapt(smooth(20)), 2).rank
    assert spectral.prepare_spectral(adapt(smooth(20)), 2).error == 0.0
    assert 1e-3 < spectral.prepare_spectral(adapt(smooth(20)), rank).error < 1.0
