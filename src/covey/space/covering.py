"""The space that a model sees: it covers what is searched and what was told.

After an extension some points lie outside the space. `covering` gives them coordinates, by the
space and the points alone; batches stay inside. Which changes there may be is in changes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.conditions import Presence, neutral
from covey.space.features import OWN
from covey.space.names import is_scalar, missing, outline, plain, same
from covey.space.pool import Pool
from covey.space.space import Space
from covey.space.table import OneHot

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask

_ROUNDING = 1e-9  # of a coordinate
# Values that are gone, each in a column of its own; each has a length-scale to be learnt, and of
# more the last share one (our choice).
_MOST_APART = 32
_OF_WIDTH = ("absent_at", "continuous", "groups")  # what a space keeps that depends on its columns


class _Covering:
    """The columns of values that are gone: one for each, behind those of the space."""

    searched: Any  # the space without the points
    apart: tuple[tuple[str, Any], ...]  # values that are no options, by their parameters

    @property
    def width(self) -> int:
        """Number of encoded columns, d."""
        return int(self.searched.width) + min(len(self.apart), _MOST_APART)

    def _column_of(self, name: str, value: Any) -> int | None:
        """The column of a value that is gone; None if it is not."""
        value = plain(value)
        for place, (whose, gone) in enumerate(self.apart):
            if whose == name and same(gone, value):
                return int(self.searched.width) + min(place, _MOST_APART - 1)
        return None


def _distinct(points: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """The values that points have of a parameter, in order."""
    found: list[Any] = []
    known = set()
    for value in (plain(point[name]) for point in points if name in point):
        key = (type(value), value) if is_scalar(value) else None
        if key not in known if key else not any(same(value, other) for other in found):
            found.append(value)
            known.add(key)
    return found


class CoveringSpace(_Covering, Space):
    """A space that also has coordinates for points outside, such as those from before it changed.

    Points inside have the coordinates of the space. Numbers beyond a range lie outside [0, 1], on
    the same scale; an option that is gone has a column of its own, in which all candidates are 0.
    What is absent by the conditions of now is neutral, whatever value the point has of it.
    """

    searched: Space
    reach: Mapping[str, float]  # range of what was told, where a single number is left

    @classmethod
    def of(cls, space: Space, points: Sequence[Mapping[str, Any]]) -> Self:
        """The space with columns for options that only these points have."""
        apart, reach = [], {}
        for name, choice in space.parameters.items():
            if not isinstance(choice, Choice):
                continue
            values = _distinct(points, name)
            apart += [(name, value) for value in values if not choice.holds(value)]
            if choice.size == 1 and choice.numeric:
                told = [choice.options[0], *(value for value in values if choice.holds(value))]
                reach[name] = float(np.ptp(told)) or 1.0
        made = cls.__new__(cls)
        made.__dict__.update({k: v for k, v in vars(space).items() if k not in _OF_WIDTH})
        made.searched, made.apart, made.reach = space, tuple(apart), reach
        if space.presence is not None:
            made._presence = replace(space.presence, more=made.width - space.width)
        return made

    @cached_property
    def groups(self) -> tuple[int, ...] | None:
        """The length-scale of each column; an option that is gone shares those of its features."""
        own = self.searched.groups
        if own is None or not self.apart:
            return own
        every = list(own)
        for name, _ in self.apart[: self.width - len(own)]:
            shared = name in self._described
            every.append(own[self.columns_of(name).start] if shared else max(every) + 1)
        return tuple(every)

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, inside or among those that it covers."""
        if isinstance(points, Mapping):
            return super().encode(points)  # which raises
        u = np.zeros((len(points), self.width))
        for name, parameter in self.parameters.items():
            columns = self.columns_of(name)
            u[:, columns] = neutral(parameter)
            rows = [i for i, point in enumerate(points) if self.has(point, name)]
            if any(name not in points[i] for i in rows):
                raise missing([name], self.names, "this space")
            if any(name == whose for whose, _ in self.apart):
                rows = [i for i in rows if not self._put_apart(u[i], name, points[i][name])]
            try:
                at = parameter.place([points[i][name] for i in rows])
            except SpaceError as error:
                raise SpaceError(f"parameter {name!r}: {error}") from error
            u[rows, columns] = 0.5 + (at - 0.5) / self.reach[name] if name in self.reach else at
        return u

    def _put_apart(self, u: Array, name: str, value: Any) -> bool:
        """Write the coordinates (d,) of a value that is gone; False if it is not."""
        column, choice = self._column_of(name, value), self.parameters[name]
        if column is None or not isinstance(choice, Choice):
            return False
        u[self.columns_of(name)] = choice.middle(value)
        u[column] = 1.0 if choice.features is None else OWN
        return True

    def condensed(self, u: Array) -> Array:
        """Coordinates in fewer columns, and those of options that are gone."""
        return np.hstack([super().condensed(u), u[:, self.searched.width :]])

    @cached_property
    def conditions(self) -> Presence | None:
        """The conditions as they are written, also those that hold for all options there are."""
        return Presence.of(self.parameters, self._slices, every=True)

    def has(self, point: Mapping[str, Any], name: str) -> bool:
        """Whether a parameter is present in a point, of any space, by the conditions of this one.

        A parent that has a value which is gone allows nothing.
        """
        if self.conditions is None or name not in self.conditions:
            return name in self.parameters
        parents = {n: self.parameters[n] for n in self.conditions.needs[name] if n in point}
        known = {n: p.check(point[n]) for n, p in parents.items() if p.allows(point[n])}
        return self.conditions.in_point(known, name)

    def completed(self, point: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The point with values of what it lacks."""
        while more := {
            name: value
            for name, value in values.items()
            if name not in point and name in self.parameters and self.has(point, name)
        }:
            point = {**point, **more}  # which may make others present
        return point

    def reachable(self, at: Array) -> Mask:
        """Which of the points at coordinates (n, d) may be proposed."""
        kept = np.asarray((np.abs(self.snap(at) - at) <= _ROUNDING).all(axis=1))
        kept[kept] = self.feasible(at[kept])
        return kept

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it; values that are not allowed as they are."""
        names = [*self.names, *(name for name in point if name not in self.parameters)]
        return {name: self._to_json(name, point[name]) for name in names if name in point}

    def _to_json(self, name: str, value: Any) -> Any:
        try:
            return super().to_json({name: value})[name]
        except SpaceError:
            return value if is_scalar(value) else outline(value)


class CoveringPool(_Covering, Pool):
    """A pool that also has coordinates for rows that are gone.

    Numbers beyond its range lie outside [0, 1], as those of any point that is not in a pool; a text
    that is gone has a column of its own, in which all candidates are 0.
    """

    searched: Pool

    @classmethod
    def of(cls, pool: Pool, points: Sequence[Mapping[str, Any]]) -> Self:
        """The pool with columns for texts that only these points have."""
        texts = {n: f.values for n, f in pool._features.items() if isinstance(f, OneHot)}
        made = cls.__new__(cls)
        made.__dict__.update(vars(pool))
        made.searched = pool
        made.apart = tuple(
            (name, value)
            for name, values in texts.items()
            for value in _distinct(points, name)
            if type(value) is type(values[0]) and value not in values
        )
        if made.apart:
            made._rows = np.zeros((pool.size, made.width))
            made._rows[:, : pool.width] = pool.rows
            made._rows.setflags(write=False)
        return made

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, in the pool or not."""
        if not self.apart or isinstance(points, Mapping):
            return super().encode(points)
        rows = np.zeros((len(points), self.width))
        for name, feature in self._features.items():
            for i, point in enumerate(points):
                value = self._given(point, name)
                column = self._column_of(name, value)
                if column is None:
                    at = feature.encode([self._checked(name, value)])
                    rows[i, self.columns_of(name)] = at[0]
                else:
                    rows[i, column] = 1.0
        return rows

    def locate(self, points: Sequence[Mapping[str, Any]]) -> Indices:
        """Indices (n,) of points among the candidates, -1 for one that is not there."""
        return self._places(self.encode(points))

    def reachable(self, at: Array) -> Mask:
        """Which of the points at coordinates (n, d) are candidates."""
        return np.asarray(self._places(at) >= 0)

    def _places(self, at: Array) -> Indices:
        return self._held.places.find(at[:, : self.searched.width])


def covering(
    space: Space | Pool, points: Sequence[Mapping[str, Any]]
) -> CoveringSpace | CoveringPool:
    """The space that a model sees: it has a place for these points, and batches stay inside.

    >>> from covey.space import Real
    >>> seen = covering(Space({"x": Real(0, 1), "c": Choice(["a", "b"])}), [{"x": 3.0, "c": "z"}])
    >>> seen.encode([{"x": 0.5, "c": "a"}, {"x": 3.0, "c": "z"}])
    array([[0.5, 1. , 0. , 0. ],
           [3. , 0. , 0. , 1. ]])
    """
    space = searched(space)
    if isinstance(space, Pool):
        return CoveringPool.of(space, points)
    return CoveringSpace.of(space, points)


def searched(space: Space | Pool) -> Space | Pool:
    """The space without the points that it covers."""
    return space.searched if isinstance(space, CoveringSpace | CoveringPool) else space


def are_alike(one: Space | Pool, other: Space | Pool) -> bool:
    """Whether two covering spaces have the same space inside and the same coordinates outside."""
    return (
        isinstance(one, CoveringSpace | CoveringPool)
        and isinstance(other, CoveringSpace | CoveringPool)
        and one.searched is other.searched
        and one.apart == other.apart
        and getattr(one, "reach", None) == getattr(other, "reach", None)
    )


def remembering(space: Space | Pool, before: Space | Pool) -> Space | Pool:
    """The space after another, whose choices know where options with features were."""
    if isinstance(space, Pool) or isinstance(before, Pool):
        return space
    parameters = {
        name: parameter.after(before.parameters[name])
        if isinstance(parameter, Choice) and name in before.parameters
        else parameter
        for name, parameter in space.parameters.items()
    }
    if all(parameters[name] is parameter for name, parameter in space.parameters.items()):
        return space
    made = Space(parameters, where=space.where)
    made.__dict__.update(written=space.written, fingerprint=space.fingerprint)
    return made


def reachable(space: Space | Pool, at: Array) -> Mask:
    """Which of the points at coordinates (n, d) may be proposed; it may be none of them.

    Those of a space that was never extended all may. Of a space that was narrowed some are left
    outside: they train the model, but what they reached is no measure of what can be reached.
    """
    if isinstance(space, CoveringSpace | CoveringPool):
        return space.reachable(at)
    return np.ones(len(at), dtype=np.bool_)


def some_inside(space: Space | Pool, at: Array) -> Array:
    """Coordinates (m, d) in the space: near the points at (n, d), or rows all over a pool."""
    if isinstance(space, Space):
        return space.snap(at)
    return np.asarray(space.rows[:: max(1, space.size // _SOME_ROWS)])


_SOME_ROWS = 256


def allows(space: Space, point: Mapping[str, Any]) -> bool:
    """Whether a point, inside or not, may be proposed."""
    try:
        space.check(point)
    except SpaceError:
        return False
    return True


def without_absent(space: Space | Pool, point: Mapping[str, Any]) -> Mapping[str, Any]:
    """A told point as it may be proposed now: without values of what is absent by now.

    As it was told if nothing is absent, or if it is outside even so.
    """
    if not isinstance(space, CoveringSpace):
        return point
    kept = {n: v for n, v in point.items() if n in space.parameters and space.has(point, n)}
    return kept if len(kept) < len(point) and allows(space, kept) else point
