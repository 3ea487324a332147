"""Candidate sets: the points that may be asked for now, offered to a strategy as rows (n, d).

`FiniteSet` lists a pool or a small grid. `ContinuousSet` samples a space that is too large to list
and climbs the posterior's upper confidence bound by gradient. `candidate_set` takes the one that
suits the space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any, Protocol

import numpy as np

from covey.arrays import Array, Indices, Mask, among, row_keys
from covey.ascent import ascend, climb, nearby_steps
from covey.belief import Belief
from covey.errors import ExhaustedError, several
from covey.gp import Posterior, Posteriors
from covey.history import History
from covey.policies import weighed
from covey.space import Pool, Space
from covey.space.flat import Flat, farthest
from covey.space.rules import into_rules

BLOCK = 1024  # a power of two: Sobol blocks stay balanced


@dataclass(frozen=True)
class Candidates:
    """Encoded points that a strategy may choose among, and how to decode them."""

    at: Array  # (n, d)
    read: Callable[[Indices], list[dict[str, Any]]]  # rows -> points
    places: Indices | None = None  # (n,), positions in a whole pool or grid; None: of no such list

    def __len__(self) -> int:
        return len(self.at)

    def some(self, keep: Indices) -> Candidates:
        """The candidates at the rows ``keep``."""
        places = None if self.places is None else self.places[keep]
        return Candidates(self.at[keep], lambda i: self.read(keep[i]), places)

    def followed_by(self, others: Candidates) -> Candidates:
        """These candidates, and then others."""
        n = len(self)

        def read(rows: Indices) -> list[dict[str, Any]]:
            return [
                (self.points([i]) if i < n else others.points([i - n]))[0] for i in rows.tolist()
            ]

        return Candidates(np.vstack([self.at, others.at]), read)

    def points(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """The chosen candidates as points."""
        return self.read(np.asarray(indices, dtype=np.intp))


class CandidateSet(Protocol):
    """All points that may be asked for now: feasible, equal to what is fixed, not excluded."""

    def in_order(self, k: int, /) -> Candidates:
        """At least k candidates, the next points of the study's Sobol sequence first."""
        ...

    def scattered(self, k: int, rng: np.random.Generator, /) -> Candidates:
        """At least k candidates, spread uniformly."""
        ...

    def promising(
        self, k: int, posterior: Posterior | Posteriors, rng: np.random.Generator, /
    ) -> Candidates:
        """At least k candidates, more of them where the model expects much."""
        ...


@dataclass(frozen=True)
class Exclusions:
    """Points that must not be proposed again, and the position in the study's Sobol sequence."""

    points: Sequence[Mapping[str, Any]]
    seed: int  # of the sequence
    asked: int  # points asked so far: the index into the sequence


def sobol_blocks(width: int, seed: int | np.random.Generator, skip: int = 0) -> Iterator[Array]:
    """Blocks (BLOCK, width) of a scrambled Sobol sequence in [0, 1)^width, from ``skip`` on."""
    from scipy.stats import qmc

    engine = qmc.Sobol(width, scramble=True, rng=seed)
    if skip:
        engine.fast_forward(skip)
    while True:
        yield engine.random(BLOCK)


Blocks = Callable[[int | np.random.Generator, int], Iterator[Array]]  # seed, skip -> blocks


def blocks_in(space: Space, fixed: Mapping[str, Any]) -> Blocks:
    """Sobol blocks of a space; where parameters are conditional, every branch has an equal share.

    Each m consecutive points visit all m branches, in a random order. (One more column of the
    sequence would cover them less evenly, and turns would follow its pattern of halves.)
    """
    branches = None if space.presence is None else space.presence.branches(fixed)
    if branches is None or space.presence is None:
        return lambda seed, skip: map(space.drawn, sobol_blocks(space.width, seed, skip))
    decide = np.zeros(space.width, dtype=bool)
    for name in space.presence.parents:
        decide[space.columns_of(name)] = True

    def blocks(seed: int | np.random.Generator, skip: int = 0) -> Iterator[Array]:
        turns = _turns(len(branches), seed, skip)
        for block in sobol_blocks(space.width, seed, skip):
            taken = branches[[next(turns) for _ in block]]
            yield np.where(decide, taken, space.drawn(block))

    return blocks


