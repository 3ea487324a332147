"""The nDCG step against all rankings and all partitions of a few points."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("numba", reason="numba is not installed: pip install numba")

from papers.kathuria2016.fastxml.ndcg import discounts, normalizers, partition, ranked
from papers.kathuria2016.fastxml.seeds import root, signs
from papers.kathuria2016.fastxml.sparse import from_scipy

DISCOUNT = discounts(8)


def labels_of(seed, points=7, labels=4):
    rng = np.random.default_rng(seed)
    return (rng.random((points, labels)) < 0.4).astype(float)


def best_ranking(weight):
    """The largest sum of weight times discount over all rankings."""
    orders = permutations(range(len(weight)))
    return max(float(weight @ DISCOUNT[list(order)]) for order in orders)


def objective(y, sign):
    """Mean nDCG of a partition when each half has its best ranking; by brute force."""
    norm = normalizers(y.sum(axis=1).astype(np.int64))
    return sum(best_ranking(norm[side] @ y[side]) for side in (sign > 0, sign < 0)) / len(y)


def split(y, seed):
    norm = normalizers(y.sum(axis=1).astype(np.int64))
    rows = np.arange(len(y))
    return partition(from_scipy(csr_matrix(y)), rows, norm, DISCOUNT, root(seed, 0))


def test_an_ideal_ranking_has_an_ndcg_of_one():
    assert normalizers(np.array([0, 1, 2]))[0] == 1.0
    assert normalizers(np.array([3]))[0] * DISCOUNT[:3].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(10))
def test_sorting_gives_the_best_ranking(seed):
    weight = np.random.default_rng(seed).integers(0, 4, 5).astype(float)
    assert weight @ ranked(weight, DISCOUNT) == pytest.approx(best_ranking(weight))
    assert weight @ ranked(-weight, DISCOUNT) <= best_ranking(weight)


@pytest.mark.parametrize("seed", range(5))
def test_alternation_never_loses_and_often_finds_the_best_partition(seed):
    y = labels_of(seed)
    best = max(objective(y, np.array(sign)) for sign in product((-1.0, 1.0), repeat=len(y)))
    began, found = [], []
    for start in range(20):
        began.append(objective(y, signs(len(y), root(start, 0))))
        found.append(objective(y, split(y, start)))
    assert np.all(np.array(found) >= np.array(began) - 1e-9)
    assert max(found) == pytest.approx(best)
    assert np.mean(began) < np.mean(found) - 0.01  # coins alone do worse


def test_points_without_labels_keep_their_coin():
    y = np.zeros((6, 3))
    y[0, 0] = 1.0
    assert split(y, 4)[1:].tolist() == signs(6, root(4, 0))[1:].tolist()


def test_the_partition_is_of_the_rows_asked_for():
    y = labels_of(3, points=12)
    rows = np.array([1, 4, 5, 8, 11])
    norm = normalizers(y.sum(axis=1).astype(np.int64))
    seed = root(9, 0)
    of_some = partition(from_scipy(csr_matrix(y)), rows, norm, DISCOUNT, seed)
    assert of_some.tolist() == split(y[rows], 9).tolist()


def test_coins_are_fair_and_differ_between_trees():
    coins = signs(10000, root(0, 0))
    assert abs(coins.sum()) < 4 * 100  # four deviations
    assert set(coins.tolist()) == {-1.0, 1.0}
    assert coins.tolist() != signs(10000, root(0, 1)).tolist()
