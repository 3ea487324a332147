"""Ground: where one repetition looks, the same for every entrant and batch size.

On a continuous space there are three grounds. Which one it is decides what a rule that takes the
highest point can do and a sample from many cannot: of the few ends that a batch adds to X, the one
takes what it likes, the other hardly ever meets one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from covey import Pool, Space
from covey.arrays import Array, Indices
from covey.ascent import ascend
from covey.gp import Posterior

POINTS = 2048  # of a continuous space: a power of two keeps the Sobol set balanced
_WIDTHS = (0.0, 2.0, 5.0)  # climbed: the mean, and the bounds of a usual and of a wide policy
_STARTS = 5
_HARDLY = 1e-4  # of the unit cube: points closer than this are hardly different
_CENTRES, _NEAR = 5, 400  # of the clouds, and points in each: as many as `Study` offers

Kind = Literal["ends", "finite", "clouds"]
GROUNDS: dict[Kind, str] = {
    "ends": "X and the points where gradient ascent ends",
    "finite": "X alone, as the paper has it",
    "clouds": "X, the ends, and a cloud of points round each of the best looks",
}
"""What may be looked at in a continuous space, in words; X is a Sobol set."""


@dataclass(frozen=True)
class Ground:
    """The finite set X of one repetition, in encoded coordinates.

    Of a pool all rows; of a continuous space a scrambled Sobol set, to which each batch adds what
    the kind of ground says. (Our choice: the paper does not say what its X was.)
    """

    space: Space | Pool
    rows: Array  # (n, d)
    kind: Kind = "ends"

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {row.tobytes(): i for i, row in enumerate(self.rows)}

    def point(self, at: Array) -> dict[str, Any]:
        """The point at encoded coordinates (d,), one of the rows or of those added."""
        if isinstance(self.space, Pool):
            return self.space.point(self._places[at.tobytes()])
        return self.space.decode(at[None])[0]

    def left(self, seen: Array) -> Array:
        """The rows that were not looked at yet."""
        free = np.ones(len(self.rows), dtype=bool)
        places = [self._places.get(row.tobytes()) for row in seen]
        free[[i for i in places if i is not None]] = False
        return self.rows[free]

    def added(self, posterior: Posterior, known: Array, rng: np.random.Generator) -> Array:
        """What one batch may look at besides the known points (m, d): the looks and the rest of X.

        As in a `Study`, ascents also start in the clouds.
        """
        if self.kind == "finite":
            return known[:0]
        near = known[:0]
        if self.kind == "clouds":
            near = clouds(posterior, rng)
        return np.vstack([self.summits(posterior, np.vstack([known, near])), near])

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


def clouds(posterior: Posterior, rng: np.random.Generator) -> Array:
    """Points round the looks of highest mean, by the steps of `covey.candidates`.

    The steps of a point are of one size, even in logs, and move about three columns or all.
    """
    looks = posterior.data.at
    centres = looks[np.argsort(-posterior.belief(looks).mean, kind="stable")[:_CENTRES]]
    at = np.repeat(centres, _NEAR, axis=0)
    size = 10.0 ** rng.uniform(-3.0, -0.5, size=(len(at), 1))
    moved = rng.random(at.shape) < max(0.3, min(1.0, 3.0 / at.shape[1]))
    return np.clip(at + np.where(moved, size * rng.standard_normal(at.shape), 0.0), 0.0, 1.0)


def ground(space: Space | Pool, seed: int, kind: Kind = "ends") -> Ground:
    """The ground of a repetition."""
    from scipy.stats import qmc

    if isinstance(space, Pool):
        return Ground(space, np.ascontiguousarray(space.rows))
    return Ground(space, qmc.Sobol(space.width, scramble=True, rng=seed).random(POINTS), kind)


def apart(at: Array, others: Array) -> Indices:
    """Which of the points (m, d) are not hardly different from one of the others or an earlier."""
    from scipy.spatial import cKDTree

    if not len(at):
        return np.zeros(0, dtype=np.intp)
    hardly = np.asarray(cKDTree(others).query(at)[0] <= _HARDLY)
    pairs = cKDTree(at).query_pairs(_HARDLY, output_type="ndarray")
    for i, j in pairs[np.lexsort(pairs.T[::-1])]:
        hardly[j] |= not hardly[i]
    return np.flatnonzero(~hardly)
