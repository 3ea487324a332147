"""Listed: a field small enough to name every point of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.arrays import Array, Indices
from covey.candidates.field import Candidates, Taken, among, sobol_blocks
from covey.errors import ExhaustedError, several
from covey.gp import Posterior
from covey.space import Pool, Space

_ROWS = 2**13  # rows at a time, which fit a processor's cache


@dataclass(frozen=True)
class Listed:
    """A finite field: every remaining point is a candidate."""

    rows: Array  # (n, d)
    read: Callable[[Indices], list[dict[str, Any]]]
    taken: Taken
    places: Indices  # of the rows in what they are left of

    def in_order(self, k: int, /) -> Candidates:
        """For each next Sobol point the nearest remaining row."""
        self._require(k)
        block = next(sobol_blocks(self.rows.shape[1], self.taken.seed, self.taken.asked))
        order: list[int] = []
        for target in np.resize(block, (k, self.rows.shape[1])):
            distance = _square_distances(self.rows, target)
            distance[order] = np.inf
            order.append(int(np.argmin(distance)))
        chosen = np.array(order)
        return Candidates(self.rows[chosen], lambda i: self.read(chosen[i]))

    def scattered(self, k: int, rng: np.random.Generator, /) -> Candidates:
        """All of them."""
        del rng
        return self.everything(k)

    def promising(self, k: int, posterior: Posterior, rng: np.random.Generator, /) -> Candidates:
        """All of them."""
        del posterior, rng
        return self.everything(k)

    def everything(self, k: int) -> Candidates:
        """All of them, if they are at least k."""
        self._require(k)
        return Candidates(self.rows, self.read)

    def _require(self, k: int) -> None:
        if len(self.rows) < k:
            raise ExhaustedError(
                f"asked for {several(k, 'point')}; left that are feasible, match what is fixed and "
                f"were not asked, told or failed before: {len(self.rows)}. Ask for fewer, "
                "cancel trials that will not run, or repeat points with study.enqueue.",
                left=len(self.rows),
            )


def listed_pool(pool: Pool, fixed: Mapping[str, Any], taken: Taken) -> Listed:
    """What is left of a pool."""
    left = pool.matching(fixed)
    places = pool.locate(taken.points)
    left[places[places >= 0]] = False
    free = np.flatnonzero(left)
    return Listed(pool.rows[free], lambda i: [pool.point(int(j)) for j in free[i]], taken, free)


def listed_grid(space: Space, grid: Array, fixed: Mapping[str, Any], taken: Taken) -> Listed:
    """What is left of a grid of feasible points."""
    taken_at = space.condensed(space.encode(taken.points))
    places = np.flatnonzero(~among(space.condensed(grid), taken_at))
    rows = grid[places]
    return Listed(rows, lambda i: read_points(space, rows[i], fixed), taken, places)


def _square_distances(rows: Array, target: Array) -> Array:
    """From each of n rows (n,), a few at a time, so that a million need no copy."""
    distances = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        np.square(rows[part] - target).sum(axis=1, out=distances[part])
    return distances


def read_points(space: Space, at: Array, fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Decoded points; what is fixed is exactly so, not up to rounding."""
    return [{**point, **fixed} for point in space.decode(at)]
