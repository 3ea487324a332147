"""A first batch, before there is a model: rows that stand for all candidates.

The most different rows of a finite set lie at its edges, where the optimum rarely is and from where
a model sees little of the rest. Rows that leave no candidate far from all of them are both spread
out and among the many (`python -m benchmarks.pools_in_plates`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array

if TYPE_CHECKING:
    from covey.arrays import Indices

_MOST, _EACH = 4096, 10  # candidates looked at; or so many for each row of the batch
_SAMPLE, _SHARE = 1024, 4  # candidates that are to be covered; or so many for each row
_BLOCK = 64  # gains computed at once


def most_candidates(k: int) -> int:
    """How many candidates are looked at, at most, to choose k of them."""
    return max(_MOST, _EACH * k)


def covering(
    at: Array, k: int, rng: np.random.Generator, covered: Array | None = None
) -> list[int]:
    r"""k of the rows (n, d), so that all rows are near one of them, in order of choice.

    .. math:: \min_S \sum_x \min_{s \in S \cup C} |x - s|

    by greedy choice (the k-median or facility-location problem: greedy gains at least 1 - 1/e of
    what k rows can), with C the points ``covered`` (m, d) that are there already. If there are
    none, the first row is drawn at random. Of many rows some are drawn, n to choose from and m to
    be covered. Cost n m d, and m d for each gain that is computed again: gains only fall, so that
    these are few (Minoux 1978). If there are fewer than k rows, it is all of them.

    >>> at = np.array([[0.0], [0.1], [0.2], [0.9]])
    >>> covering(at, 1, np.random.default_rng(0), covered=np.ones((1, 1)))
    [1]
    """
    n = len(at)
    among = rng.permutation(n)[: most_candidates(k)]  # of equal gains, as on grids, any is first
    to_cover, rows = at[rng.permutation(n)[: max(_SAMPLE, _SHARE * k)]], at[among]
    chosen: list[int] = []
    if covered is None or not len(covered):
        chosen.append(int(rng.integers(len(among))))
        covered = rows[chosen]
    near = _distances(covered, to_cover).min(axis=0)
    parts = np.split(rows, range(_BLOCK, len(rows), _BLOCK))
    gains = np.concatenate([_gains(part, to_cover, near) for part in parts])
    gains[chosen] = -np.inf
    while len(chosen) < min(k, n):
        best = _largest(gains, rows, to_cover, near)
        chosen.append(best)
        gains[best] = -np.inf
        near = np.minimum(near, _distances(rows[[best]], to_cover)[0])
    return among[chosen].tolist()


def _largest(gains: Array, at: Array, to_cover: Array, near: Array) -> int:
    """The first row of largest gain; ``gains`` (n,) bounds them from above and is brought nearer.

    A bound that others do not reach once it is exact belongs to the best.
    """
    fresh = np.zeros(len(gains), dtype=bool)
    while True:
        best = int(np.argmax(gains))
        if fresh[best]:
            return best
        stale = np.flatnonzero(~fresh)
        top = stale[np.argsort(-gains[stale], kind="stable")[:_BLOCK]]
        top = top[gains[top] > -np.inf]
        gains[top], fresh[top] = _gains(at[top], to_cover, near), True


def _gains(at: Array, to_cover: Array, near: Array) -> Array:
    """By how much each of some rows (m, d) would bring what is to be covered nearer, (m,)."""
    return np.asarray(np.maximum(near - _distances(at, to_cover), 0.0).sum(axis=1))


def _distances(one: Array, other: Array) -> Array:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(one, other))


# A first plate in a space: every option and every part of a range as often as any other.


def even(values: Sequence[Array], k: int, rng: np.random.Generator, there: int = 0) -> list[int]:
    r"""k rows, so that every option and every part of a range has an even share of the rows.

    ``values`` has an array (n, c) for each parameter, whose first rows, ``there`` in number, are
    chosen already. A parameter with more than k different numbers is cut into k parts, each with as
    many rows. One after the other, rows are taken whose options are new where any is left; of these
    the one whose parts and options have, summed over parameters, the fewest rows for their share.

    >>> kinds, numbers = np.array([[0.0, 0.0, 1.0, 1.0], [0.1, 0.9, 0.2, 0.8]])[:, :, None]
    >>> chosen = even([kinds, numbers], 2, np.random.default_rng(0))
    >>> sorted(kinds[chosen, 0].tolist()), sorted(np.round(numbers[chosen, 0]).tolist())
    ([0.0, 1.0], [0.0, 1.0])
    """
    strata = [_strata(some, k) for some in values]
    counts = [np.bincount(of[:there], minlength=len(share)) for of, share, _ in strata]
    left, chosen = rng.permutation(np.arange(there, len(values[0]))), list[int]()
    while len(chosen) < k and len(left):
        new, full = np.zeros(len(left)), np.zeros(len(left))
        for count, (of, share, options) in zip(counts, strata, strict=True):
            had = count[of[left]]
            full += had / share[of[left]]
            new += (had == 0) & options
        best = int(left[np.lexsort((full, -new))[0]])
        chosen.append(best)
        left = left[left != best]
        for count, (of, *_) in zip(counts, strata, strict=True):
            count[of[best]] += 1
    return chosen


def _strata(values: Array, k: int) -> tuple[Indices, Array, bool]:
    """The stratum (n,) of each value (n, c): its option, or a part of the range that has such rows.

    With the share (m,) of rows that each stratum is to have, and whether they are options.
    """
    rows, of = np.unique(np.round(values, 9), axis=0, return_inverse=True)
    if len(rows) <= k or rows.shape[1] > 1:
        return of.reshape(-1), np.full(len(rows), 1.0 / len(rows)), True
    ends = np.unique(np.quantile(values[:, 0], np.arange(1, k) / k))
    of = np.searchsorted(ends, values[:, 0], side="right")
    share = np.bincount(of, minlength=len(ends) + 1) / len(of)
    return of, np.maximum(share, 1.0 / len(of)), False
