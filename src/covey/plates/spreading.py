"""Values of what a plate shares before bounds can choose among them: spread, the rarest first.

With one or two values of a factor seen a model cannot tell how fast it acts, and the better end of
its range wins for ever. So the first plates take different values, each near those that none is
near yet (`python -m benchmarks.plate_levels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array

if TYPE_CHECKING:
    from covey.arrays import Indices

FIRST = 4  # values of each shared parameter that are seen before bounds choose
_ALIKE = 0.005  # share of a range within which two values are one
_COVERED, _ORDERED = 1024, 32  # combinations that are to be covered; that are put in order


def settled(values: Sequence[Array], seen: Sequence[Array]) -> bool:
    """Whether bounds may choose: `FIRST` values of each shared parameter were seen, or all of them.

    ``values`` and ``seen`` hold an array for each parameter: of its values (n, c) to choose among,
    and of points (m, c) that are there.
    """
    wanted = (min(FIRST, _distinct(some)) for some in values)
    return all(_distinct(there) >= least for there, least in zip(seen, wanted, strict=True))


def in_spread(values: Sequence[Array], seen: Sequence[Array], rng: np.random.Generator) -> Indices:
    """The order in which to take n combinations of shared values, as of `settled`.

    First those whose values the fewest points have; of these the one that brings all combinations
    nearest to one that is there, in sum, as `covey.design.covering` does for points. Equals are
    drawn. Beyond the first 32 they come in any order.
    """
    from scipy.spatial.distance import cdist

    draw = rng.permutation(len(values[0]))
    values = [some[draw] for some in values]
    at, there = np.hstack(values), np.hstack(seen)
    gaps = cdist(at[:_COVERED], at)
    near = cdist(at[:_COVERED], there).min(axis=1) if len(there) else np.full(len(gaps), gaps.max())
    often = _shared_by(values, seen)
    order, left = list[int](), np.ones(len(at), dtype=bool)
    while left.any() and len(order) < _ORDERED:
        rarest = np.flatnonzero(left & (often == often[left].min()))
        gains = np.maximum(near[:, None] - gaps[:, rarest], 0.0).sum(axis=0)
        best = int(rarest[np.argmax(np.round(gains, 9))])
        order.append(best)
        left[best] = False
        near = np.minimum(near, gaps[:, best])
        often = often + _shared_by(values, [some[[best]] for some in values])
    return draw[[*order, *np.flatnonzero(left)]]


def _distinct(values: Array) -> int:
    """How many different values (n, c) of a parameter there are."""
    return len(np.unique(np.round(values / (2.0 * _ALIKE)), axis=0))


def _shared_by(values: Sequence[Array], seen: Sequence[Array]) -> Array:
    """How many points have the values of each combination (n,), summed over parameters."""
    often = np.zeros(len(values[0]))
    for some, there in zip(values, seen, strict=True):
        rows, counts = np.unique(there, axis=0, return_counts=True)
        alike = np.abs(some[:, None, :] - rows).max(axis=2, initial=0.0) <= _ALIKE
        often += alike @ counts
    return often
