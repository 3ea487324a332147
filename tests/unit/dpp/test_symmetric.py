"""Elementary symmetric polynomials."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from covey.dpp.spectral import draw_subset, log_binomial, log_elementary


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
