"""Spaces that were extended: old points in new coordinates, and what changed, in words.

`GrownSpace` and `GrownPool` are what a study searches after an extension. They are the new space,
which also knows coordinates for points from before. `require_compatible` says which changes there
may be, `differences` names them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.constraints import describe_rule
from covey.space.names import is_number, is_scalar, listed, missing, plain
from covey.space.parameters import Integer, Parameter, Real
from covey.space.pool import Pool
from covey.space.space import Space
from covey.space.table import OneHot

if TYPE_CHECKING:
    from covey.arrays import Array, Mask

_ROUNDING = 1e-9  # of a coordinate


class GrownSpace(Space):
    """A space after an extension: it also has coordinates for points of the spaces before it.

    Points inside have the coordinates of any `Space`. Numbers beyond a range lie outside [0, 1], on
    the same scale; an option that is gone is zero in every column of its choice, and so as far from
    each option that is left; and a parameter that a point lacks has the value of the extension.

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
        u = np.empty((len(points), self.width))
        for name, parameter in self.parameters.items():
            column = [self._value(point, name) for point in points]
            try:
                u[:, self.columns_of(name)] = parameter.encode(column)
            except SpaceError:
                older = self._older(name)
                for i, value in enumerate(column):
                    try:
                        u[i, self.columns_of(name)] = beyond(parameter, value, older)
                    except SpaceError as error:
                        raise SpaceError(f"parameter {name!r}: {error}") from error
        return u

    def _value(self, point: Mapping[str, Any], name: str) -> Any:
        if name in point:
            return point[name]
        if name not in self.filled:
            raise missing([name], self.names, "this space")
        return self.filled[name]

    def _older(self, name: str) -> list[Parameter]:
        """The parameter as it was, the latest first."""
        return [s.parameters[name] for s in reversed(self.before) if name in s.parameters]

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it; values that are no longer allowed as they were written."""
        for name in point:
            self.columns_of(name)  # raises, naming the parameters there are
        return {name: self._to_json(name, point[name]) for name in self.names if name in point}

    def _to_json(self, name: str, value: Any) -> Any:
        kinds = [self.parameters[name], *self._older(name)]
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
        made.__dict__.update({k: v for k, v in vars(space).items() if k != "fingerprint"})
        made.description = description
        made.__dict__["fingerprint"] = fingerprint
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
        made.__dict__.update({k: v for k, v in vars(like).items() if k != "fingerprint"})
        made.description = description
        made.__dict__["fingerprint"] = fingerprint
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
    made.__dict__.update({k: v for k, v in vars(space).items() if k not in ("before", "filled")})
    return made


def searched(space: Space | Pool) -> list[Any]:
    """The spaces that a study searched, oldest first, each with those before it; this is the last.

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
    raise _other_kind(before, space)


def reachable(space: Space | Pool, at: Array) -> Mask:
    """Which of the points at coordinates (n, d) may be proposed; all, if there is none of them.

    Those of a space that was never extended all may. Of a space that was narrowed some are left
    outside: they train the model, but what they reached is no measure of what can be reached.
    """
    every = np.ones(len(at), dtype=np.bool_)
    if isinstance(space, GrownPool):
        kept = space.holds(at)
    elif isinstance(space, GrownSpace):
        kept = np.asarray((np.abs(space.snap(at) - at) <= _ROUNDING).all(axis=1))
        kept[kept] = space.feasible(at[kept])
    else:
        return every
    return kept if kept.any() else every


def allows(space: Space, point: Mapping[str, Any]) -> bool:
    """Whether a point, of this space or of one before it, may be proposed."""
    filled = space.filled if isinstance(space, GrownSpace) else {}
    try:
        space.check({**filled, **point})
    except SpaceError:
        return False
    return True


# Coordinates of values that a parameter does not have any more.


def beyond(parameter: Parameter, value: Any, older: Sequence[Parameter] = ()) -> Array:
    """Coordinates (width,) of a value that may be none of the parameter, which once was ``older``.

    >>> beyond(Integer(1, 4), 6)
    array([1.375])
    >>> beyond(Choice(["a", "b"]), "c")
    array([0., 0.])
    """
    try:
        return np.asarray(parameter.encode([value])[0])
    except SpaceError:
        if isinstance(parameter, Choice):
            return _among_options(parameter, plain(value), older)
        if not isinstance(parameter, Real | Integer) or not is_number(plain(value)):
            raise
    return np.array([_along(parameter, float(value))])


def _along(parameter: Real | Integer, x: float) -> float:
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
    if choice.width != choice.size:  # columns that describe options: there are none of this one
        raise SpaceError(f"{value!r} is not an option any more, and nothing describes it")
    return np.zeros(choice.width)


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
        try:
            place = then.index(value) if isinstance(then, Choice) else -1
        except SpaceError:
            continue
        if not isinstance(then, Choice) or place < 0:
            continue
        below = list(_ranks(choice, reversed(then.options[:place])))
        above = list(_ranks(choice, iter(then.options[place + 1 :])))
        if below and above:
            return 0.5 * (below[0] + above[0])
        if below or above:
            return below[0] + 1.0 if below else above[0] - 1.0
    return -1.0


def _ranks(choice: Choice, options: Iterator[Any]) -> Iterator[int]:
    for option in options:
        try:
            yield choice.index(option)
        except SpaceError:
            continue


# Which changes there may be.


