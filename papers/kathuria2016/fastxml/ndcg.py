"""Splitting points in two so that the labels of each half rank well: nDCG by alternation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from papers.kathuria2016.fastxml.seeds import signs
from papers.kathuria2016.fastxml.sparse import Sparse

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

GAIN = 1e-6
"""Alternation ends when the mean nDCG grows by less."""


def discounts(n: int) -> Floats:
    """What a label at rank 1, 2, ..., n counts: 1 / log2(1 + rank)."""
    return 1.0 / np.log2(np.arange(2.0, n + 2.0))


def normalizers(counts: Ints) -> Floats:
    """1 / DCG of the ideal ranking for points with so many labels; 1 for none."""
    ideal = np.concatenate([[1.0], np.cumsum(discounts(max(int(counts.max()), 1)))])
    return 1.0 / ideal[counts]


@njit(cache=True)
def gather(labels: Sparse, rows: Ints) -> tuple[Ints, Ints, int]:
    """The labels of some points, numbered anew from 0 by their order: starts, labels, how many."""
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    for i, row in enumerate(rows):
        start[i + 1] = start[i] + labels.start[row + 1] - labels.start[row]
    index = np.empty(start[-1], dtype=np.int64)
    for i, row in enumerate(rows):
        index[start[i] : start[i + 1]] = labels.at[labels.start[row] : labels.start[row + 1]]
    most = index.max() + 1 if len(index) else 0
    seen = np.zeros(most, dtype=np.int64)
    seen[index] = 1
    number = np.cumsum(seen) - 1
    return start, number[index], (number[-1] + 1 if most else 0)


@njit(cache=True)
def ranked(weight: Floats, discount: Floats) -> Floats:
    """The discount of each label when labels are sorted by weight, the largest first.

    This ranking has the largest sum of weight times discount; of equals the first goes first.
    """
    order = np.argsort(-weight, kind="mergesort")
    at = np.empty(len(weight))
    for rank in range(len(order)):
        at[order[rank]] = discount[rank]
    return at


@njit(cache=True)
def weights(
    start: Ints, index: Ints, count: int, normalizer: Floats, sign: Floats
) -> tuple[Floats, Floats]:
    """Weight of each label on the right (sign +1) and on the left."""
    right, left = np.zeros(count), np.zeros(count)
    for i in range(len(sign)):
        side = right if sign[i] > 0 else left
        for j in range(start[i], start[i + 1]):
            side[index[j]] += normalizer[i]
    return right, left


@njit(cache=True)
def reassign(
    start: Ints, index: Ints, normalizer: Floats, ranks: tuple[Floats, Floats], sign: Floats
) -> float:
    """Move each point to the half that ranks its labels better, ties stay; the mean nDCG."""
    right, left = ranks
    total = 0.0
    for i in range(len(sign)):
        on_right = on_left = 0.0
        for j in range(start[i], start[i + 1]):
            on_right += right[index[j]]
            on_left += left[index[j]]
        if on_right != on_left:
            sign[i] = 1.0 if on_right > on_left else -1.0
        total += normalizer[i] * max(on_right, on_left)
    return total / len(sign)


@njit(cache=True)
def partition(
    labels: Sparse, rows: Ints, normalizer: Floats, discount: Floats, seed: np.uint64
) -> Floats:
    """Signs (len(rows),) of a partition of points, from fair coins, by alternation to rest.

    Maximises the sum over points of normalizer times the discounts that the ranking of the
    point's half gives its labels, over signs and both rankings of all labels present; each of the
    two steps is exact, so the mean never falls. O(labels of the points) a round, and two sorts.
    """
    start, index, count = gather(labels, rows)
    local = normalizer[rows]
    sign = signs(len(rows), seed)
    old = -1.0
    while True:
        right, left = weights(start, index, count, local, sign)
        ranks = (ranked(right, discount), ranked(left, discount))
        new = reassign(start, index, local, ranks, sign)
        if new - old < GAIN:
            return sign
        old = new
