"""Few of very many items, to look at first."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, Indices

# Values within this of each other count as equal: wider than in `covey.arrays.first_largest`.
MARGIN = 1e-8


def spread(values: Array, count: int) -> Indices:
    """About ``count`` items, ascending: half with the largest values, half evenly spread.

    >>> spread(np.array([0.0, 1.0, 0.0, 7.0, 8.0, 0.0]), 4)
    array([0, 3, 4, 5])
    """
    even = np.linspace(0, len(values) - 1, min(len(values), count // 2)).astype(np.intp)
    return np.union1d(largest(values, count - count // 2), even)


def largest(values: Array, count: int) -> Indices:
    """Where the largest values are; of those about as large as the least of them, the first.

    >>> largest(np.array([2.0, 2.0, 5.0, 2.0 + 1e-12]), 2)
    array([2, 0])
    """
    if count >= len(values):
        return np.arange(len(values))
    least = np.partition(values, len(values) - count)[len(values) - count]
    if least == -np.inf:
        return np.flatnonzero(values > -np.inf)
    width = MARGIN * abs(least)
    above = np.flatnonzero(values > least + width)
    level = np.flatnonzero(np.abs(values - least) <= width)
    return np.concatenate([above, level[: count - len(above)]])
