"""One tree: grown node by node, each from its points and its seed alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from papers.kathuria2016.fastxml.logistic import Limits, columns, fit, product
from papers.kathuria2016.fastxml.ndcg import discounts, normalizers, partition
from papers.kathuria2016.fastxml.seeds import child, mix, root
from papers.kathuria2016.fastxml.sparse import Sparse

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_LIMITS = Limits()


class Training(NamedTuple):
    """What all trees are grown on; the last feature is the constant one."""

    features: Sparse
    labels: Sparse
    width: int  # number of features
    normalizer: Floats  # of each point's DCG
    discount: Floats  # of each rank


def training(features: Sparse, labels: Sparse, width: int, n_labels: int) -> Training:
    """Features and labels with the constants of nDCG."""
    norm = normalizers(np.diff(labels.start))
    return Training(features, labels, width, norm, discounts(n_labels))


class Nodes(NamedTuple):
    """A tree in arrays: node 0 is the root, children come after their parent.

    A node's points are ``order[first:last]``; ``left`` and ``right`` are -1 at a leaf. The
    hyperplane of node i is row i of ``plane``.
    """

    order: Ints
    first: Ints
    last: Ints
    left: Ints
    right: Ints
    plane: Sparse


@njit(cache=True)
def split(
    data: Training, rows: Ints, coefficient: float, limits: Limits, seed: np.uint64
) -> tuple[Ints, Floats, Floats]:
    """Hyperplane of a node (features, weights), and its product with the points (n,).

    The loss of a point is weighted by coefficient over the share of points of its sign. When a
    side of the nDCG partition is empty, there are no weights.
    """
    n = len(rows)
    sign = partition(data.labels, rows, data.normalizer, data.discount, seed)
    share = (sign > 0.0).sum() / n
    if share in (0.0, 1.0):
        return np.empty(0, dtype=np.int64), np.empty(0), np.zeros(n)
    cost = np.where(sign > 0.0, coefficient / share, coefficient / (1.0 - share))
    x, used = columns(data.features, rows, data.width)
    w = fit(x, sign, cost, limits, mix(seed))
    kept = np.flatnonzero(w)
    return used[kept], w[kept], product(x, w, n)


@dataclass
class _Growth:
    """The arrays of a tree while it grows."""

    order: Ints
    spans: list[tuple[int, int]]
    children: list[tuple[int, int]]
    planes: list[tuple[Ints, Floats]]

    def add(self, first: int, last: int) -> int:
        """A new leaf of these points."""
        self.spans.append((first, last))
        self.children.append((-1, -1))
        self.planes.append((np.empty(0, dtype=np.int64), np.empty(0)))
        return len(self.spans) - 1

    def divide(self, node: int, right: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[int, int]:
        """Two new leaves of a node's points, in the order they had."""
        first, last = self.spans[node]
        rows = self.order[first:last].copy()
        middle = last - int(right.sum())
        self.order[first:middle], self.order[middle:last] = rows[~right], rows[right]
        self.children[node] = (self.add(first, middle), self.add(middle, last))
        return self.children[node]

    def nodes(self) -> Nodes:
        """All in arrays."""
        start = np.concatenate([[0], np.cumsum([len(index) for index, _ in self.planes])])
        index = np.concatenate([index for index, _ in self.planes])
        value = np.concatenate([value for _, value in self.planes])
        first, last = np.array(self.spans, dtype=np.int64).T.copy()
        left, right = np.array(self.children, dtype=np.int64).T.copy()
        return Nodes(self.order, first, last, left, right, Sparse(start, index, value))


def grow(data: Training, coefficient: float, max_leaf: int, seed: int, tree: int) -> Nodes:
    """Tree number ``tree``: nodes of more than ``max_leaf`` points are split where they can be."""
    n = len(data.normalizer)
    made = _Growth(np.arange(n), [], [], [])
    waiting = [(made.add(0, n), root(seed, tree))]
    while waiting:
        node, key = waiting.pop()
        first, last = made.spans[node]
        if last - first <= max_leaf:
            continue
        index, value, score = split(data, made.order[first:last], coefficient, _LIMITS, key)
        right = score >= 0.0
        if right.all() or not right.any():
            continue
        made.planes[node] = (index, value)
        for side, each in enumerate(made.divide(node, right)):
            waiting.append((each, child(key, side)))
    return made.nodes()


@njit(cache=True)
def dot(a: Sparse, i: int, b: Sparse, j: int) -> float:
    """Row i of one matrix times row j of another, added up by ascending column."""
    p, q, total = a.start[i], b.start[j], 0.0
    while p < a.start[i + 1] and q < b.start[j + 1]:
        if a.at[p] == b.at[q]:
            total += a.value[p] * b.value[q]
            p += 1
            q += 1
        elif a.at[p] < b.at[q]:
            p += 1
        else:
            q += 1
    return total


@njit(cache=True)
def descend(nodes: Nodes, features: Sparse, max_leaf: int) -> Ints:
    """The leaf each point falls into when nodes of at most ``max_leaf`` points are leaves."""
    n = len(features.start) - 1
    reached = np.empty(n, dtype=np.int64)
    for i in range(n):
        at = 0
        while nodes.left[at] >= 0 and nodes.last[at] - nodes.first[at] > max_leaf:
            right = dot(nodes.plane, at, features, i) >= 0.0
            at = nodes.right[at] if right else nodes.left[at]
        reached[i] = at
    return reached
