"""Projection DPPs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import chisquare

from covey.dpp import spectral as projection


def basis(seed, n, k):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, k)))[0]


def test_sets_are_drawn_by_their_squared_minor():
    columns, rng = basis(0, 6, 3), np.random.default_rng(0)
    subsets = list(combinations(range(6), 3))
    law = np.array([np.linalg.det(columns[list(s)]) ** 2 for s in subsets])
    assert np.isclose(law.sum(), 1.0)  # Cauchy-Binet
    drawn = [tuple(sorted(projection.draw_projection(columns, rng).tolist())) for _ in range(4000)]
    keep = law * 4000 > 5.0
    seen = np.array([drawn.count(s) for s in subsets])
    cells = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(law[keep], law[~keep].sum()) * 4000
    assert chisquare(cells[expected > 0], expected[expected > 0]).pvalue > 1e-3
    assert chisquare(seen, np.full(20, 200.0)).pvalue < 1e-3  # the check has power


def test_the_whole_space_gives_all_items():
    drawn = projection.draw_projection(basis(1, 30, 30), np.random.default_rng(0))
    assert sorted(drawn.tolist()) == list(range(30))


def test_coordinate_vectors_give_their_items():
    drawn = projection.draw_projection(np.eye(9)[:, [2, 5]], np.random.default_rng(0))
    assert sorted(drawn.tolist()) == [2, 5]


def test_an_empty_basis_gives_nothing():
    assert projection.draw_projection(np.zeros((4, 0)), np.random.default_rng(0)).tolist() == []
