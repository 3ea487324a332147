"""Spaces that equalities leave no volume: points drawn on them, moved to them, climbed along them.

`Flat` does all three for a `Space` whose constraints hold mixtures or linear equalities, with some
parameters fixed. See docs/decisions/0023-mixtures-are-projected.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import ExhaustedError, SpaceError
from covey.space.constraints import Linear
from covey.space.mixture import is_equality
from covey.space.parameters import Parameter, Real
from covey.space.polytope import Polytope, find_polytope

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.space.mixture import Mixture
    from covey.space.pool import Pool
    from covey.space.space import Space

_CORRECTIONS = 40  # of a point that shall satisfy linear equalities
_EXACT = 1e-14  # of a row of unit length
_MOST_FACES = 24  # that are sampled by chains of their own, each of which needs linear programs
_MOST_TRIED = 4 * _MOST_FACES  # faces, of which some may be empty
_ITERATIONS = 40  # of an ascent
_MOST_BLOCKS = 16  # before the set is declared too small
_LOOSE = 0.1  # of points drawn at random: with fewer inside the constraints, chains do better

Objective = Callable[["Array"], "tuple[Array, Array]"]  # points (s, d) -> values, gradients


class Flat:
    """The points of a space that satisfy its equalities, equal to what is fixed."""

    def __init__(self, space: Space, fixed: Mapping[str, Any]) -> None:
        self.space, self.fixed = space, fixed
        self._blends = [(m, m.simplex(space.parameters, fixed)) for m in space.mixtures]
        self._equal = [row for row in space.linear if is_equality(row)]
        self._unequal = [row for row in space.linear if not is_equality(row)]

    def project(self, u: Array) -> Array:
        """Coordinates (n, d) of points near ``u`` (n, d) that satisfy the equalities.

        Every value is one that its parameter has. Where linear equalities leave no point, or only
        integers could satisfy them, a row may still break one.
        """
        u = self.space.snap(self.space.hold(np.clip(u, 0.0, 1.0), self.fixed))
        for mixture, simplex in self._blends:
            self._put(u, mixture, simplex.near(self._amounts(u, mixture)))
        return self._corrected(u) if self._equal else u

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Coordinates (count, d), uniform on every mixture; linear inequalities may refuse some."""
        uniform = rng.random((count, self.space.width))
        u = self.space.hold(self.space.drawn(uniform), self.fixed)
        for mixture, simplex in self._blends:
            self._put(u, mixture, simplex.draw(count, rng))
        return self.project(u)

    def blocks(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        """Blocks (count, d) of points; where linear constraints refuse most, of chains in them."""
        tight = bool(self._equal)
        for _ in range(_MOST_BLOCKS):
            block = None if tight else self.draw(count, rng)
            if block is not None and self._unequal and self._kept(block).mean() < _LOOSE:
                tight, block = True, None
            if block is None:
                block = self.draw_within(count, rng)
            if block is None:
                self.refuse_empty()
            yield self.draw(count, rng) if block is None else block

    def refuse_empty(self) -> None:
        """Raise if a linear program proves that no point satisfies the linear constraints."""
        if self._around_faces().empty:
            rules = "; ".join(map(str, [*(m for m, _ in self._blends), *self.space.linear]))
            given = ", ".join(f"{name}={value!r}" for name, value in self.fixed.items())
            raise ExhaustedError(
                f"no point satisfies these constraints together{f' with {given}' if given else ''} "
                f"and the ranges of the parameters: {rules}. A linear program proves it; widen or "
                "remove one of them" + (", or fix less" if given else ""),
                left=0,
            )

    def find_centre(self) -> Array | None:
        """Coordinates (d,) of a point well inside the linear constraints; None if none is found."""
        if not self.space.linear:
            return None
        parameters = self.space.parameters
        polytope = self._around_faces()
        stepped = [name for name in polytope.names if parameters[name].step is not None]
        values = polytope.find_centre({name: parameters[name].size or 1 for name in stepped})
        if values is None:
            return None
        u = np.full((1, self.space.width), 0.5)
        u = self.project(self._with_values(u, values))
        return np.asarray(u[0]) if self.space.feasible(u)[0] else None

    def _kept(self, u: Array) -> Mask:
        """Which of the points satisfy the linear constraints."""
        kept = np.ones(len(u), dtype=np.bool_)
        for row in self.space.linear:
            columns = {name: u[:, self.space.columns_of(name)] for name in row.names}
            kept &= row.holds(columns, self.space.parameters)
        return kept

    def draw_within(self, count: int, rng: np.random.Generator) -> Array | None:
        """Coordinates (count, d) spread over what all linear constraints leave of random faces.

        None if that is empty.
        """
        faces = [simplex.draw_faces(count, rng) for _, simplex in self._blends]
        bounds = np.hstack([np.hstack(face) for face in faces]) if faces else np.zeros((count, 0))
        _, first, counts = np.unique(bounds, axis=0, return_index=True, return_counts=True)
        polytopes: list[Polytope] = []
        for i in first[np.argsort(-counts, kind="stable")][:_MOST_TRIED].tolist():
            polytope = self._polytope([(low[i], high[i]) for low, high in faces])
            polytopes += [] if polytope.empty else [polytope]
            if len(polytopes) == _MOST_FACES:
                break
        share = math.ceil(count / max(len(polytopes), 1))
        points = []
        for polytope in polytopes:
            u = self.space.drawn(rng.random((share, self.space.width)))
            points.append(self._with_values(u, polytope.draw(share, rng)))
        return self.project(np.vstack(points)[:count]) if points else None

    def _around_faces(self) -> Polytope:
        """The polytope in which parts that may be absent have any amount up to their high.

        It holds all faces, and maybe points of none.
        """
        return self._polytope(
            [
                (np.where(simplex.optional, 0.0, simplex.low), np.maximum(simplex.high, 0.0))
                for _, simplex in self._blends
            ]
        )

    def _polytope(self, faces: Sequence[tuple[Array, Array]]) -> Polytope:
        """What all linear constraints leave of the faces of these bounds."""
        spans = {n: self.space.parameters[n].span for row in self.space.linear for n in row.names}
        for (mixture, _), (low, high) in zip(self._blends, faces, strict=True):
            unit = mixture.unit(self.space.parameters) or 1.0
            ends = (low * unit).tolist(), (high * unit).tolist()
            spans |= dict(zip(mixture.names, zip(*ends, strict=True), strict=True))
        spans |= {name: (float(v), float(v)) for name, v in self.fixed.items() if name in spans}
        ranges = tuple((name, float(low), float(high)) for name, (low, high) in spans.items())
        return find_polytope(ranges, (*self.space.linear, *(_sum_of(m) for m, _ in self._blends)))

    def _with_values(self, u: Array, values: Mapping[str, Array]) -> Array:
        """The points (n, d) with these values (n,) of some parameters, by name."""
        for name, x in values.items():
            u[:, self.space.columns_of(name)] = self.space.parameters[name].nearest(x)
        return u

    # Mixtures.

    def kinds(self, u: Array) -> Indices:
        """Numbers (n,) that are equal for points (n, d) with as many parts in each mixture.

        Mixtures in which any number of parts may be present do not count.
        """
        present = [
            (self._amounts(u, mixture) > 0.0).sum(axis=1)
            for mixture, simplex in self._blends
            if simplex.faces
        ]
        if not present:
            return np.zeros(len(u), dtype=np.intp)
        return np.unique(np.stack(present, axis=1), axis=0, return_inverse=True)[1].reshape(-1)

    def _columns(self, mixture: Mixture) -> Indices:
        every = np.arange(self.space.width)
        return np.concatenate([every[self.space.columns_of(name)] for name in mixture.names])

    def _amounts(self, u: Array, mixture: Mixture) -> Array:
        return mixture.amounts(u[:, self._columns(mixture)], self.space.parameters)

    def _put(self, u: Array, mixture: Mixture, amounts: Array) -> None:
        u[:, self._columns(mixture)] = mixture.placed(amounts, self.space.parameters)

    # Linear equalities.

    def _corrected(self, u: Array) -> Array:
        r"""The points moved to the linear equalities within their bounds, faces kept.

        The shortest correction of the residual that moves only what is free to move:

        .. math:: t \leftarrow clip(t + M A^\top (A M A^\top)^{-1} (b - A t)),

        t the values scaled to [0, 1], M a mask; what would leave its bounds is masked and the
        correction computed again. Mixtures are rows of A, too, unless they have steps.
        """
        names = [name for name in self._weighed if self._moves(name)]
        if not names:
            return u
        columns = np.array([self.space.columns_of(name).start for name in names])
        each = [self.space.parameters[name] for name in names]
        spans = np.array([p.span for p in each])
        low, reach = spans[:, 0], np.ptp(spans, axis=1)
        x = np.stack([p.numbers(u[:, [c]]) for p, c in zip(each, columns, strict=True)], axis=1)
        least, most = self._face_bounds(u, names)
        matrix, target = self._rows_at(u, names)
        t = onto_equalities(
            (x - low) / reach,
            ((least - low) / reach, (most - low) / reach),
            matrix * reach,
            target - (matrix @ low),
        )
        moved = u.copy()
        for j, (p, column) in enumerate(zip(each, columns, strict=True)):
            moved[:, [column]] = p.nearest(low[j] + t[:, j] * reach[j])
        return moved

    @cached_property
    def _weighed(self) -> list[str]:
        """What linear equalities weigh, and the other parts of mixtures they reach into."""
        names = dict.fromkeys(name for row in self._equal for name in row.names)
        for mixture, _ in self._blends:
            if any(name in names for name in mixture.names):
                names |= dict.fromkeys(mixture.names)
        return list(names)

    def _moves(self, name: str) -> bool:
        """Whether corrections may move it: a real without steps that is not fixed."""
        parameter = self.space.parameters[name]
        return name not in self.fixed and isinstance(parameter, Real) and parameter.size is None

    def _face_bounds(self, u: Array, names: list[str]) -> tuple[Array, Array]:
        """Bounds (n, p) of the values of these names, on the faces that the points are on."""
        parameters = self.space.parameters
        low, high = (
            np.tile([parameters[name].span[k] for name in names], (len(u), 1)) for k in (0, 1)
        )
        for mixture, simplex in self._blends:
            unit = mixture.unit(parameters) or 1.0
            least, most = simplex.face_of(self._amounts(u, mixture))
            for j, name in enumerate(mixture.names):
                if name in names:
                    place = names.index(name)
                    low[:, place], high[:, place] = unit * least[:, j], unit * most[:, j]
        return low, high

    def _rows_at(self, u: Array, names: list[str]) -> tuple[Array, Array]:
        """Rows (m, p) of the equalities over these names, and what they shall come to: (n, m)."""
        mixed = [_sum_of(m) for m, _ in self._blends if any(name in names for name in m.names)]
        rows = [*self._equal, *mixed]
        matrix = np.array([[row.weights.get(name, 0.0) for name in names] for row in rows])
        target = np.empty((len(u), len(rows)))
        for i, row in enumerate(rows):
            others = [name for name in row.weights if name not in names]
            rest = sum(row.weights[n] * self._numbers(u, n) for n in others)
            target[:, i] = row.upper - rest
        return matrix, target

    def _numbers(self, u: Array, name: str) -> Array:
        return self.space.parameters[name].numbers(u[:, self.space.columns_of(name)])

    # Ascents.

    def climb(self, objective: Objective, starts: Array, free: Mask) -> Array:
        """Maximise an objective from each start (m, d) within the constraints, on its own face.

        By SLSQP, start by start: with its few columns the linear algebra costs nothing beside the
        objective. Only the free columns (d,) move; steps are ignored here. Returns (m, d).
        """
        from scipy.optimize import Bounds, LinearConstraint, minimize

        climbed = starts.copy()
        for i, start in enumerate(starts):
            moving = np.flatnonzero(free & self._linear_columns)
            low, high = self._column_bounds(start)
            moving = moving[high[moving] > low[moving]]
            if len(moving) == 0:
                continue

            def loss(flat: Array, i: int = i, moving: Indices = moving) -> tuple[float, Array]:
                at = starts.copy()  # an objective may treat each row in its own way
                at[i, moving] = flat
                value, gradient = objective(at)
                return -float(value[i]), -gradient[i, moving]

            rows = []
            for row, lower, upper in self._walls(start):
                still = float(row @ start - row[moving] @ start[moving])  # what stays as it is
                if row[moving].any():
                    rows.append(LinearConstraint(row[None, moving], lower - still, upper - still))
            result = minimize(
                loss,
                np.clip(start[moving], low[moving], high[moving]),
                jac=True,
                method="SLSQP",
                bounds=Bounds(low[moving], high[moving]),
                constraints=rows,
                options={"maxiter": _ITERATIONS, "ftol": 1e-9},
            )
            if np.isfinite(result.x).all():
                climbed[i, moving] = np.clip(result.x, low[moving], high[moving])
        return climbed

    @cached_property
    def _linear_columns(self) -> Mask:
        """Columns (d,) that constraints are linear in, or that none weighs: all but logs."""
        mask = np.ones(self.space.width, dtype=np.bool_)
        for name in {name for row in self.space.linear for name in row.names}:
            if _axis(self.space.parameters[name]) is None:
                mask[self.space.columns_of(name)] = False
        return mask

    def _column_bounds(self, start: Array) -> tuple[Array, Array]:
        """Bounds (d,) of the coordinates on the face of a start (d,)."""
        low, high = np.zeros(self.space.width), np.ones(self.space.width)
        names = [name for mixture, _ in self._blends for name in mixture.names]
        least, most = (side[0] for side in self._face_bounds(start[None, :], names))
        for name, a, b in zip(names, least.tolist(), most.tolist(), strict=True):
            columns = self.space.columns_of(name)
            axis = _axis(self.space.parameters[name])
            if axis is not None:
                low[columns], high[columns] = (a - axis[0]) / axis[1], (b - axis[0]) / axis[1]
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)

    def _walls(self, start: Array) -> Iterator[tuple[Array, float, float]]:
        """Rows a (d,) and bounds of a · u for each constraint, from their values at a start."""
        for row in [*self.space.linear, *(_sum_of(m) for m, _ in self._blends)]:
            normal, now = np.zeros(self.space.width), 0.0
            for name, weight in row.weights.items():
                columns = self.space.columns_of(name)
                axis = _axis(self.space.parameters[name])
                normal[columns] = 0.0 if axis is None else weight * axis[1]
                now += weight * float(self._numbers(start[None, :], name)[0])
            scale = float(np.linalg.norm(normal)) or 1.0
            normal, here = normal / scale, float(normal @ start) / scale
            if is_equality(row):
                yield normal, here, here
            else:
                yield normal, here + (row.lower - now) / scale, here + (row.upper - now) / scale