def require_compatible(before: Space | Pool, after: Space | Pool) -> None:
    """Raise SpaceError, with what to do instead, unless a study may go on in the other space."""
    if isinstance(before, Pool) and isinstance(after, Pool):
        return _require_same_columns(before, after)
    if isinstance(before, Pool) or isinstance(after, Pool):
        raise _other_kind(before, after)
    for name, parameter in before.parameters.items():
        if name not in after.parameters:
            raise SpaceError(
                f"the parameter {name!r} is gone, and old results depend on it. Keep it with the "
                f"only value that it shall have, such as {name!r}: {_one_value(parameter)}; or "
                "start another study, and pass it what you know with study.add"
            )
        _require_same_kind(name, parameter, after.parameters[name])
    return None


def _one_value(parameter: Parameter) -> str:
    return f"covey.Choice([{parameter.examples(1)[0]!r}])"


def _require_same_kind(name: str, then: Parameter, now: Parameter) -> None:
    if then.numeric and now.numeric:
        return
    if not isinstance(now, type(then)):
        raise SpaceError(
            f"{name!r} was {then.words()} and would be {now.words()}, and a value of the one is "
            f"none of the other. Give the new parameter another name, and keep {name!r} with the "
            f"only value that it shall have, such as {name!r}: {_one_value(then)}"
        )
    if isinstance(then, Choice) and isinstance(now, Choice) and then.opaque:
        kept = Choice(now.options[: then.size], ordered=then.ordered)
        if now.size < then.size or kept != Choice(then.options, ordered=then.ordered):
            raise SpaceError(
                f"{name!r} has options that a log can only count ({then.opaque}); keep all of "
                "them, in their order, and put new ones behind them"
            )
    return


def _require_same_columns(before: Pool, after: Pool) -> None:
    then, now = before.describe(), after.describe()
    for what in ("columns", "inputs"):
        if sorted(then[what]) != sorted(now[what]):
            raise SpaceError(
                f"the {what} of the pool were {listed(then[what])} and would be "
                f"{listed(now[what])}; a pool is extended by rows, not by columns. Keep its "
                "columns, with `inputs` and `labels` as they were"
            )
    if isinstance(before, FormerPool):
        return
    for name, feature in after._features.items():
        if not isinstance(feature, type(before._features[name])):
            raise SpaceError(f"the column {name!r} of the pool has values of another kind now")


def _other_kind(before: Space | Pool, after: Space | Pool) -> SpaceError:
    kinds = ["a Pool" if isinstance(space, Pool) else "a Space" for space in (before, after)]
    return SpaceError(
        f"the study searches {kinds[0]} and cannot go on in {kinds[1]}; start another study, and "
        "pass it what you know with study.add"
    )


# What changed, in words.


def differences(before: Space | Pool, after: Space | Pool) -> list[str]:
    """What is different, a line each; empty if nothing is that a log can tell.

    >>> differences(Space({"x": Real(0, 1)}), Space({"x": Real(0, 2), "n": Integer(1, 3)}))
    ['x: real, 0.0 to 2.0 (was real, 0.0 to 1.0)', 'n: new, integer, 1 to 3']
    """
    if isinstance(before, Pool) and isinstance(after, Pool):
        return list(_rows_in_words(before, after))
    if isinstance(before, Pool) or isinstance(after, Pool):
        return [str(_other_kind(before, after))]
    found = []
    for name, parameter in after.parameters.items():
        then = before.parameters.get(name)
        if then is None:
            found.append(f"{name}: new, {parameter.words()}")
        elif then.describe() != parameter.describe():
            found.append(f"{name}: {_changed(then, parameter)}")
    found += [f"{name}: gone" for name in before.parameters if name not in after.parameters]
    rules = [before.describe()["where"], [describe_rule(rule) for rule in after.where]]
    if rules[0] != rules[1]:
        kept = [rule for rule in rules[1] if rule in rules[0]]
        new, gone = len(rules[1]) - len(kept), len(rules[0]) - len(kept)
        found.append(f"constraints: {new} new, {gone} gone, {len(kept)} as before")
    if not found and list(before.parameters) != list(after.parameters):
        found.append(f"order of the parameters: {listed(after.names)}")
    return found


def _changed(then: Parameter, now: Parameter) -> str:
    if isinstance(then, Choice) and isinstance(now, Choice) and then.ordered == now.ordered:
        texts = [list(map(repr, choice.options)) for choice in (then, now)]
        new, gone = ([t for t in texts[a] if t not in texts[1 - a]] for a in (1, 0))
        parts = [f"{word} {listed(some)}" for word, some in (("new", new), ("gone", gone)) if some]
        return "; ".join(parts) or f"options in another order, {listed(texts[1])}"
    return f"{now.words()} (was {then.words()})"


def _rows_in_words(before: Pool, after: Pool) -> Iterator[str]:
    then, now = before.describe(), after.describe()
    if then["sha256"] != now["sha256"]:
        rows = f"{after.size} candidates (were {then['n']})"
        if not isinstance(before, FormerPool):
            old = [before.point(i) for i in range(before.size)] if before.size <= _FEW_ROWS else []
            gone = int(np.sum(GrownPool.of(after, before).locate(old) < 0)) if old else 0
            rows += f", {gone} gone" if gone else ""
        yield rows
    if then.get("log") != now.get("log"):
        yield f"inputs in logs: {listed(now.get('log', ())) or 'none'}"


_FEW_ROWS = 20_000  # of a pool: more are not compared one by one
