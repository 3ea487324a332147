"""Open: a field too large to list, sampled and climbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from covey.arrays import Array, Mask
from covey.candidates.ascent import ascend
from covey.candidates.field import BLOCK, Candidates, Taken, among, row_keys, sobol_blocks
from covey.candidates.listed import listed_grid, read_points
from covey.errors import ExhaustedError, several
from covey.gp import Posterior
from covey.space import Space
from covey.space.inside import many_inside, one_inside

_LAST_RESORT_GRID = 2_000_000  # a finite space is listed up to this size when sampling starves
_WIDE = 2048  # Sobol candidates of a search
_NEAR = 400  # candidates around each anchor
_ANCHORS = 5
_ASCENTS = 8  # gradient ascents per width
_HARDLY = 1e-4  # of the unit cube: points closer than this are hardly different
_SAME_SUMMIT = 1e-3  # of the unit cube: ascents that end closer than this are one
_WIDTHS = (0.5, 2.0)  # of the bounds that are climbed: near the best mean, and near the best UCB
_TRIES = 128  # blocks drawn before a constraint is declared too tight for rejection
_PATIENCE = 16  # ... or fewer, where there is something better to do


@dataclass(frozen=True)
class Open:
    """A field too large to list: it is sampled, and climbed by gradient."""

    space: Space
    fixed: Mapping[str, Any]
    taken: Taken

    def in_order(self, k: int, /) -> Candidates:
        """The next feasible points of the Sobol sequence of the study's seed."""
        blocks = sobol_blocks(self.space.width, self.taken.seed, self.taken.asked)
        rng = np.random.default_rng([self.taken.seed, self.taken.asked])
        return self._candidates(self._gather(blocks, k, rng))

    def scattered(self, k: int, rng: np.random.Generator, /) -> Candidates:
        """A freshly scrambled Sobol set: uniform, and free of clumps."""
        return self._candidates(
            self._gather(sobol_blocks(self.space.width, rng), max(k, BLOCK), rng, k)
        )

    def promising(self, k: int, posterior: Posterior, rng: np.random.Generator, /) -> Candidates:
        """A fresh Sobol set, points near the best seen, and what gradient ascent makes of them."""
        wide = self._gather(sobol_blocks(self.space.width, rng), max(_WIDE, 16 * k), rng, k)
        near = self._around(self._anchors(posterior), wide, rng)
        at = self._admissible(np.vstack([wide, near]))
        climbed = [ascend(posterior, self._best(posterior, at, w), w, self._free) for w in _WIDTHS]
        at = self._admissible(np.vstack([_merged(np.vstack(climbed)), at]))
        return self._candidates(self._apart(at, k))

    def _candidates(self, at: Array) -> Candidates:
        return Candidates(at, lambda i: read_points(self.space, at[i], self.fixed))

    @cached_property
    def _taken_at(self) -> Array:
        return self.space.condensed(self.space.encode(self.taken.points))

    @cached_property
    def _free(self) -> Mask:
        """Columns that gradient ascent may move."""
        free = self.space.continuous.copy()
        for name in self.fixed:
            free[self.space.columns_of(name)] = False
        return free

    def _admissible(self, at: Array) -> Array:
        """Held, snapped, feasible, untaken, distinct; in the order given."""
        at = self.space.snap(self.space.hold(np.clip(at, 0.0, 1.0), self.fixed))
        short = self.space.condensed(at)
        _, first = np.unique(row_keys(short), return_index=True)
        kept = np.sort(first)
        at = at[kept[~among(short[kept], self._taken_at)]]
        return at[self.space.feasible(at)]

    def _gather(
        self, blocks: Iterator[Array], wanted: int, rng: np.random.Generator, least: int = 0
    ) -> Array:
        """``wanted`` admissible points, at the least ``least`` (0: all wanted)."""
        least = least or wanted
        found, tried = np.zeros((0, self.space.width)), 0
        for block in blocks:
            found = self._admissible(np.vstack([found, block]))
            tried += len(block)
            if len(found) >= wanted:
                return found[:wanted]
            # A tight constraint shows early; what follows is better at it, given a start.
            starving = tried >= _PATIENCE * BLOCK and len(found) * _TRIES * BLOCK < wanted * tried
            if tried >= _TRIES * BLOCK or (starving and (len(found) > 0 or self.space.linear)):
                break
        found = self._inside(found, wanted, rng)
        found = self._spread(found, wanted, rng)
        if len(found) >= least:
            return found
        return self._list_after_all(least, len(found), tried)

    def _inside(self, found: Array, wanted: int, rng: np.random.Generator) -> Array:
        """More points, spread over what linear constraints leave."""
        for _ in range(4):
            more = many_inside(self.space, self.fixed, max(wanted, BLOCK), rng)
            if more is None:
                break
            found = self._admissible(np.vstack([found, more]))
            if len(found) >= wanted:
                break
        return found[rng.permutation(len(found))[:wanted]]

    def _spread(self, found: Array, wanted: int, rng: np.random.Generator) -> Array:
        """More points by random steps from feasible ones: the last resort, for predicates."""
        if len(found) >= wanted:
            return found
        if len(found) == 0:
            seed = one_inside(self.space, self.fixed)
            if seed is None:
                return found
            found = seed[None, :]
        starts = found  # kept as parents even where they are taken themselves
        for _ in range(_PATIENCE):  # all of it: the first steps stay close to where they began
            parents = np.vstack([starts, found])
            parents = parents[rng.integers(len(parents), size=BLOCK)]
            scale = 10.0 ** rng.uniform(-4.0, 0.0, size=(BLOCK, 1))
            steps = scale * rng.standard_normal(parents.shape)
            found = self._admissible(np.vstack([found, parents + steps]))
        return found[rng.permutation(len(found))[:wanted]]

    def _list_after_all(self, k: int, found: int, tried: int) -> Array:
        """A finite space that sampling cannot exhaust is listed, however large."""
        grid = self.space.grid(_LAST_RESORT_GRID, self.fixed)
        if grid is not None:
            return listed_grid(self.space, grid, self.fixed, self.taken).everything(k).at
        hint = "" if self.space.linear else " A narrow region is found more easily as covey.Linear."
        raise ExhaustedError(
            f"asked for {several(k, 'point')} but found {found} that are feasible and new among "
            f"{tried} tries. Check the constraints in `where` and what is fixed: together they "
            f"may exclude (almost) everything. Tighter bounds on the parameters help.{hint}",
            left=found,
        )

    def _anchors(self, posterior: Posterior) -> Array:
        """The observed points of highest posterior mean."""
        at = posterior.data.at
        return at[np.argsort(-posterior.belief(at).mean, kind="stable")[:_ANCHORS]]

    def _apart(self, at: Array, k: int) -> Array:
        """Candidates less those hardly different from an earlier one, or from one already taken.

        Towards the end of a run the best points crowd; a batch of them would tell nothing. Where
        the space itself is so small that too few are left, all stay.
        """
        from scipy.spatial import cKDTree

        # One per cell first, so that the pairs left to look at are few.
        short = self.space.condensed(at)
        _, first = np.unique(np.round(short / _HARDLY), axis=0, return_index=True)
        kept = np.sort(first)
        every, at, short = at, at[kept], short[kept]
        crowded = np.zeros(len(at), dtype=bool)
        if len(self._taken_at):
            crowded = np.asarray(cKDTree(self._taken_at).query(short)[0] < _HARDLY)
        pairs = cKDTree(short).query_pairs(_HARDLY, output_type="ndarray")
        for i, j in pairs[np.lexsort(pairs.T[::-1])]:
            if not crowded[i]:
                crowded[j] = True
        return at[~crowded] if np.sum(~crowded) >= k else every

    def _around(self, anchors: Array, wide: Array, rng: np.random.Generator) -> Array:
        """Points near the anchors: small steps in some columns, some discrete values redrawn."""
        at = np.repeat(anchors, _NEAR, axis=0)
        scale = 10.0 ** rng.uniform(-3.0, -0.5, size=(len(at), 1))
        width = self.space.width
        moved = rng.random(at.shape) < max(0.3, min(1.0, 3.0 / width))
        steps = np.where(moved, scale * rng.standard_normal(at.shape), 0.0)
        at = np.where(self.space.continuous, at + steps, at)
        donors = wide[rng.integers(len(wide), size=len(at))]
        for name in self.space.names:
            columns = self.space.columns_of(name)
            if not self.space.continuous[columns].any():
                redrawn = rng.random(len(at)) < 0.3
                at[redrawn, columns] = donors[redrawn, columns]
        return at

    def _best(self, posterior: Posterior, at: Array, width: float) -> Array:
        belief = posterior.belief(at)
        scores = belief.mean + width * belief.std
        return at[np.argsort(-scores, kind="stable")[:_ASCENTS]]


def _merged(at: Array) -> Array:
    """Points without those that ended where an earlier one did.

    Several ascents reach one summit; EST, which counts candidates as independent, would take the
    copies for as many chances.
    """
    kept: list[Array] = []
    for point in at:
        if all(np.abs(point - other).max() > _SAME_SUMMIT for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, at.shape[1])