def _turns(m: int, seed: int | np.random.Generator, skip: int) -> Iterator[int]:
    """Numbers below m, from the place ``skip`` on, each once in every m of them."""
    for turn in count(skip // m):
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([seed, turn])
        order = rng.permutation(m).tolist()
        yield from order[skip - turn * m :] if turn == skip // m else order


# Finite sets: pools, and grids small enough to list.

_ROWS = 2**13  # rows worked on at a time, which fit a processor's cache


@dataclass(frozen=True)
class FiniteSet:
    """A finite set: every remaining point is a candidate."""

    rows: Array  # (n, d)
    read: Callable[[Indices], list[dict[str, Any]]]  # rows -> points
    excluded: Exclusions
    places: Indices  # (n,), positions of the rows in the whole pool or grid
    targets: Blocks | None = None  # what the Sobol sequence aims at; None: the whole cube

    def in_order(self, k: int, /) -> Candidates:
        """The remaining row nearest to each of the next k Sobol points. Cost k n d."""
        self._require(k)
        blocks = self.targets or partial(sobol_blocks, self.rows.shape[1])
        block = next(blocks(self.excluded.seed, self.excluded.asked))
        order: list[int] = []
        for target in np.resize(block, (k, self.rows.shape[1])):
            distance = _square_distances(self.rows, target)
            distance[order] = np.inf
            order.append(int(np.argmin(distance)))
        chosen = np.array(order)
        return Candidates(self.rows[chosen], lambda i: self.read(chosen[i]))

    def scattered(self, k: int, rng: np.random.Generator, /) -> Candidates:
        """All remaining rows."""
        del rng
        return self.everything(k)

    def promising(
        self, k: int, posterior: Posterior | Posteriors, rng: np.random.Generator, /
    ) -> Candidates:
        """All remaining rows."""
        del posterior, rng
        return self.everything(k)

    def everything(self, k: int) -> Candidates:
        """All remaining rows, if there are at least k."""
        self._require(k)
        return Candidates(self.rows, self.read, self.places)

    def _require(self, k: int) -> None:
        if len(self.rows) < k:
            raise ExhaustedError(
                f"asked for {several(k, 'point')}; left that are feasible, match what is fixed and "
                f"were not asked, told or failed before: {len(self.rows)}. Ask for fewer, "
                "cancel trials that will not run, or repeat points with study.enqueue.",
                left=len(self.rows),
            )


def remaining_pool(pool: Pool, fixed: Mapping[str, Any], excluded: Exclusions) -> FiniteSet:
    """The rows of a pool that match what is fixed and are not excluded."""
    left = pool.matching(fixed)
    places = pool.locate(excluded.points)
    left[places[places >= 0]] = False
    free = np.flatnonzero(left)
    return FiniteSet(
        pool.rows[free], lambda i: [pool.point(int(j)) for j in free[i]], excluded, free
    )


def remaining_grid(
    space: Space, grid: Array, fixed: Mapping[str, Any], excluded: Exclusions
) -> FiniteSet:
    """The points of a feasible grid (n, d) that are not excluded."""
    excluded_at = space.condensed(space.encode(excluded.points))
    places = np.flatnonzero(~among(space.condensed(grid), excluded_at))
    rows = grid[places]
    targets = None if space.presence is None else _snapped(space, blocks_in(space, fixed))
    return FiniteSet(rows, lambda i: read_points(space, rows[i], fixed), excluded, places, targets)


def _snapped(space: Space, blocks: Blocks) -> Blocks:
    """Blocks of points of the space: else a point that lacks a parameter would seem far away."""
    return lambda seed, skip: (space.snap(block) for block in blocks(seed, skip))


def _square_distances(rows: Array, target: Array) -> Array:
    """|row - target|² for rows (n, d): (n,). In chunks, so that a million rows need no copy."""
    distances = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        np.square(rows[part] - target).sum(axis=1, out=distances[part])
    return distances


def read_points(space: Space, at: Array, fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Decoded points, with the fixed values put in exactly and not up to rounding."""
    return [{**point, **fixed} for point in space.decode(at)]


# Sets too large to list, sampled and climbed by gradient.

_LAST_RESORT_GRID = 2_000_000  # a finite space up to this size is listed when sampling fails
_WIDE = 2048  # Sobol candidates of a search
_NEAR = 400  # candidates around each anchor
_ANCHORS = 5
_BRANCHES = 8  # whose best points are anchors and starts of ascents too
_ASCENTS = 8  # gradient ascents per width
_DUPLICATE = 1e-4  # points closer than this in the unit cube are duplicates
_SAME_MAXIMUM = 1e-3  # ascents that end closer than this found the same maximum
_WIDTHS = (0.5, 2.0)  # of the bounds that are climbed: near the best mean, and near the best UCB
_DESIGN = 8  # uniform points for each one of a design in a space with equalities
_TRIES = 128  # blocks drawn before a constraint is declared too tight for rejection sampling
_PATIENCE = 16  # ... or this many, where another method can take over


@dataclass(frozen=True)
class ContinuousSet:
    """A set too large to list: sampled, and climbed by gradient."""

    space: Space
    fixed: Mapping[str, Any]
    excluded: Exclusions

    def in_order(self, k: int, /) -> Candidates:
        """The next feasible points of the study's Sobol sequence; with equalities, spread out."""
        blocks = blocks_in(self.space, self.fixed)(self.excluded.seed, self.excluded.asked)
        rng = np.random.default_rng([self.excluded.seed, self.excluded.asked])
        if self._flat is not None:
            at = self._gather(blocks, _DESIGN * k, rng, k)
            before = self.space.encode(self.excluded.points)
            kinds = self._flat.kinds(np.vstack([at, before]))
            short = self.space.condensed(at)
            return self._candidates(at[farthest(short, self._excluded_at, k, kinds)])
        return self._candidates(self._gather(blocks, k, rng))

    def scattered(self, k: int, rng: np.random.Generator, /) -> Candidates:
        """A freshly scrambled Sobol set: uniform, and free of clumps."""
        blocks = blocks_in(self.space, self.fixed)(rng, 0)
        return self._candidates(self._gather(blocks, max(k, BLOCK), rng, k))

    def promising(
        self, k: int, posterior: Posterior | Posteriors, rng: np.random.Generator, /
    ) -> Candidates:
        """A fresh Sobol set, points near the best observed ones, and gradient ascents from both."""
        blocks = blocks_in(self.space, self.fixed)(rng, 0)
        wide = self._gather(blocks, max(_WIDE, 16 * k), rng, k)
        near = self._around(self._anchors(posterior), wide, rng)
        at = self._admissible(np.vstack([wide, near]))
        if isinstance(posterior, Posteriors):
            starts = posterior.climbs(at, _WIDTHS, _ASCENTS, rng)
            climbed = [climb(f, some, self._free_at(some), self._flat) for some, f in starts]
        else:
            belief = posterior.belief(at)
            climbed = [self._climbed(posterior, belief, w) for w in _WIDTHS]
        at = self._admissible(np.vstack([_merged(np.vstack(climbed)), at]))
        return self._candidates(self._apart(at, k))

    def _candidates(self, at: Array) -> Candidates:
        return Candidates(at, lambda i: read_points(self.space, at[i], self.fixed))

    @cached_property
    def _excluded_at(self) -> Array:
        return self.space.condensed(self.space.encode(self.excluded.points))

    @cached_property
    def _free(self) -> Mask:
        """Columns (d,) that gradient ascent may move: continuous and not fixed."""
        free = self.space.continuous.copy()
        for name in self.fixed:
            free[self.space.columns_of(name)] = False
        return free

    @cached_property
    def _flat(self) -> Flat | None:
        return Flat(self.space, self.fixed) if self.space.flat else None

    def _free_at(self, starts: Array) -> Mask:
        """Columns that ascents from these starts may move: of parameters that are there."""
        if self.space.presence is None or self._flat is not None:
            return self._free
        return np.asarray(self._free & self.space.present(starts))

    def _admissible(self, at: Array) -> Array:
        """The rows clipped, fixed and snapped, less the infeasible, excluded and repeated ones."""
        if self._flat is not None:
            at = self._flat.project(at)
        at = self.space.snap(self.space.hold(np.clip(at, 0.0, 1.0), self.fixed))
        if self.space.rules:  # a step across a border ends on it
            at = into_rules(self.space, at, spread=False)
            at = self.space.snap(self.space.hold(at, self.fixed))
        short = self.space.condensed(at)
        _, first = np.unique(row_keys(short), return_index=True)
        kept = np.sort(first)
        at = at[kept[~among(short[kept], self._excluded_at)]]
        return at[self.space.feasible(at)]

    def _gather(
        self, blocks: Iterator[Array], wanted: int, rng: np.random.Generator, least: int = 0
    ) -> Array:
        """``wanted`` admissible points, or at least ``least`` of them (0: all wanted).

        Tries rejection sampling from the blocks, then points inside the linear constraints, then
        random steps from feasible points, then a list of the whole space if it is finite.
        """
        least = least or wanted
        found, tried = np.zeros((0, self.space.width)), 0
        for block in blocks if self._flat is None else self._flat.blocks(max(wanted, BLOCK), rng):
            found = self._admissible(np.vstack([found, self._into_rules(block)]))
            tried += len(block)
            if len(found) >= wanted:
                return found[:wanted]
            # A tight constraint shows early; the methods below do better, given a start.
            starving = tried >= _PATIENCE * BLOCK and len(found) * _TRIES * BLOCK < wanted * tried
            if tried >= _TRIES * BLOCK or (starving and (len(found) > 0 or self.space.linear)):
                break
        found = self._inside(found, wanted, rng) if self._flat is None else found
        found = self._spread(found, wanted, rng)
        if len(found) >= least:
            return found
        return self._list_after_all(least, len(found), tried)

    def _into_rules(self, block: Array) -> Array:
        """A block with its rows spread over what rules leave: tight ones would refuse most."""
        if not self.space.rules:
            return block
        return into_rules(self.space, self.space.hold(block, self.fixed), spread=True)

    def _inside(self, found: Array, wanted: int, rng: np.random.Generator) -> Array:
        """More points, spread over the polytope of the linear constraints."""
        for _ in range(4 if self.space.linear else 0):
            more = Flat(self.space, self.fixed).draw_within(max(wanted, BLOCK), rng)
            if more is None:
                break
            found = self._admissible(np.vstack([found, more]))
            if len(found) >= wanted:
                break
        return found[rng.permutation(len(found))[:wanted]]

    def _spread(self, found: Array, wanted: int, rng: np.random.Generator) -> Array:
        """More points by random steps from feasible ones: for constraints that are predicates."""
        if len(found) >= wanted:
            return found
        if len(found) == 0:
            seed = Flat(self.space, self.fixed).find_centre()
            if seed is None:
                return found
            found = seed[None, :]
        starts = found  # kept as parents even where they are excluded themselves
        for _ in range(_PATIENCE):  # all rounds: the first steps stay close to their parents
            parents = np.vstack([starts, found])
            parents = parents[rng.integers(len(parents), size=BLOCK)]
            scale = 10.0 ** rng.uniform(-4.0, 0.0, size=(BLOCK, 1))
            steps = scale * rng.standard_normal(parents.shape)
            found = self._admissible(np.vstack([found, parents + steps]))
        return found[rng.permutation(len(found))[:wanted]]

    def _list_after_all(self, k: int, found: int, tried: int) -> Array:
        """List a finite space in which sampling found too few points; an error if it is not."""
        grid = self.space.grid(_LAST_RESORT_GRID, self.fixed)
        if grid is not None:
            return remaining_grid(self.space, grid, self.fixed, self.excluded).everything(k).at
        hint = "" if self.space.linear else " A narrow region is found more easily as covey.Linear."
        raise ExhaustedError(
            f"asked for {several(k, 'point')} but found {found} that are feasible and new among "
            f"{tried} tries. Check the constraints in `where` and what is fixed: together they "
            f"may exclude (almost) everything. Tighter bounds on the parameters help.{hint}",
            left=found,
        )

    def _anchors(self, posterior: Posterior | Posteriors) -> Array:
        """The `_ANCHORS` observed points of highest posterior mean; twice as many of a front."""
        if isinstance(posterior, Posteriors):
            return posterior.anchors(2 * _ANCHORS)
        at = posterior.data.at
        mean = posterior.belief(at).mean if posterior.known is None else posterior.known[0]
        order = np.argsort(-mean, kind="stable")
        return at[np.concatenate([order[:_ANCHORS], self._leaders(at, order, _ANCHORS)])]

    def _climbed(self, posterior: Posterior, belief: Belief, width: float) -> Array:
        """Ascents from the candidates with the largest μ + width·σ, weighed: (m, d)."""
        scores = belief.mean + width * belief.std
        order = np.argsort(-weighed(scores, belief), kind="stable")
        first = np.concatenate([order[:_ASCENTS], self._leaders(belief.at, order, _ASCENTS)])
        starts = belief.at[first]
        return ascend(
            posterior, starts, width, self._free_at(starts), float(scores.min()), self._flat
        )

    def _leaders(self, at: Array, order: Indices, skip: int) -> Indices:
        """The first of each branch in an order of rows, less the first ``skip`` rows of it.

        So every branch is searched closely too, not only the one that leads so far.
        """
        presence = self.space.presence
        if presence is None:
            return order[:0]
        decide = np.concatenate([np.r_[self.space.columns_of(name)] for name in presence.parents])
        _, first = np.unique(row_keys(at[order][:, decide]), return_index=True)
        return order[np.sort(first[first >= skip])[:_BRANCHES]]

    def _apart(self, at: Array, k: int) -> Array:
        """The candidates without near duplicates (`_DUPLICATE`) of earlier or excluded ones.

        Towards the end of a run the best candidates crowd together, and a batch of them would be
        redundant. In a space so small that fewer than k are left, all stay.
        """
        from scipy.spatial import cKDTree

        # One per cell first, so that few pairs are left to compare.
        short = self.space.condensed(at)
        _, first = np.unique(np.round(short / _DUPLICATE), axis=0, return_index=True)
        kept = np.sort(first)
        every, at, short = at, at[kept], short[kept]
        crowded = np.zeros(len(at), dtype=bool)
        if len(self._excluded_at):
            crowded = np.asarray(cKDTree(self._excluded_at).query(short)[0] < _DUPLICATE)
        pairs = cKDTree(short).query_pairs(_DUPLICATE, output_type="ndarray")
        for i, j in pairs[np.lexsort(pairs.T[::-1])]:
            if not crowded[i]:
                crowded[j] = True
        return at[~crowded] if np.sum(~crowded) >= k else every

    def _around(self, anchors: Array, wide: Array, rng: np.random.Generator) -> Array:
        """`_NEAR` points around each anchor: steps, and discrete values redrawn from ``wide``."""
        at = np.repeat(anchors, _NEAR, axis=0)
        at = np.where(self.space.continuous, at + nearby_steps(len(at), self.space.width, rng), at)
        donors = wide[rng.integers(len(wide), size=len(at))]
        for name in self.space.names:
            columns = self.space.columns_of(name)
            if not self.space.continuous[columns].any():
                redrawn = rng.random(len(at)) < 0.3
                at[redrawn, columns] = donors[redrawn, columns]
        if self.space.presence is not None:  # what becomes present is drawn anew, not the middle
            there = self.space.present(np.repeat(anchors, _NEAR, axis=0))
            fresh = np.where(self.space.present(donors), donors, rng.random(at.shape))
            at = np.where(self.space.present(at) & ~there, fresh, at)
        return at


def _merged(at: Array) -> Array:
    """The points without those within `_SAME_MAXIMUM` of an earlier one.

    Several ascents reach the same maximum. EST treats candidates as independent, so copies would
    raise its estimate of max f.
    """
    kept: list[Array] = []
    for point in at:
        if all(np.abs(point - other).max() > _SAME_MAXIMUM for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, at.shape[1])


_GRID = 20_000  # a finite space up to this size is listed outright


def candidate_set(
    space: Space | Pool, fixed: Mapping[str, Any], excluded: Exclusions
) -> CandidateSet:
    """The candidates of a space: listed if it is finite and small, sampled otherwise."""
    if isinstance(space, Pool):
        return remaining_pool(space, fixed, excluded)
    fixed = space.implied(fixed)[0]
    grid = space.grid(_GRID, fixed)
    if grid is not None:
        return remaining_grid(space, grid, fixed, excluded)
    return ContinuousSet(space, fixed, excluded)


def excluded(history: History, seed: int) -> Exclusions:
    """Points that are pending, failed or told; cancelled and lost ones may be proposed again."""
    points = [t.point for t in history.trials if t.status not in ("cancelled", "lost")]
    return Exclusions(points, seed, history.asked_count)
