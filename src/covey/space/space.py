"""`Space`: a search space of named parameters, with known constraints on its points."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.conditions import Presence, neutral
from covey.space.constraints import (
    Constraint,
    Linear,
    Predicate,
    accepts,
    checked_where,
    describe_rule,
    enforce,
    singles_of,
)
from covey.space.kinds import all_levels, checked_parameters
from covey.space.mixture import Mixture, is_equality, mixtures_of, parts_as_given
from covey.space.names import digest, missing, unknown
from covey.space.parameters import Parameter, Real
from covey.space.rules import Implies
from covey.space.steps import MANY_LEVELS

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask


class Space:
    """A search space of named parameters, encoded into [0, 1]^d.

    ``where`` holds known constraints: :class:`Linear`, :class:`Mixture`, or functions of the point
    that return True where it may be tried. The parts of a mixture in steps have its step.

    >>> from covey import Choice, Real
    >>> space = Space({"x": Real(0, 2), "kind": Choice(["a", "b"])})
    >>> space.encode([{"x": 1.0, "kind": "b"}])
    array([[0.5, 0. , 1. ]])
    """

    def __init__(
        self, parameters: Mapping[str, Parameter], where: Sequence[Constraint | Predicate] = ()
    ) -> None:
        self._where = checked_where(where)
        self._parameters = parts_as_given(checked_parameters(parameters), self.mixtures)
        for rule in self.constraints:
            rule.validate(self._parameters)
        for mixture in self.mixtures:
            self._parameters |= mixture.refined(self._parameters)
        stops = np.cumsum([parameter.width for parameter in self._parameters.values()]).tolist()
        starts = [0, *stops[:-1]]
        self._slices = dict(zip(self._parameters, map(slice, starts, stops), strict=True))
        self._presence = Presence.of(self._parameters, self._slices)
        if self._presence is not None:
            self._presence.refuse_tied([rule for rule in self.constraints if is_equality(rule)])

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name, read only."""
        return MappingProxyType(self._parameters)

    @property
    def where(self) -> tuple[Constraint | Predicate, ...]:
        """The constraints as they were given."""
        return self._where

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints that can be written down."""
        return tuple(rule for rule in self._where if isinstance(rule, Constraint))

    @property
    def linear(self) -> tuple[Linear, ...]:
        """The constraints that are linear."""
        return tuple(rule for rule in self._where if isinstance(rule, Linear))

    @cached_property
    def mixtures(self) -> tuple[Mixture, ...]:
        """The constraints that are mixtures."""
        return mixtures_of(self._where)

    @cached_property
    def flat(self) -> bool:
        """Whether an equality leaves it no volume: points are drawn on it and moved to it."""
        return any(map(is_equality, self._where))

    @property
    def rules(self) -> tuple[Implies, ...]:
        """The constraints that follow from a category."""
        return tuple(rule for rule in self._where if isinstance(rule, Implies))

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """The constraints that are functions of the point."""
        return tuple(rule for rule in self._where if not isinstance(rule, Constraint))

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names in order."""
        return tuple(self._parameters)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the model sees: every parameter."""
        return self.names

    @property
    def width(self) -> int:
        """Number of encoded columns, d."""
        return sum(parameter.width for parameter in self._parameters.values())

    @property
    def presence(self) -> Presence | None:
        """What decides which parameters are present; None if all of them always are."""
        return self._presence

    @cached_property
    def size(self) -> int | None:
        """Number of points before constraints, or None if a parameter is continuous.

        Of the parts of a mixture, the number of mixtures.
        """
        return self._size({})

    def _size(self, fixed: Mapping[str, Any]) -> int | None:
        if self._presence is not None:
            return self._presence.size(fixed)
        parts = {name for mixture in self.mixtures for name in mixture.names}
        free = [p for name, p in self._parameters.items() if name not in parts | fixed.keys()]
        sizes = [p.size for p in free] + [
            mixture.simplex(self._parameters, fixed).size for mixture in self.mixtures
        ]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @cached_property
    def continuous(self) -> Mask:
        """Mask (d,) of the columns that belong to continuous parameters."""
        mask = np.zeros(self.width, dtype=np.bool_)
        for name, parameter in self._parameters.items():
            mask[self._slices[name]] = parameter.continuous or name in self._shares
        mask.setflags(write=False)
        return mask

    @cached_property
    def _shares(self) -> frozenset[str]:
        """The real parts of mixtures: they move together, however few values each of them has."""
        parts = (name for mixture in self.mixtures for name in mixture.names)
        return frozenset(name for name in parts if isinstance(self._parameters[name], Real))

    @cached_property
    def groups(self) -> tuple[int, ...] | None:
        """The length-scale that each of the d columns has, by number; None if each has its own.

        The columns of a choice that has features share one.
        """
        if not self._described:
            return None
        found: list[int] = []
        for name, parameter in self._parameters.items():
            own = [0] * parameter.width if name in self._described else range(parameter.width)
            found += [(found[-1] + 1 if found else 0) + place for place in own]
        return tuple(found)

    @cached_property
    def _described(self) -> dict[str, Choice]:
        """The choices that have features."""
        choices = {n: p for n, p in self._parameters.items() if isinstance(p, Choice)}
        return {name: choice for name, choice in choices.items() if choice.features is not None}

    def drawn(self, uniform: Array) -> Array:
        """Coordinates of points drawn fairly, from uniform numbers (n, d); still to be snapped."""
        if not self._described:
            return uniform
        u = uniform.copy()
        for name, choice in self._described.items():
            u[:, self._slices[name]] = choice.drawn(uniform[:, self._slices[name]])
        return u

    @cached_property
    def absent_at(self) -> Array | None:
        """Coordinates (d,) of parameters that may be absent, where they are; nan for the others.

        None if every parameter is always present.
        """
        if self._presence is None:
            return None
        u = np.full(self.width, np.nan)
        for name in self._presence.needs:
            u[self._slices[name]] = neutral(self._parameters[name])
        return u

    def levels(self, fixed: Collection[str] = ()) -> tuple[slice, ...]:
        """The encoded columns of each parameter that has levels or options, and is not fixed.

        With more than a hundred levels a parameter is as good as real, and so is any real part of a
        mixture.
        """
        return tuple(
            self._slices[name]
            for name, parameter in self._parameters.items()
            if name not in fixed
            and name not in self._shares
            and 1 < (parameter.size or 0) <= MANY_LEVELS
        )

    def resolution(self, share: float) -> Array:
        """Differences (width,) below which encoded points are alike: a share of each range.

        Of a parameter with levels or options no two are alike: half the smallest step, if less.
        The same holds for the steps of a real, however many they are.
        """
        least = np.full(self.width, share)
        for name, parameter in self._parameters.items():
            if share and parameter.finest is not None:
                least[self._slices[name]] = min(share, parameter.finest)
            elif 1 < (parameter.size or 0) <= MANY_LEVELS and share:
                places = np.sort(np.asarray(parameter.levels()), axis=None)
                steps = np.diff(places)
                least[self._slices[name]] = min(share, 0.5 * float(steps[steps > 0.0].min()))
        return least

    def columns_of(self, name: str) -> slice:
        """The encoded columns of one parameter."""
        if name not in self._slices:
            raise unknown(name, self.names, "parameter", "this space")
        return self._slices[name]

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points; constraints are not checked."""
        if isinstance(points, Mapping):
            raise SpaceError("encode takes a list of points, got one dict; write encode([point])")
        u = np.empty((len(points), self.width))
        for name, parameter in self._parameters.items():
            try:
                values, rows = self._column(points, name)
                u[rows, self._slices[name]] = parameter.encode(values)
            except KeyError:
                raise missing([name], self.names, "this space") from None
            except SpaceError as error:
                raise SpaceError(f"parameter {name!r}: {error}") from error
        return u if self._presence is None else self._cleared(u, points, self._presence)

    def placed(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of points that may have values of absent parameters, or lack some.

        The former are ignored, and what is lacking is at the middle of its range.
        """
        u = np.tile(
            np.concatenate([neutral(p) for p in self._parameters.values()]), (len(points), 1)
        )
        for name, parameter in self._parameters.items():
            rows = [i for i, point in enumerate(points) if name in point]
            u[rows, self._slices[name]] = parameter.place([points[i][name] for i in rows])
        return self.snap(u)

    def _column(self, points: Sequence[Mapping[str, Any]], name: str) -> tuple[list[Any], Any]:
        """The values of one parameter, and the rows of the points that have it."""
        if self._presence is None or name not in self._presence:
            return [point[name] for point in points], slice(None)
        rows = [i for i, point in enumerate(points) if name in point]
        return [points[i][name] for i in rows], rows

    def _cleared(self, u: Array, points: Sequence[Mapping[str, Any]], presence: Presence) -> Array:
        """Coordinates with absent parameters neutral; points that lack one too many are refused."""
        for name in presence.needs:
            lacking = [i for i, point in enumerate(points) if name not in point]
            u[lacking, self._slices[name]] = neutral(self._parameters[name])
        for name, rows in presence.rows(u).items():
            odd = [i for i, point in enumerate(points) if (name in point) != rows[i]]
            if odd:
                presence.complete(self._values(points[odd[0]]))
        return u

    def decode(self, u: Array) -> list[dict[str, Any]]:
        """Points at coordinates (n, d); those outside [0, 1] are clipped."""
        u = self._coordinates(u)
        columns = [p.decode(u[:, self._slices[name]]) for name, p in self._parameters.items()]
        names = self.names
        points = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        for name, rows in ({} if self._presence is None else self._presence.rows(u)).items():
            for i in np.flatnonzero(~rows).tolist():
                del points[i][name]
        return points

    def snap(self, u: Array) -> Array:
        """Coordinates (n, d) of the points at ``u``: encode(decode(u)) without the points."""
        u = self._coordinates(u)
        snapped = np.zeros_like(u)
        for name, parameter in self._parameters.items():
            columns = self._slices[name]
            snapped[:, columns] = parameter.snap(u[:, columns])
        return snapped if self._presence is None else self._presence.cleared(snapped)

    def present(self, u: Array) -> Mask:
        """Which coordinates (n, d) belong to a parameter that is present in their row."""
        u = self._coordinates(u)
        return np.ones(u.shape, dtype=bool) if self._presence is None else self._presence.present(u)

    def condensed(self, u: Array) -> Array:
        """Coordinates in fewer columns: a Choice takes one, the index of its option.

        For snapped ``u`` they are equal for equal points only, and close for points as close as in
        ``u``, since two options differ by at least 1. With many options they are far shorter.
        """
        u = self._coordinates(u)
        return np.hstack(
            [p.condensed(u[:, self._slices[name]]) for name, p in self._parameters.items()],
            dtype=np.float64,
        )

    def feasible(self, u: Array) -> Mask:
        """Whether the points at coordinates (n, d) satisfy every constraint.

        Functions of the point are called once for each point that passes the other constraints,
        which cost O(n).
        """
        u = self._coordinates(u)
        mask = np.ones(len(u), dtype=np.bool_)
        there = {} if self._presence is None else self._presence.rows(u)
        for rule in singles_of(self.constraints):
            columns = {name: u[:, self._slices[name]] for name in rule.names}
            holds = rule.holds(columns, self._parameters)
            for name in there.keys() & set(rule.names):  # it says nothing about what is absent
                holds |= ~there[name]
            mask &= holds
        if self.predicates:
            left = np.flatnonzero(mask)
            for i, point in zip(left.tolist(), self.decode(u[left]), strict=True):
                mask[i] = all(accepts(predicate, point) for predicate in self.predicates)
        return mask

    def check(self, point: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point in canonical form, or an error that says what is wrong with it.

        With ``partial`` some names suffice and constraints are not checked, as for parameters held
        fixed.
        """
        if not isinstance(point, Mapping):
            raise SpaceError(f"a point must be a dict such as {{'x': 0.5}}, got {point!r}")
        for name in point:
            self.columns_of(name)
        if self._presence is None:
            self._complete(point, partial)
        checked = self._values(point)
        if self._presence is not None and partial:
            self._presence.implied(checked)  # raises, where one rules another out
        elif self._presence is not None:
            self._presence.complete(checked)
        for rule in () if partial else self._where:
            enforce(rule, checked, self._parameters)
        return checked

    def _values(self, point: Mapping[str, Any]) -> dict[str, Any]:
        checked = {}
        for name in self.names:
            if name in point:
                try:
                    checked[name] = self._parameters[name].check(point[name])
                except SpaceError as error:
                    raise SpaceError(f"parameter {name!r}: {error}") from error
        return checked

    def _complete(self, point: Mapping[str, Any], partial: bool) -> None:
        absent = [name for name in self.names if name not in point]
        if absent and not partial:
            raise missing(absent, self.names, "this space")

    def hold(self, u: Array, fixed: Mapping[str, Any]) -> Array:
        """A copy of coordinates (n, d) with the columns of fixed parameters set."""
        held = self._coordinates(u).copy()
        fixed, left = self.implied(fixed)
        for name, value in fixed.items():
            held[:, self._slices[name]] = self._parameters[name].encode([value])
        return held if self._presence is None else self._presence.moved(held, left)

    def implied(self, fixed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """All that is fixed with these values, and values left to parameters that decide on them.

        A parameter that is fixed is present, so those that its condition names are fixed too, or
        have only some of their values left.
        """
        checked = self.check(fixed, partial=True)
        return (checked, {}) if self._presence is None else self._presence.implied(checked)

    def grid(self, limit: int, fixed: Mapping[str, Any] | None = None) -> Array | None:
        """Coordinates (m, d) of every feasible point, the last parameter running fastest.

        None if the space, with ``fixed`` held, is continuous or has more than ``limit`` points.
        Where parameters are conditional, those that decide run slowest.
        """
        fixed = self.check(fixed or {}, partial=True)
        size = self._size(fixed)
        if self._presence is not None:
            few = (size or limit + 1) <= limit
            rows = self._presence.listed(self.names, fixed, limit) if few else None
            return None if rows is None else rows[self.feasible(rows)]
        if size is None or size > limit:
            return None
        rank, u = np.arange(size), np.zeros((size, self.width))
        for columns, level in reversed(self._factors(fixed)):
            # Mixed radix; np.unravel_index stops at 64 parameters.
            rank, place = np.divmod(rank, len(level))
            u[:, columns] = level[place]
        return u[self.feasible(u)]

    def _factors(self, fixed: Mapping[str, Any]) -> list[tuple[Indices, Array]]:
        """What the points are all combinations of: columns, and the coordinates they may have.

        A factor is a parameter, or a mixture in the place of its first part.
        """
        every = np.arange(self.width)
        factors = []
        mixture_of = {name: mixture for mixture in self.mixtures for name in mixture.names}
        for name, p in self._parameters.items():
            mixture = mixture_of.get(name)
            if mixture is not None and name == next(n for n in self.names if n in mixture.names):
                columns = np.concatenate([every[self._slices[n]] for n in mixture.names])
                factors.append((columns, mixture.every(self._parameters, fixed)))
            elif mixture is None:
                level = p.encode([fixed[name]]) if name in fixed else all_levels(p)
                factors.append((every[self._slices[name]], level))
        return factors

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it; an option that is no scalar as ``{"option": index}``."""
        return {
            name: self._parameters[name].to_json(value)
            for name, value in self.check(point, partial=True).items()
        }

    def from_json(self, obj: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point that :meth:`to_json` wrote; its constraints are not checked again."""
        if not isinstance(obj, Mapping):
            raise SpaceError(f"a point in JSON must be an object, got {obj!r}")
        if self._presence is None:
            self._complete(obj, partial)
        point = {}
        for name, value in obj.items():
            if name not in self._parameters:
                self.columns_of(name)  # raises, naming the parameters there are
            point[name] = self._value_from_json(name, value)
        if self._presence is not None and not partial:
            self._presence.complete(point)
        return {name: point[name] for name in self._parameters if name in point}

    def _value_from_json(self, name: str, value: Any) -> Any:
        try:
            return self._parameters[name].from_json(value)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; ``opaque`` if a part cannot be written down."""
        if self.written is not None:
            return dict(self.written)
        return {
            "kind": "space",
            "parameters": [
                {"name": name, **parameter.describe()}
                for name, parameter in self._parameters.items()
            ],
            "where": [describe_rule(rule) for rule in self._where],
            "opaque": bool(self.predicates)
            or any(parameter.opaque for parameter in self._parameters.values()),
        }

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the description; functions of the point enter by name only."""
        return digest(self.describe())

    # The description of a space by a log that does not hold all of it, such as functions.
    written: Mapping[str, Any] | None = None
    path: ClassVar[None] = None  # the file of a pool; a space is written down

    def verify_source(self) -> None:
        """Do nothing, where a pool compares its file with its rows."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        mine, theirs = list(self._parameters.items()), list(other._parameters.items())
        return mine == theirs and self._where == other._where

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        where = f", where={list(self._where)!r}" if self._where else ""
        return f"Space({self._parameters!r}{where})"

    def _coordinates(self, u: Array) -> Array:
        u = np.asarray(u, dtype=np.float64)
        if u.ndim != 2 or u.shape[1] != self.width:
            raise SpaceError(
                f"encoded points must have shape (n, {self.width}), got {u.shape}; "
                "write u[None, :] for one point"
            )
        if np.isnan(u).any():
            row = int(np.flatnonzero(np.isnan(u).any(axis=1))[0])
            raise SpaceError(f"encoded point {row} holds nan; every coordinate must be a number")
        return u