def tied_to(space: Space | Pool, name: str) -> tuple[str, ...]:
    """The other parameters of the equalities that a parameter is in."""
    rules = [rule for rule in space.constraints if is_equality(rule) and name in rule.names]
    return tuple(dict.fromkeys(n for rule in rules for n in rule.names if n != name))


def with_one_changed(
    space: Space, point: Mapping[str, Any], name: str, values: Sequence[Any]
) -> Array:
    """Coordinates (n, d) of a point with other values of one parameter.

    What equalities tie to it makes up for the change: the other parts of a mixture in proportion
    (Cox's direction), all else by the shortest way. Nothing else moves, even where it lies outside
    its range. Where there is no such point, or only one with other parts than these proportions
    have, the row breaks a constraint.
    """
    at = space.encode([{**point, name: value} for value in values])
    if not tied_to(space, name):
        return at
    mixture = next((m for m in space.mixtures if name in m.names), None)
    every = np.arange(space.width)
    moving = np.concatenate([every[space.columns_of(other)] for other in _reached(space, name)])
    for i, value in enumerate(values):
        if value == point[name]:
            continue
        shares = {} if mixture is None else dict(_in_proportion(mixture, point, name, value))
        for other, x in shares.items():
            at[i, space.columns_of(other)] = space.parameters[other].nearest(np.array([x]))[0]
        try:
            found = Flat(space, {name: value}).project(at[[i]])
        except SpaceError:  # nothing is left for the others: the row stays, and breaks the sum
            continue
        if _same_parts(space, found, shares):
            at[i, moving] = found[0, moving]
    return at


