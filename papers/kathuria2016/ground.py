"""Ground: where one repetition looks, the same for every entrant and batch size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from covey import Pool, Space
from covey.arrays import Array, Indices
from covey.candidates.ascent import ascend
from covey.gp import Posterior

POINTS = 2048  # of a continuous space: a power of two keeps the Sobol set balanced
_WIDTHS = (0.0, 2.0, 5.0)  # climbed: the mean, and the bounds of a usual and of a wide policy
_STARTS = 5
_HARDLY = 1e-4  # of the unit cube: points closer than this are hardly different


@dataclass(frozen=True)
class Ground:
    """The finite set X of one repetition, in encoded coordinates.

    Of a pool all rows; of a continuous space a scrambled Sobol set, to which each batch adds the
    few points where gradient ascent ends, so that nobody is held up by the coarseness of X.
    (Our choice: the paper does not say what its X was. The summits are too few to matter to a DPP.)
    """

    space: Space | Pool
    rows: Array  # (n, d)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {row.tobytes(): i for i, row in enumerate(self.rows)}

    def point(self, at: Array) -> dict[str, Any]:
        """The point at encoded coordinates (d,), one of the rows or of the summits."""
        if isinstance(self.space, Pool):
            return self.space.point(self._places[at.tobytes()])
        return self.space.decode(at[None])[0]

    def left(self, seen: Array) -> Array:
        """The rows that were not looked at yet."""
        free = np.ones(len(self.rows), dtype=bool)
        places = [self._places.get(row.tobytes()) for row in seen]
        free[[i for i in places if i is not None]] = False
        return self.rows[free]

    def summits(self, posterior: Posterior, starts: Array) -> Array:
        """Ends of ascents on μ + wσ from the best of (m, d), for each width; none in a pool."""
        if isinstance(self.space, Pool):
            return starts[:0]
        belief, free = posterior.belief(starts), np.ones(starts.shape[1], dtype=bool)
        best = [np.argsort(-(belief.mean + w * belief.std), kind="stable") for w in _WIDTHS]
        ends = [
            ascend(posterior, starts[order[:_STARTS]], w, free)
            for w, order in zip(_WIDTHS, best, strict=True)
        ]
        return np.vstack(ends)


def ground(space: Space | Pool, seed: int) -> Ground:
    """The ground of a repetition."""
    from scipy.stats import qmc

    if isinstance(space, Pool):
        return Ground(space, np.ascontiguousarray(space.rows))
    return Ground(space, qmc.Sobol(space.width, scramble=True, rng=seed).random(POINTS))


def apart(at: Array, others: Array) -> Indices:
    """Which of the points (m, d) are not hardly different from one of the others or an earlier."""
    kept, which = others, []
    for i, row in enumerate(at):
        if np.square(kept - row).sum(axis=1).min() > _HARDLY**2:
            kept = np.vstack([kept, row])
            which.append(i)
    return np.array(which, dtype=np.intp)
