"""A forest: the labels of leaves, added up over trees, and how often the first is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from papers.kathuria2016.fastxml.settings import Cuts, Settings
from papers.kathuria2016.fastxml.sparse import Sparse, from_scipy, with_constant
from papers.kathuria2016.fastxml.tree import Nodes, descend, grow, training

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


class Points(NamedTuple):
    """Features and labels, one row a point."""

    features: csr_matrix
    labels: csr_matrix


@dataclass(frozen=True)
class Forest:
    """Trees, with the labels of the points they were grown on."""

    settings: Settings
    trees: tuple[Nodes, ...]
    labels: Sparse
    n_labels: int


def train(points: Points, settings: Settings, seed: int = 0) -> Forest:
    """Trees 0, 1, ... of this seed, each grown on all points."""
    features = with_constant(points.features, settings.bias)
    labels = from_scipy(points.labels)
    n_labels = points.labels.shape[1]
    data = training(features, labels, points.features.shape[1] + 1, n_labels)
    coefficient, max_leaf = float(settings.log_loss_coeff), settings.max_leaf
    trees = (grow(data, coefficient, max_leaf, seed, k) for k in range(settings.num_tree))
    return Forest(settings, tuple(trees), labels, n_labels)


@njit(cache=True)
def leaf_labels(nodes: Nodes, leaf: int, labels: Sparse, n_labels: int) -> tuple[Ints, Floats]:
    """The labels of a leaf's points by falling share of the points that have them.

    Of equals the first goes first.
    """
    rows = nodes.order[nodes.first[leaf] : nodes.last[leaf]]
    count = np.zeros(n_labels)
    for row in rows:
        for j in range(labels.start[row], labels.start[row + 1]):
            count[labels.at[j]] += 1.0
    present = np.flatnonzero(count)
    best = present[np.argsort(-count[present], kind="mergesort")]
    return best, count[best] / len(rows)


@njit(cache=True)
def add_leaves(scores: Floats, keep: Ints, nodes: Nodes, reached: Ints, labels: Sparse) -> None:
    """Add to scores[k, i] the ``keep[k]`` first labels of the leaf that point i has reached."""
    # In this order the points of a leaf are neighbours: its labels are counted once.
    order = np.argsort(reached, kind="mergesort")
    best, share = leaf_labels(nodes, reached[order[0]], labels, scores.shape[2])
    for at in range(len(order)):
        i = order[at]
        if at and reached[i] != reached[order[at - 1]]:
            best, share = leaf_labels(nodes, reached[i], labels, scores.shape[2])
        for k in range(len(keep)):
            for j in range(min(keep[k], len(best))):
                scores[k, i, best[j]] += share[j]


@njit(cache=True)
def count_hits(scores: Floats, labels: Sparse) -> int:
    """How many points have the label of their largest score (of equals, the first)."""
    hits = 0
    for i in range(len(scores)):
        top = np.argmax(scores[i])
        for j in range(labels.start[i], labels.start[i + 1]):
            hits += labels.at[j] == top
    return hits


def hits(forest: Forest, test: Points, cuts: Cuts) -> Ints:
    """Test points whose first label is right, for each (num_tree, max_leaf, lbl_per_leaf).

    A cut forest is the forest that training with the smaller values would give. O(trees × points)
    for each max_leaf; memory is 8 × points × labels for each lbl_per_leaf.
    """
    features = with_constant(test.features, forest.settings.bias)
    truth, keep = from_scipy(test.labels), np.array(cuts.lbl_per_leaf)
    shape = (len(cuts.num_tree), len(cuts.max_leaf), len(keep))
    found = np.zeros(shape, dtype=np.int64)
    for m, max_leaf in enumerate(cuts.max_leaf):
        scores = np.zeros((len(keep), test.features.shape[0], forest.n_labels))
        for grown, nodes in enumerate(forest.trees[: max(cuts.num_tree)], start=1):
            reached = descend(nodes, features, max_leaf)
            add_leaves(scores, keep, nodes, reached, forest.labels)
            if grown in cuts.num_tree:
                at = cuts.num_tree.index(grown)
                found[at, m] = [count_hits(each, truth) for each in scores]
    return found


def precision(forest: Forest, test: Points) -> float:
    """Precision@1: the share of test points whose first label is right."""
    s = forest.settings
    found = hits(forest, test, Cuts((s.num_tree,), (s.max_leaf,), (s.lbl_per_leaf,)))
    return float(found[0, 0, 0]) / test.features.shape[0]