def _reached(space: Space, name: str) -> list[str]:
    """The parameters that equalities tie to one, directly or through others."""
    found = [name]
    for one in found:  # which grows meanwhile
        found += [other for other in tied_to(space, one) if other not in found]
    return found[1:]


def _same_parts(space: Space, u: Array, shares: Mapping[str, float]) -> bool:
    """Whether a point (1, d) has the parts of some shares, but for less than half a step."""
    for name, x in shares.items():
        there = float(space.parameters[name].numbers(u[:, space.columns_of(name)])[0]) > 0.0
        dropped = x > 0.0 and x >= 0.5 * (space.parameters[name].step or 0.0) and not there
        if dropped or (there and not x > 0.0):
            return False
    return True


def _in_proportion(
    mixture: Mixture, point: Mapping[str, Any], name: str, value: float
) -> Iterator[tuple[str, float]]:
    """The other parts of a mixture, in the proportions of a point; alike where they are all 0."""
    others = [other for other in mixture.names if other != name]
    before = sum(float(point[other]) for other in others)
    left = mixture.total - float(value)
    for other in others:
        yield other, left * (float(point[other]) / before if before else 1.0 / len(others))


def _sum_of(mixture: Mixture) -> Linear:
    return Linear(dict.fromkeys(mixture.names, 1.0), lower=mixture.total, upper=mixture.total)


