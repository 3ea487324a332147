"""Randomness that depends on a node's place alone: splitmix64 along the path from the root.

So a tree stopped earlier, or a forest of fewer trees, is a part of the larger one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


@njit(cache=True)
def mix(x: np.uint64) -> np.uint64:
    """One step of splitmix64 (Steele, Lea & Flood 2014): a bijection that scatters its input."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def root(seed: int, tree: int) -> np.uint64:
    """The seed of the root of a tree."""
    return _mixed(_mixed(np.uint64(seed)) ^ np.uint64(tree))


def child(seed: np.uint64, side: int) -> np.uint64:
    """The seed of a node's left (0) or right (1) child."""
    return _mixed(_mixed(seed) ^ np.uint64(side))


def _mixed(x: np.uint64) -> np.uint64:
    return np.uint64(mix(x))  # numba hands back a Python int, which would come in again as int64


@njit(cache=True)
def signs(n: int, seed: np.uint64) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Fair coins: n values of -1 or +1."""
    drawn = np.empty(n)
    for i in range(n):
        seed = seed + _GOLDEN
        drawn[i] = 1.0 if mix(seed) & _ONE else -1.0
    return drawn


@njit(cache=True)
def shuffle(items: np.ndarray[Any, np.dtype[np.int64]], n: int, seed: np.uint64) -> np.uint64:
    """Shuffle the first n items in place; returns the seed to go on with."""
    for i in range(n - 1, 0, -1):
        seed = seed + _GOLDEN
        j = np.int64(mix(seed) % np.uint64(i + 1))
        items[i], items[j] = items[j], items[i]
    return seed
