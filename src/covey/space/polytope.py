"""Polytopes: what linear constraints leave of ranges; their corners, a centre, points all over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array
from covey.space.constraints import Linear

if TYPE_CHECKING:
    from covey.arrays import Indices

Span = tuple[str, float, float]  # a parameter and the ends of its range

_SWEEPS, _SWEEPS_EACH = 80, 8  # moves of every chain: so many at least, and for each dimension
_CORNERS = 16  # at most; or twice the number of dimensions
_HELD = 1e-9  # by which values that are all held may miss a constraint
_SHORT = 1e-14  # a direction or speed that is only rounding


@lru_cache(maxsize=1024)
def find_polytope(spans: tuple[Span, ...], rules: tuple[Linear, ...]) -> Polytope:
    """Return the polytope of these ranges and constraints, the same one at every call.

    Its corners take linear programs, and an ask meets the same faces of a mixture again and again.
    """
    return Polytope(spans, rules)


class Polytope:
    """The values that linear constraints leave of the ranges of their parameters.

    Parameters whose range is one value are held; the others are scaled to [0, 1]: t (p,) with
    A t <= b and E t = e, rows of unit length.
    """

    def __init__(self, spans: Sequence[Span], rules: Sequence[Linear]) -> None:
        self.names = [name for name, *_ in spans]
        ends = np.array([span[1:] for span in spans], dtype=np.float64).reshape(-1, 2)
        self.low, self.reach = ends[:, 0], np.ptp(ends, axis=1)
        self.free: Indices = np.flatnonzero(self.reach > 0.0)
        equal = [rule for rule in rules if rule.lower == rule.upper]
        unequal = [rule for rule in rules if rule.lower != rule.upper]
        self.matrix, self.values = self._rows([(1.0, rule, rule.upper) for rule in equal])
        self.normals, self.bounds = self._rows(
            [(1.0, rule, rule.upper) for rule in unequal]
            + [(-1.0, rule, rule.lower) for rule in unequal]
        )

    def _rows(self, sides: Sequence[tuple[float, Linear, float]]) -> tuple[Array, Array]:
        """Rows (m, p) of unit length over the free parameters, and their right-hand sides (m,)."""
        sides = [side for side in sides if math.isfinite(side[2])]
        weights = np.array(
            [[sign * rule.weights.get(n, 0.0) for n in self.names] for sign, rule, _ in sides]
        ).reshape(len(sides), len(self.names))
        bounds = np.array([sign * bound for sign, _, bound in sides]) - weights @ self.low
        rows = (weights * self.reach)[:, self.free]
        lengths = np.linalg.norm(rows, axis=1)
        lengths[lengths == 0.0] = 1.0
        return rows / lengths[:, None], bounds / lengths

    @cached_property
    def corners(self) -> Array | None:
        """Some of its corners (m, p), by linear programs in random directions; None if empty."""
        from scipy.optimize import linprog

        p = len(self.free)
        if p == 0:  # each row is then 0 <= b, or does not hold
            held = (self.bounds >= -_HELD).all() and (np.abs(self.values) <= _HELD).all()
            return np.empty((1, 0)) if held else None
        dimensions = p - _rank(self.matrix)
        # In opposite pairs, so that two are enough for the ends of a line.
        half = min(max(_CORNERS, 2 * p) // 2, max(2 * dimensions, 1))
        ways = np.random.default_rng(0).standard_normal((half, p))
        corners = []
        for way in np.stack([ways, -ways], axis=1).reshape(-1, p):
            answer = linprog(
                way,
                A_ub=self.normals,
                b_ub=self.bounds,
                A_eq=self.matrix,
                b_eq=self.values,
                bounds=(0.0, 1.0),
            )
            if not answer.success or answer.x is None:
                return None
            corners.append(answer.x)
        return np.array(corners)

    @property
    def empty(self) -> bool:
        """Whether no values satisfy the constraints."""
        return self.corners is None

    def draw(self, count: int, rng: np.random.Generator) -> Mapping[str, Array]:
        """Return values (count,) of every parameter, uniform on it; it must not be empty."""
        at = np.zeros((len(self.names), count))
        if len(self.free):
            at[self.free] = self._walk(count, rng).T
        return self._by_name(self.low[:, None] + at * self.reach[:, None])

    def _by_name(self, values: Array) -> dict[str, Array]:
        return dict(zip(self.names, values, strict=True))

    def _walk(self, count: int, rng: np.random.Generator) -> Array:
        """Points (count, p) in [0, 1], each the end of a chain of hit-and-run moves.

        Chains start at random mixtures of corners and move in coordinates of the null space of
        the equalities, so that sums do not drift. Every other direction is the difference of two
        chains, which adapts to the shape of the polytope, however thin it is; the others change
        few values each. (Our choice.)
        """
        corners = np.empty((1, len(self.free))) if self.corners is None else self.corners
        centre = corners.mean(axis=0)
        origin = centre + np.linalg.pinv(self.matrix) @ (self.values - self.matrix @ centre)
        basis = np.linalg.svd(self.matrix)[2][_rank(self.matrix) :].T
        walls = np.vstack([self.normals @ basis, basis, -basis])
        limits = np.concatenate([self.bounds - self.normals @ origin, 1.0 - origin, origin])
        starts = rng.dirichlet(np.full(len(corners), 0.5), size=count) @ corners
        at = (0.98 * starts + 0.02 * centre - origin) @ basis
        for sweep in range(max(_SWEEPS, _SWEEPS_EACH * len(origin))):
            if sweep % 2:
                along = self._few_values(count, rng) @ basis
            else:
                along = at[rng.permutation(count)] - at[rng.permutation(count)]
            length = np.linalg.norm(along, axis=1, keepdims=True)
            along = np.where(length > _SHORT, along / np.maximum(length, _SHORT), 0.0)
            at = at + _strides(at, along, (walls, limits), rng) * along
        at = origin + at @ basis.T
        # A last rounding error matters where equal values are tiny.
        at = at + (self.values - at @ self.matrix.T) @ np.linalg.pinv(self.matrix).T
        return np.clip(at, 0.0, 1.0)

    def _few_values(self, count: int, rng: np.random.Generator) -> Array:
        """Random directions (count, p), each in the fewest coordinates that keep some of the rows.

        These are the equalities and a random half of the inequalities: along a thin slab only what
        keeps its two walls goes far. One sum needs two coordinates. Such moves forget where they
        began far sooner than others do when there are many dimensions.
        """
        p = len(self.free)
        kept = np.vstack([self.matrix, self.normals[rng.random(len(self.normals)) < 0.5]])
        few = min(_rank(kept) + 1, p)
        places = np.argsort(rng.random((count, p)), axis=1)[:, :few]
        along = np.zeros((count, p))
        null = np.linalg.svd(np.moveaxis(kept[:, places], 0, 1))[2][:, -1, :]
        np.put_along_axis(along, places, null, axis=1)
        return along

    def find_centre(self, levels: Mapping[str, int]) -> Mapping[str, Array] | None:
        r"""Return values (1,) at the centre of the largest ball inside, some of them at a level.

        .. math:: \max r : \; a_i^\top t + \lVert a_i \rVert r \le b_i, \; r \le t \le 1 - r

        ``levels`` says how many values a parameter has that is no real; the ball extends in the
        other directions only (a mixed-integer program). None if there is no such point.
        """
        from scipy.optimize import linprog

        free = [self.names[j] for j in self.free]
        whole = np.array([name in levels for name in free], dtype=bool)
        units = np.array([max(levels.get(name, 2) - 1, 1) for name in free], dtype=np.float64)
        sides = np.eye(len(free))[~whole]
        radii = np.linalg.norm(self.normals[:, ~whole], axis=1)
        rows = np.vstack([self.normals / units, -sides, sides])
        answer = linprog(
            np.append(np.zeros(len(free)), -1.0),
            A_ub=np.column_stack([rows, np.concatenate([radii, np.ones(2 * len(sides))])]),
            b_ub=np.concatenate([self.bounds, np.zeros(len(sides)), np.ones(len(sides))]),
            A_eq=np.column_stack([self.matrix / units, np.zeros(len(self.matrix))]),
            b_eq=self.values,
            bounds=[*((0.0, unit) for unit in units), (0.0, 0.5)],
            integrality=np.append(whole, False).astype(np.intp),
        )
        if not answer.success or answer.x is None:
            return None
        at = np.zeros(len(self.names))
        at[self.free] = answer.x[:-1] / units
        return self._by_name((self.low + at * self.reach)[:, None])


def _rank(rows: Array) -> int:
    """The rank of rows (m, p) of unit length."""
    return int(np.linalg.matrix_rank(rows, tol=1e-10))


def _strides(
    at: Array, along: Array, walls: tuple[Array, Array], rng: np.random.Generator
) -> Array:
    """How far (n, 1) to go along each direction: uniform on the chord between the walls."""
    normals, limits = walls
    room = np.maximum(limits - at @ normals.T, 0.0)
    speed = along @ normals.T
    with np.errstate(divide="ignore", invalid="ignore"):
        times = room / speed
    ahead = np.where(speed > _SHORT, times, np.inf).min(axis=1)
    behind = np.where(speed < -_SHORT, times, -np.inf).max(axis=1)
    known = np.isfinite(ahead) & np.isfinite(behind)
    ahead, behind = np.where(known, ahead, 0.0), np.where(known, behind, 0.0)
    return (behind + rng.random(len(at)) * (ahead - behind))[:, None]
