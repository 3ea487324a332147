"""Spaces that were extended: old points in new coordinates.

`GrownSpace` and `GrownPool` are what a study searches after an extension. They are the new space,
which also knows coordinates for points from before. Which changes there may be is in changes.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.conditions import Condition, neutral
from covey.space.features import carried_over
from covey.space.names import is_number, is_scalar, missing, plain, same
from covey.space.parameters import Numeric, Parameter
from covey.space.pool import Pool
from covey.space.space import Space
from covey.space.table import OneHot

if TYPE_CHECKING:
    from covey.arrays import Array, Mask

    Conditions: TypeAlias = dict[str, dict[str, tuple[Any, ...]]]

_ROUNDING = 1e-9  # of a coordinate


class GrownSpace(Space):
    """A space after an extension: it also has coordinates for points of the spaces before it.

    Points inside have the coordinates of any `Space`. Numbers beyond a range lie outside [0, 1], on
    the same scale; an option that is gone is zero in every column of its choice, and so as far from
    each option that is left; and a parameter that a point lacks has the value of the extension.
    What is absent by the conditions of now is neutral, whatever value the point had of it then.

    >>> from covey.space import Real
    >>> now = GrownSpace.of(Space({"x": Real(0, 1)}), Space({"x": Real(0, 4)}), {})
    >>> now.encode([{"x": 0.5}, {"x": 3.0}])
    array([[0.5],
           [3. ]])
    """

    before: tuple[Space, ...]  # oldest first
    filled: Mapping[str, Any]  # values of parameters that came later

    @classmethod
    def of(cls, space: Space, before: Space, filled: Mapping[str, Any]) -> Self:
        """The new space, after the one before it."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(space))
        made.before = (*former_spaces(before), as_given(before))
        made.filled = {**(before.filled if isinstance(before, GrownSpace) else {}), **filled}
        return made

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, of this space or of one before it."""
        if isinstance(points, Mapping):
            return super().encode(points)  # which raises
        points = [self.completed(point) for point in points]
        u = np.empty((len(points), self.width))
        for name, parameter in self.parameters.items():
            rows = self._rows(points, name)
            column = [points[i][name] for i in rows]
            u[:, self.columns_of(name)] = neutral(parameter)
            try:
                u[rows, self.columns_of(name)] = parameter.encode(column)
            except SpaceError:
                try:
                    u[rows, self.columns_of(name)] = _each(parameter, column, self._older(name))
                except SpaceError as error:
                    raise SpaceError(f"parameter {name!r}: {error}") from error
        return u

    def _rows(self, points: Sequence[Mapping[str, Any]], name: str) -> list[int]:
        """The points in which a parameter is present; they have it, and no other point does."""
        rows = []
        for i, point in enumerate(points):
            if self.has(point, name):
                if name not in point:
                    raise missing([name], self.names, "this space")
                rows.append(i)
            elif name in point and not any(is_present(then, point, name) for then in self.before):
                self.check(point)  # raises: it never was present in such a point
        return rows

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions of now."""
        return written_conditions(self)

    def has(self, point: Mapping[str, Any], name: str) -> bool:
        """Whether a parameter is present in a point by the conditions of now."""
        return name not in self.conditions or is_present(self, point, name, self.conditions)

    def completed(
        self, point: Mapping[str, Any], values: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """The point with values, those of the extensions unless given, of what it lacks."""
        values = self.filled if values is None else values
        while more := {
            name: value
            for name, value in values.items()
            if name not in point and name in self.parameters and self.has(point, name)
        }:
            point = {**point, **more}  # which may make others present
        return point

    def _older(self, name: str) -> list[Parameter]:
        """The parameter as it was, the latest first."""
        return [s.parameters[name] for s in reversed(self.before) if name in s.parameters]

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it; values that are no longer allowed as they were written."""
        for name in point:
            if not self._older(name):
                self.columns_of(name)  # raises, naming the parameters there are
        names = [*self.names, *(name for name in point if name not in self.parameters)]
        return {name: self._to_json(name, point[name]) for name in names if name in point}

    def _to_json(self, name: str, value: Any) -> Any:
        now = [self.parameters[name]] if name in self.parameters else []
        kinds = [*now, *self._older(name)]
        for parameter in kinds[:-1]:
            try:
                return parameter.to_json(parameter.check(value))
            except SpaceError:
                continue
        return kinds[-1].to_json(kinds[-1].check(value))


class GrownPool(Pool):
    """A pool after an extension: it also has coordinates for rows that are gone.

    Numbers beyond its range lie outside [0, 1], as those of any point that is not in a pool; a text
    that is gone is zero in every column of its own.
    """

    before: tuple[Pool, ...]  # oldest first

    @classmethod
    def of(cls, pool: Pool, before: Pool) -> Self:
        """The new pool, after the one before it."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(pool))
        made.before = (*former_spaces(before), as_given(before))
        return made

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, in the pool, in one before it, or in neither."""
        try:
            return super().encode(points)
        except SpaceError:
            if isinstance(points, Mapping):
                raise
        rows = np.zeros((len(points), self.width))
        for name, feature in self._features.items():
            for i, point in enumerate(points):
                value = self._given(point, name)
                if not isinstance(feature, OneHot) or plain(value) in feature.values:
                    rows[i, self._slices[name]] = feature.encode([self._checked(name, value)])[0]
        return rows

    def holds(self, at: Array) -> Mask:
        """Which of the points at coordinates (n, d) are candidates."""
        return np.asarray(self._held.places.find(at) >= 0)

    def from_json(self, obj: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point that :meth:`to_json` wrote; as it was written if the rows are not known."""
        return dict(obj) if is_former(self) else super().from_json(obj, partial)

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it; a label that is no JSON scalar is left out."""
        held = {name: plain(point[name]) for name in self.names if name in point}
        return {name: value for name, value in held.items() if is_scalar(value)}


class FormerSpace(Space):
    """A space of which only the description is known: functions of the point are lost."""

    description: Mapping[str, Any]

    @classmethod
    def of(cls, space: Space, description: Mapping[str, Any], fingerprint: str) -> Self:
        """The space as far as it can be built, under the name that a log has for it."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(space), description=description, fingerprint=fingerprint)
        return made

    def describe(self) -> dict[str, Any]:
        """Its description in the log."""
        return dict(self.description)


class FormerPool(Pool):
    """A pool of which only the description is known: its file holds other candidates by now.

    It stands for the old pool until the study is extended to the new one, ``like``.
    """

    description: Mapping[str, Any]

    @classmethod
    def of(cls, like: Pool, description: Mapping[str, Any], fingerprint: str) -> Self:
        """The pool under the name that a log has for it."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(like), description=description, fingerprint=fingerprint)
        return made

    def describe(self) -> dict[str, Any]:
        """Its description in the log."""
        return dict(self.description)

    def from_json(self, obj: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point as it was written."""
        return dict(obj)

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it."""
        return {name: plain(value) for name, value in point.items() if is_scalar(plain(value))}

    def verify_source(self) -> None:
        """Raise: the candidates of this pool are not known any more."""
        raise SpaceError(
            f"{self.path} holds other candidates than those of this study. Put the file back as it "
            "was, or go on with the new ones: study.extend(pool, reason), or `covey extend`."
        )


_GROWN = ("before", "filled", "conditions")


def former_spaces(space: Space | Pool) -> tuple[Any, ...]:
    """The spaces that were extended to this one, oldest first; () if it never was."""
    return space.before if isinstance(space, GrownSpace | GrownPool) else ()


def as_given(space: Space | Pool) -> Any:
    """A space as it was given, without what came before it."""
    if not isinstance(space, GrownSpace | GrownPool):
        return space
    known, lost = (Space, FormerSpace) if isinstance(space, GrownSpace) else (Pool, FormerPool)
    kind: Any = lost if is_former(space) else known
    made = kind.__new__(kind)
    made.__dict__.update({k: v for k, v in vars(space).items() if k not in _GROWN})
    return made


def searched(space: Space | Pool) -> list[Any]:
    """The spaces that a study searched, oldest first, each with those before it; this is the last.

    >>> from covey.space import Real
    >>> now = grown(Space({"x": Real(0, 1)}), Space({"x": Real(0, 4)}), {})
    >>> [float(then.encode([{"x": 1.0}])[0, 0]) for then in searched(now)]
    [0.25, 1.0]
    """
    filled = space.filled if isinstance(space, GrownSpace) else {}
    found: list[Any] = []
    for then in former_spaces(space):
        found.append(grown(then, found[-1], filled) if found else then)
    return [*found, space]


def is_former(space: Space | Pool) -> bool:
    """Whether only the description of a space is known."""
    return "description" in vars(space)


def grown(
    space: Space | Pool, before: Space | Pool, values: Mapping[str, Any]
) -> GrownSpace | GrownPool:
    """The space that a study searches from now on, which knows those before it."""
    if isinstance(space, Pool) and isinstance(before, Pool):
        return GrownPool.of(space, before)
    if isinstance(space, Space) and isinstance(before, Space):
        return GrownSpace.of(space, before, values)
    raise SpaceError(f"{before!r} and {space!r} are not of one kind")  # checked before


def reachable(space: Space | Pool, at: Array) -> Mask:
    """Which of the points at coordinates (n, d) may be proposed; it may be none of them.

    Those of a space that was never extended all may. Of a space that was narrowed some are left
    outside: they train the model, but what they reached is no measure of what can be reached.
    """
    if isinstance(space, GrownPool):
        return space.holds(at)
    if not isinstance(space, GrownSpace):
        return np.ones(len(at), dtype=np.bool_)
    kept = np.asarray((np.abs(space.snap(at) - at) <= _ROUNDING).all(axis=1))
    kept[kept] = space.feasible(at[kept])
    return kept


def some_inside(space: Space | Pool, at: Array) -> Array:
    """Coordinates (m, d) in the space: near the points at (n, d), or rows all over a pool."""
    if isinstance(space, Space):
        return space.snap(at)
    return np.asarray(space.rows[:: max(1, space.size // _SOME_ROWS)])


_SOME_ROWS = 256


def allows(space: Space, point: Mapping[str, Any]) -> bool:
    """Whether a point, of this space or of one before it, may be proposed."""
    try:
        space.check(space.completed(point) if isinstance(space, GrownSpace) else point)
    except SpaceError:
        return False
    return True


def without_absent(space: Space | Pool, point: Mapping[str, Any]) -> Mapping[str, Any]:
    """A told point as it may be proposed now: without values of what is absent by now.

    As it was told if nothing is absent, or if it is outside even so.
    """
    if not isinstance(space, GrownSpace):
        return point
    kept = {n: v for n, v in point.items() if n in space.parameters and space.has(point, n)}
    return kept if len(kept) < len(point) and allows(space, kept) else point


# Who is present in a point of another space, by its values: those that are gone have no place.


def written_conditions(space: Space) -> Conditions:
    """The condition of each parameter that has one, its values in canonical form.

    They are those that were written, not only those that decide: an option that is gone is none of
    the options that are left, though all of these are named.
    """
    found: Conditions = {}
    for name, parameter in space.parameters.items():
        condition = Condition.of(parameter.when)
        for parent, values in () if condition is None else condition.items():
            kept = tuple(space.parameters[parent].check(value) for value in values)
            found.setdefault(name, {})[parent] = kept
    return found


def is_present(
    space: Space, point: Mapping[str, Any], name: str, conditions: Conditions | None = None
) -> bool:
    """Whether a parameter is present in a point, of any space, by the conditions of this one."""
    if name not in space.parameters:
        return False
    conditions = written_conditions(space) if conditions is None else conditions
    for parent, values in conditions.get(name, {}).items():
        if parent not in point or not is_present(space, point, parent, conditions):
            return False
        try:
            value = space.parameters[parent].check(point[parent])
        except SpaceError:  # it is gone
            return False
        if not any(same(value, other) for other in values):
            return False
    return True


# Coordinates of values that a parameter does not have any more.


def _each(parameter: Parameter, values: Sequence[Any], older: Sequence[Parameter]) -> Array:
    """Coordinates (n, width) of values; those of the parameter are encoded together."""
    u, inside = np.empty((len(values), parameter.width)), []
    gone: dict[tuple[type, Any], Array] = {}  # options, whose errors take long to word
    for i, value in enumerate(values):
        key = (type(value), value if is_scalar(value) else None)
        if key in gone:
            u[i] = gone[key]
            continue
        try:
            parameter.check(value)
            inside.append(i)
        except SpaceError:
            if isinstance(parameter, Choice):
                u[i] = _among_options(parameter, plain(value), older)
                if is_scalar(value):
                    gone[key] = u[i].copy()
            elif isinstance(parameter, Numeric) and is_number(plain(value)):
                u[i] = _along(parameter, float(value))
            else:
                raise
    if inside:
        u[inside] = parameter.encode([values[i] for i in inside])
    return u


def _along(parameter: Numeric, x: float) -> float:
    """The coordinate of a number on the scale of a parameter, inside its range or not."""
    low, step = float(parameter.low), parameter.step
    if step is None:
        first, last = (
            (_log(low), _log(float(parameter.span[1])))
            if parameter.log
            else (
                low,
                float(parameter.span[1]),
            )
        )
        return ((_log(x) if parameter.log else x) - first) / (last - first)
    rank, size = (x - low) / step, parameter.size or 1
    if not parameter.log:
        return (rank + 0.5) / size
    bottom = low / step - 0.5
    first, last = _log(bottom), _log(bottom + size)
    return (0.5 * (_log(bottom + rank) + _log(bottom + rank + 1.0)) - first) / (last - first)


def _log(x: float) -> float:
    if x <= 0.0:
        raise SpaceError("a number this small has no place on a log scale; leave log out")
    return math.log(x)


def _among_options(choice: Choice, value: Any, older: Sequence[Parameter]) -> Array:
    """Coordinates of a value that is no option any more."""
    if choice.ordered:
        rank = _number_rank(choice, value, older)
        rank = _order_rank(choice, value, older) if rank is None else rank
        return np.array([(rank + 0.5) / choice.size])
    if choice.features is None:
        return np.zeros(choice.width)
    for then in older:
        if isinstance(then, Choice) and then.features and (gone := _rank(then, value)) is not None:
            ranks = [_rank(choice, option) for option in then.options]
            shared = [(i, rank) for i, rank in enumerate(ranks) if rank is not None]
            if shared:
                return carried_over(then.features, choice.features, shared, gone)
    raise SpaceError(
        f"{value!r} is not an option any more, and nothing describes it; keep it among the "
        "options, and rule it out by a function in `where`"
    )


def _number_rank(choice: Choice, value: Any, older: Sequence[Parameter]) -> float | None:
    """The place of a number among options that are numbers in order of size, as a real number."""
    if not choice.numeric or not is_number(value):
        return None
    options = np.array(choice.options, dtype=np.float64)
    if len(options) == 1:  # no scale of its own: in units of the range that it had
        spans = [p.span for p in older if p.numeric and p.span[1] > p.span[0]]
        return float(value - options[0]) / (spans[0][1] - spans[0][0] if spans else 1.0)
    ups = np.diff(options)
    if not ((ups > 0).all() or (ups < 0).all()):
        return None
    i = int(
        np.clip(
            np.searchsorted(options * np.sign(ups[0]), value * np.sign(ups[0])) - 1, 0, len(ups) - 1
        )
    )
    return i + float((value - options[i]) / ups[i])


def _order_rank(choice: Choice, value: Any, older: Sequence[Parameter]) -> float:
    """The place of an option that is gone: between those that were its neighbours."""
    for then in older:
        if not isinstance(then, Choice) or (place := _rank(then, value)) is None:
            continue
        ranks = [_rank(choice, option) for option in then.options]
        left = [(i, rank) for i, rank in enumerate(ranks) if rank is not None]
        below = max((one for one in left if one[0] < place), default=None)
        above = min((one for one in left if one[0] > place), default=None)
        if below and above:
            share = (place - below[0]) / (above[0] - below[0])
            return below[1] + share * (above[1] - below[1])
        if below or above:  # as far beyond the end as it was
            i, rank = below or above or (0, 0)
            return float(rank + place - i)
    return -1.0


def _rank(choice: Choice, option: Any) -> int | None:
    try:
        return choice.index(option)
    except SpaceError:
        return None
