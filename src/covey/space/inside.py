"""Points inside linear constraints, for when sampling the whole box finds too few."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from covey.arrays import Array
from covey.space.parameters import Parameter
from covey.space.space import Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from covey.arrays import Mask
    from covey.space.constraints import Linear


# Points spread over the polytope that the constraints cut out of a box.

_CORNERS = 64  # corners sought, by as many linear programs
_SWEEPS = 80
_SWEEPS_EACH = 8  # for each dimension, with equalities
_HELD = 1e-9  # by which values that are all held may miss a constraint
_TINY = 1e-9  # a difference of two chains that are as good as one


def half_spaces(
    rows: Sequence[Linear], names: Sequence[str], spans: Array, held: Mapping[str, float]
) -> tuple[Array, Array]:
    """The constraints as rows a·t <= b over the named parameters, ranges (p, 2) scaled to [0, 1].

    ``held`` are numbers of the weighed parameters that are fixed.
    """
    sides = [_halves(row, names, spans, held) for row in rows]
    normals, bounds = (np.concatenate(part) for part in zip(*sides, strict=True))
    return normals, bounds


def _halves(
    row: Linear, names: Sequence[str], spans: Array, held: Mapping[str, float]
) -> tuple[Array, Array]:
    """The constraint as rows a·t <= b over the scaled free parameters."""
    low, reach = spans[:, 0], np.ptp(spans, axis=1)
    weights = np.array([row.weights.get(name, 0.0) for name in names])
    offset = float(weights @ low) + sum(
        weight * held[name] for name, weight in row.weights.items() if name in held
    )
    normal = weights * reach
    scale = float(np.linalg.norm(normal)) or 1.0
    both = [(1.0, row.upper), (-1.0, row.lower)]
    kept = [(sign, sign * (bound - offset)) for sign, bound in both if math.isfinite(bound)]
    return (
        np.array([sign * normal / scale for sign, _ in kept]),
        np.array([bound / scale for _, bound in kept]),
    )


def scatter(
    normals: Array,
    bounds: Array,
    count: int,
    rng: np.random.Generator,
    equal: tuple[Array, Array] | None = None,
    corners: Array | None = None,
) -> Array | None:
    """Points (count, p) spread over {t in [0, 1]^p : A t <= b, E t = e}; None if it is empty.

    Linear programs with random objectives find corners; random mixtures of these start as many
    chains of hit-and-run. Their directions are differences between chains, so they adapt to the
    shape of the polytope, however thin it is. (Our choice.) ``corners`` that are known save the
    linear programs.

    With equalities a direction is projected to their null space and normalised, and one that is
    only rounding is dropped: the difference of two chains that are close is off by a rounding
    error, which the long step along it would blow up, to a sum that is off by more than one.
    """
    if corners is None:
        corners = _corners(
            normals, bounds, rng.standard_normal((_CORNERS, normals.shape[1])), equal
        )
    if corners is None:
        return None
    p = normals.shape[1]
    flat = None if equal is None else Equalities.of(*equal)
    mixed = rng.dirichlet(np.full(len(corners), 0.5), size=count) @ corners
    at = np.clip(mixed + 0.02 * (corners.mean(axis=0) - mixed), 0.0, 1.0)
    walls = np.vstack([normals, np.eye(p), -np.eye(p)])
    limits = np.concatenate([bounds, np.ones(p), np.zeros(p)])
    for sweep in range(_SWEEPS if flat is None else max(_SWEEPS, _SWEEPS_EACH * p)):
        along = at[rng.permutation(count)] - at[rng.permutation(count)]
        if sweep % 4 == 3:  # sometimes in a random direction, so that none is left out
            along = rng.standard_normal((count, p))
        if flat is not None:
            along = flat.circuits(count, rng) if sweep % 2 else along
            at, along = flat.restored(at), flat.directions(along)
        at = np.clip(at + _stride(at, along, walls, limits, rng) * along, 0.0, 1.0)
    return at if flat is None else np.clip(flat.restored(at), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Equalities:
    """Rows E t = e: how to get back to them, and the directions that stay on them."""

    rows: Array  # (m, p)
    values: Array  # (m,)
    inverse: Array  # (p, m), the pseudo-inverse
    basis: Array  # (p, q), orthonormal, of the null space

    @classmethod
    def of(cls, rows: Array, values: Array) -> Self:
        """From the rows and their right-hand sides."""
        _, sizes, right = np.linalg.svd(rows, full_matrices=True)
        rank = int((sizes > 1e-10 * sizes.max(initial=0.0)).sum())
        inverse: Array = np.asarray(np.linalg.pinv(rows, rcond=1e-10), dtype=np.float64)
        return cls(rows, values, inverse, right[rank:].T)

    def restored(self, at: Array) -> Array:
        """Points (n, p) moved by the shortest way, a rounding error, back to the equalities."""
        return at + (self.values - at @ self.rows.T) @ self.inverse.T

    def circuits(self, count: int, rng: np.random.Generator) -> Array:
        """Random directions (count, p) in as few coordinates as the rows allow: two, of a sum.

        On a simplex of many parts chains along these forget their start far sooner.
        """
        p = self.rows.shape[1]
        few = min(p - self.basis.shape[1] + 1, p)
        places = np.argsort(rng.random((count, p)), axis=1)[:, :few]
        inner = np.linalg.svd(np.moveaxis(self.rows[:, places], 0, 1))[2][:, -1, :]
        along = np.zeros((count, p))
        np.put_along_axis(along, places, inner, axis=1)
        return along

    def directions(self, along: Array) -> Array:
        """Unit directions (n, p) in the null space; zero where only rounding is left."""
        along = (along @ self.basis) @ self.basis.T
        size = np.linalg.norm(along, axis=1, keepdims=True)
        return np.where(size > _TINY, along / np.maximum(size, _TINY), 0.0)


def corners_on(rows: tuple[Array, Array], equal: tuple[Array, Array]) -> Array | None:
    """Corners (m, p) of the polytope of some rows and equalities; None if it is empty.

    They depend on nothing else, so those of the last thousand polytopes are remembered: each costs
    up to 16 linear programs or twice as many as it has dimensions, and an ask meets the same
    faces of a mixture again and again.
    """
    packed = [(part.shape, part.tobytes()) for part in (*rows, *equal)]
    return _known_corners(*(piece for pair in packed for piece in pair))


@lru_cache(maxsize=1024)
def _known_corners(*packed: Any) -> Array | None:
    parts = [
        np.frombuffer(data, dtype=np.float64).reshape(shape)
        for shape, data in zip(packed[::2], packed[1::2], strict=True)
    ]
    normals, bounds, matrix, _ = parts
    p = normals.shape[1]
    free = p - int(np.linalg.matrix_rank(matrix, tol=1e-10))
    # In opposite pairs, so that two are enough for the ends of a line.
    half = min(max(_CORNERS // 4, 2 * p) // 2, max(2 * free, 1))
    ways = np.random.default_rng(0).standard_normal((half, p))
    found = _corners(normals, bounds, np.stack([ways, -ways], axis=1).reshape(-1, p), parts[2:])
    if found is not None:
        found.setflags(write=False)
    return found


def _corners(
    normals: Array, bounds: Array, objectives: Array, equal: Sequence[Array] | None = None
) -> Array | None:
    from scipy.optimize import linprog

    rows, values = (None, None) if equal is None else equal
    found = []
    for objective in objectives:
        answer = linprog(
            objective, A_ub=normals, b_ub=bounds, A_eq=rows, b_eq=values, bounds=(0.0, 1.0)
        )
        if not answer.success or answer.x is None:
            return None
        found.append(answer.x)
    return np.array(found)


@dataclass(frozen=True, eq=False)
class Polytope:
    """Linear constraints over ranges of parameters, the free ones scaled to [0, 1]."""

    free: list[str]
    held: Mapping[str, float]
    ranges: Array  # (p, 2), of the free ones
    rows: tuple[Array, Array]  # A t <= b
    equal: tuple[Array, Array]  # E t = e

    @cached_property
    def corners(self) -> Array | None:
        """Some of its corners (m, p); None if it is empty, or nothing is free."""
        return corners_on(self.rows, self.equal) if self.free else None

    @property
    def empty(self) -> bool:
        """Whether no values satisfy the constraints."""
        if self.free:
            return self.corners is None
        # Nothing is free: what is held satisfies each row, which is then 0 <= b, or does not.
        sides = self.rows[1] >= -_HELD, np.abs(self.equal[1]) <= _HELD
        return not all(side.all() for side in sides)

    def spread(self, count: int, rng: np.random.Generator) -> Array:
        """Points (count, p) all over it; it is not empty."""
        if not self.free:
            return np.empty((count, 0))
        at = scatter(*self.rows, count, rng, equal=self.equal, corners=self.corners)
        return np.empty((0, len(self.free))) if at is None else at


def _stride(
    at: Array, along: Array, walls: Array, limits: Array, rng: np.random.Generator
) -> Array:
    """How far (n, 1) to go along each direction: uniform on the chord between the walls."""
    room = np.maximum(limits - at @ walls.T, 0.0)
    speed = along @ walls.T
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = room / speed
    # Of the length of the direction: along a short one a wall comes as slowly near as all others.
    still = 1e-14 * np.minimum(np.linalg.norm(along, axis=1, keepdims=True), 1.0)
    ahead = np.where(speed > still, reach, np.inf).min(axis=1)
    behind = np.where(speed < -still, reach, -np.inf).max(axis=1)
    known = np.isfinite(ahead) & np.isfinite(behind)
    step = np.where(known, behind, 0.0) + rng.random(len(at)) * np.where(known, ahead - behind, 0.0)
    return step[:, None]


# A point well inside linear constraints, by linear programming.


def centres(
    free: Mapping[str, Parameter], held: Mapping[str, float], rows: Sequence[Linear]
) -> Iterator[dict[str, float]]:
    """Points to try in turn, as numbers by name of the free parameters with a weight.

    First the centre of the relaxed problem, whose integers need rounding: it lies deepest inside
    and mostly works. Then one whose integers are whole.

    Args:
        free: the parameters to place; those without a weight are left alone.
        held: numbers of the weighed parameters that are fixed.
        rows: the constraints.
    """
    for whole in (False, True):
        values = _centre(free, held, rows, whole=whole)
        if values is not None:
            yield values


def _centre(
    free: Mapping[str, Parameter],
    held: Mapping[str, float],
    rows: Sequence[Linear],
    *,
    whole: bool,
) -> dict[str, float] | None:
    r"""Centre of the largest ball between the constraints, every range scaled to [0, 1].

    .. math:: \max r \text{ s.t. } a_i^\top t + \lVert a_i \rVert r \le b_i, \; r \le t \le 1 - r

    With ``whole`` the integers stay integers (a mixed-integer program) and the ball extends in the
    other directions only. None if there is no such point.
    """
    from scipy.optimize import linprog

    names = [name for name in free if any(name in row.weights for row in rows)]
    spans = np.array([free[name].span for name in names], dtype=np.float64).reshape(-1, 2)
    low, reach = spans[:, 0], np.ptp(spans, axis=1)
    counted = np.array([whole and free[name].step is not None for name in names], dtype=bool)
    units = np.array(
        [
            max((free[name].size or 1) - 1, 1) if count else 1
            for name, count in zip(names, counted, strict=True)
        ],
        dtype=np.float64,
    )
    normals, bounds = half_spaces(rows, names, spans, held)
    box, edges = _box(counted)
    radii = np.linalg.norm(normals[:, ~counted], axis=1, keepdims=True)
    answer = linprog(
        np.append(np.zeros(len(names)), -1.0),
        A_ub=np.vstack([np.hstack([normals / units, radii]), box]),
        b_ub=np.concatenate([bounds, edges]),
        bounds=[*((0.0, unit) for unit in units), (0.0, 0.5)],
        integrality=np.append(counted, False).astype(np.intp),
    )
    if not answer.success or answer.x is None:
        return None
    values = low + reach * answer.x[:-1] / units
    return dict(zip(names, values.tolist(), strict=True))


def _box(counted: Mask) -> tuple[Array, Array]:
    """Rows that keep the ball inside [0, 1] in the directions it extends."""
    sides = np.eye(len(counted))[~counted]
    ones = np.ones((len(sides), 1))
    rows = np.vstack([np.hstack([-sides, ones]), np.hstack([sides, ones])])
    return rows, np.concatenate([np.zeros(len(sides)), np.ones(len(sides))])


def one_inside(space: Space, fixed: Mapping[str, Any]) -> Array | None:
    """Coordinates (d,) of one feasible point well inside the linear constraints.

    None without linear constraints, or if none was found.
    """
    if not space.linear:
        return None
    free, held = _weighed(space, fixed)
    for values in centres(free, held, space.linear):
        u = space.hold(np.full((1, space.width), 0.5), fixed)
        for name, value in values.items():
            u[:, space.columns_of(name)] = free[name].nearest(np.array([value]))
        u = space.snap(u)
        if space.feasible(u)[0]:
            return np.asarray(u[0])
    return None


def many_inside(
    space: Space, fixed: Mapping[str, Any], count: int, rng: np.random.Generator
) -> Array | None:
    """Coordinates (count, d) spread over the set that satisfies the linear constraints.

    Rounding to integers and predicates may still refuse some of them. None without linear
    constraints, or if no point satisfies them.
    """
    free, held = _weighed(space, fixed)
    if not free:
        return None
    spans = np.array([parameter.span for parameter in free.values()], dtype=np.float64)
    shares = scatter(*half_spaces(space.linear, list(free), spans, held), count, rng)
    if shares is None:
        return None
    u = space.drawn(rng.random((count, space.width)))
    for (name, parameter), (low, high), share in zip(free.items(), spans, shares.T, strict=True):
        u[:, space.columns_of(name)] = parameter.nearest(low + share * (high - low))
    return space.snap(space.hold(u, fixed))


def _weighed(
    space: Space, fixed: Mapping[str, Any]
) -> tuple[dict[str, Parameter], dict[str, float]]:
    """The parameters in linear constraints: the free ones, and the numbers of the fixed ones."""
    weighed = {name for row in space.linear for name in row.weights}
    free = {n: p for n, p in space.parameters.items() if n in weighed and n not in fixed}
    return free, {name: float(fixed[name]) for name in weighed.intersection(fixed)}
