"""Greedy on very many items; that it is greedy is a law."""

from __future__ import annotations

import numpy as np
import pytest

from covey.dpp import greedy
from covey.dpp.kernel import adapt
from covey.errors import NumericsError
from covey.large import lazy_greedy as lazy


class Counting:
    """A kernel by blocks, which counts the entries it was asked for."""

    def __init__(self, matrix, counts=None):
        self.matrix, self.diagonal = matrix, matrix.diagonal().copy()
        self.counts = {"entries": 0} if counts is None else counts

    def columns(self, cols):
        return self.block(np.arange(len(self.matrix)), cols)

    def block(self, rows, cols):
        self.counts["entries"] += len(rows) * len(cols)
        return self.matrix[np.ix_(rows, cols)]

    def on(self, items):
        return Counting(self.matrix[np.ix_(items, items)], self.counts)


def smooth(n, length, noise=0.01):
    at = np.random.default_rng(0).random((n, 2))
    gap = ((at[:, None] - at) ** 2).sum(axis=2)
    return np.eye(n) + np.exp(-0.5 * gap / length**2) / noise


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(lazy, "_SHORT", 100)
    monkeypatch.setattr(lazy, "_BYTES", 1)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("length", [0.03, 0.2, 1.0])
def test_a_few_passes_find_what_plain_greedy_finds(length):
    kernel = Counting(smooth(2000, length))
    found = lazy.lazy_picks(adapt(kernel), 20)
    assert found.picks.tolist() == greedy.plain_picks(adapt(kernel.matrix), 20).picks.tolist()
    assert found.passes <= 10


@pytest.mark.usefixtures("short")
def test_where_few_items_stand_out_no_pass_is_needed():
    matrix = np.eye(2000)
    matrix[np.arange(0, 2000, 50), np.arange(0, 2000, 50)] = 2.0
    kernel = Counting(matrix)
    found = lazy.lazy_picks(adapt(kernel), 30)
    assert found.picks.tolist() == list(range(0, 1500, 50))
    assert found.passes == 0
    assert kernel.counts["entries"] < 2000 * 3


def test_a_short_list_of_all_items_needs_no_pass():
    assert lazy.lazy_picks(adapt(smooth(300, 0.1)), 12).passes == 0


@pytest.mark.usefixtures("short")
def test_a_rank_below_k_is_named():
    root = np.random.default_rng(0).normal(size=(400, 5))
    with pytest.raises(NumericsError, match="kernel of rank 5; use k <= 5"):
        lazy.lazy_picks(adapt(root @ root.T), 8)
    with pytest.raises(NumericsError, match="zero everywhere"):
        lazy.lazy_picks(adapt(np.zeros((400, 400))), 1)


@pytest.mark.usefixtures("short")
def test_all_items_can_be_chosen():
    found = lazy.lazy_picks(adapt(smooth(150, 0.3)), 150)
    assert sorted(found.picks.tolist()) == list(range(150))