def _axis(parameter: Parameter) -> tuple[float, float] | None:
    """The value at coordinate 0 and the difference to that at 1; None if it is not linear."""
    if getattr(parameter, "log", False) or parameter.scale != "linear":
        return None
    low, high = parameter.span
    if parameter.size is None:
        return low, high - low
    step = (high - low) / max(parameter.size - 1, 1)
    return low - 0.5 * step, parameter.size * step


def farthest(at: Array, others: Array, k: int, groups: Indices | None = None) -> list[int]:
    """Indices of k rows of (n, d), each the farthest from those before it and from ``others``.

    ``groups`` are numbers of the rows and of the others behind them: each row is one of the group
    that had the fewest so far.
    """
    distance = np.full(len(at), np.inf)
    for other in others:
        distance = np.minimum(distance, np.square(at - other).sum(axis=1))
    group = np.zeros(len(at) + len(others), dtype=np.intp) if groups is None else groups
    had = np.bincount(group[len(at) :], minlength=int(group.max(initial=0)) + 1)
    group = group[: len(at)]
    chosen: list[int] = []
    for _ in range(k):
        left = np.setdiff1d(np.arange(len(at)), chosen)
        turn = left[had[group[left]] == had[group[left]].min()]
        chosen.append(int(turn[np.argmax(distance[turn])]))
        had[group[chosen[-1]]] += 1
        distance = np.minimum(distance, np.square(at - at[chosen[-1]]).sum(axis=1))
    return chosen


def onto_equalities(t: Array, bounds: tuple[Array, Array], matrix: Array, target: Array) -> Array:
    """Points (n, p) near ``t`` within bounds with matrix @ t = target (n, m), where there are."""
    scale = np.linalg.norm(matrix, axis=1)
    matrix, target = matrix / scale[:, None], target / scale
    t = np.clip(t, *bounds)
    for _ in range(_CORRECTIONS):
        residual = target - t @ matrix.T
        if np.abs(residual).max(initial=0.0) <= _EXACT:
            break
        able, step = np.ones(t.shape), np.zeros(t.shape)
        for _ in range(t.shape[1]):
            masked = matrix[None, :, :] * able[:, None, :]
            gram = masked @ matrix.T + 1e-14 * np.eye(len(matrix))
            step = (np.linalg.solve(gram, residual[:, :, None])[:, None, :, 0] @ masked)[:, 0, :]
            stuck = ((t <= bounds[0]) & (step < 0.0)) | ((t >= bounds[1]) & (step > 0.0))
            if not (stuck & (able > 0.0)).any():
                break
            able = np.where(stuck, 0.0, able)
        t = np.clip(t + step, *bounds)
    return t
