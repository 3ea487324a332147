"""The eigendecomposition method; its law is checked in tests/laws."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from covey import dpp
from covey.dpp import spectral
from covey.dpp.kernel import adapt
from covey.dpp.spectral import draw_items, draw_subset, log_binomial, log_elementary
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


# Elementary symmetric polynomials


@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=7))
def test_the_table_holds_every_leading_polynomial(values):
    table = log_elementary(np.array(values), len(values))
    for j in range(len(values) + 1):
        for m in range(len(values) + 1):
            direct = math.fsum(math.prod(c) for c in combinations(values[:m], j))
            assert math.exp(table[j, m]) == pytest.approx(direct, rel=1e-9, abs=1e-300)


def test_large_k_does_not_overflow():
    table = log_elementary(np.full(2000, 1e6), 1000)
    exact = log_binomial(2000, 1000) + 1000 * math.log(1e6)
    assert table[-1, -1] == pytest.approx(exact, rel=1e-10)


def test_a_polynomial_of_too_high_degree_is_zero():
    assert log_elementary(np.array([1.0, 0.0, 2.0]), 3)[3, 3] == -np.inf


def test_subsets_are_drawn_by_their_product():
    values = np.array([3.0, 0.0, 1.0, 0.5, 2.0])
    table, rng = log_elementary(values, 2), np.random.default_rng(0)
    subsets = [s for s in combinations(range(5), 2) if 1 not in s]
    weights = np.array([values[list(s)].prod() for s in subsets])
    drawn = [tuple(draw_subset(table, 2, rng).tolist()) for _ in range(4000)]
    seen = [drawn.count(s) for s in subsets]
    assert sum(seen) == 4000
    assert chisquare(seen, 4000 * weights / weights.sum()).pvalue > 1e-3
    assert chisquare(seen, np.full(6, 4000 / 6)).pvalue < 1e-3  # the check has power


def test_all_of_the_positive_values_are_forced():
    table = log_elementary(np.array([1e-9, 0.0, 1e9]), 2)
    assert draw_subset(table, 2, np.random.default_rng(0)).tolist() == [0, 2]


def test_no_picks_from_no_values():
    assert draw_subset(log_elementary(np.zeros(0), 0), 0, np.random.default_rng(0)).tolist() == []


def test_log_binomial():
    assert log_binomial(50, 6) == pytest.approx(math.log(math.comb(50, 6)))
    assert log_binomial(5, 0) == log_binomial(5, 5) == pytest.approx(0.0, abs=1e-12)


# Projection DPPs


def basis(seed, n, k):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, k)))[0]


def test_sets_are_drawn_by_their_squared_minor():
    columns, rng = basis(0, 6, 3), np.random.default_rng(0)
    subsets = list(combinations(range(6), 3))
    law = np.array([np.linalg.det(columns[list(s)]) ** 2 for s in subsets])
    assert np.isclose(law.sum(), 1.0)  # Cauchy-Binet
    drawn = [tuple(sorted(spectral.draw_projection(columns, rng).tolist())) for _ in range(4000)]
    keep = law * 4000 > 5.0
    seen = np.array([drawn.count(s) for s in subsets])
    cells = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(law[keep], law[~keep].sum()) * 4000
    assert chisquare(cells[expected > 0], expected[expected > 0]).pvalue > 1e-3
    assert chisquare(seen, np.full(20, 200.0)).pvalue < 1e-3  # the check has power


def test_the_whole_space_gives_all_items():
    drawn = spectral.draw_projection(basis(1, 30, 30), np.random.default_rng(0))
    assert sorted(drawn.tolist()) == list(range(30))


def test_coordinate_vectors_give_their_items():
    drawn = spectral.draw_projection(np.eye(9)[:, [2, 5]], np.random.default_rng(0))
    assert sorted(drawn.tolist()) == [2, 5]


def test_an_empty_basis_gives_nothing():
    assert spectral.draw_projection(np.zeros((4, 0)), np.random.default_rng(0)).tolist() == []


# Weighted draws


weights = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-3)


@given(weights, st.floats(0.0, 1.0))
def test_an_item_of_no_weight_is_never_drawn(weights, uniform):
    cumulative = np.cumsum(weights)
    (item,) = draw_items(cumulative, np.array([uniform]))
    assert weights[item] > 0.0


def test_shares_are_the_weights():
    uniforms = (np.arange(1000) + 0.5) / 1000.0
    counts = np.bincount(draw_items(np.cumsum([1.0, 0.0, 7.0, 2.0]), uniforms), minlength=4)
    assert counts.tolist() == [100, 0, 700, 200]
