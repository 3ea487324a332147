"""The start of a Markov chain; that its bound holds is a law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey.dpp import greedy
from covey.dpp import greedy as start
from covey.dpp.greedy import greedy_start
from covey.dpp.kernel import adapt


def test_the_start_is_the_greedy_maximum():
    assert greedy_start(adapt(np.diag([1.0, 3.0, 2.0])), 2).items.tolist() == [1, 2]


def test_the_bound_is_exact_where_all_sets_are_alike():
    start = greedy_start(adapt(5.0 * np.eye(9)), 3)
    assert start.log_inverse_mass == pytest.approx(math.log(84.0))


def test_the_guarantee_of_greedy_takes_over_where_the_trace_says_little():
    L = np.diag([1e9] + [1.0] * 8)
    L[1:, 1:] += 1e-3
    start = greedy_start(adapt(L), 3)
    assert start.log_inverse_mass == pytest.approx(math.log(84.0) + 2 * math.log(6.0))


class ByBlock:
    def __init__(self, matrix):
        self.matrix, self.diagonal = matrix, matrix.diagonal()

    def columns(self, cols):
        return self.matrix[:, cols]

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]


def test_of_a_large_kernel_only_a_few_items_are_looked_at(monkeypatch):
    monkeypatch.setattr(greedy, "LARGE", 50)
    monkeypatch.setattr(start, "_FEW", 10)
    diagonal = np.ones(100)
    diagonal[[13, 60]] = 3.0
    found = greedy_start(adapt(ByBlock(np.diag(diagonal))), 2)
    assert found.items.tolist() == [13, 60]
    # Maclaurin: log C(100, 2) + 2 log 1.04 - 2 log 3.
    assert found.log_inverse_mass == pytest.approx(math.log(4950 * 1.04**2 / 9.0))


def test_few_items_of_too_low_a_rank_are_not_enough(monkeypatch):
    monkeypatch.setattr(greedy, "LARGE", 50)
    monkeypatch.setattr(start, "_FEW", 8)
    diagonal = np.zeros(100)
    diagonal[[5, 6, 7]] = 1.0, 2.0, 3.0
    matrix = np.diag(diagonal)
    matrix[5:8, 5:8] += 1e-3
    matrix[0, 0] = 9.0
    found = greedy_start(adapt(ByBlock(matrix)), 4)
    assert sorted(found.items.tolist()) == [0, 5, 6, 7]


def test_the_guarantee_is_not_claimed_for_a_start_among_few(monkeypatch):
    L = np.diag([1e9] + [1.0] * 8)
    L[1:, 1:] += 1e-3
    whole = greedy_start(adapt(ByBlock(L)), 3).log_inverse_mass
    monkeypatch.setattr(greedy, "LARGE", 1)
    assert greedy_start(adapt(ByBlock(L)), 3).log_inverse_mass > whole
