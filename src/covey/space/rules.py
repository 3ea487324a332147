"""`Implies`: rules such as "with the solvent THF, T is at most 60", in Python or from a table file.

Also `into_rules`, which moves candidates to where the rules allow them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean
from covey.space.conditions import Condition
from covey.space.names import is_scalar, number, outline, plain, same, unknown
from covey.tables import (
    Expected,
    SheetRow,
    as_space_errors,
    is_filled,
    lines_in,
    plain_number,
    table_from,
    with_point,
)

if TYPE_CHECKING:
    from covey.arrays import Array, Mask
    from covey.space.kinds import Parameter
    from covey.space.space import Space

    Parameters: TypeAlias = Mapping[str, Parameter]

_ROUNDING = 1e-12
_LISTED = 10_000  # values of a parameter that are looked at one by one


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; an end may be infinite."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Implies:
    """Where ``when`` holds, the parameters of ``then`` keep to a range, or to some options.

    A range of numbers is a tuple (low, high) with None for an open end, or ``{"high": 60}``;
    options are a list. ``when`` is written as the condition of a parameter. The rule says nothing
    about points that lack one of its parameters.

    >>> print(Implies({"solvent": "THF"}, {"T": (None, 60), "base": ["KOH", "NaOH"]}))
    when solvent is 'THF': T <= 60 and base is 'KOH' or 'NaOH'
    """

    kind: ClassVar[str] = "implies"
    when: Mapping[str, Any]
    then: Mapping[str, Any]

    def __post_init__(self) -> None:
        condition = Condition.of(self.when)
        example = "Implies({'solvent': 'THF'}, {'T': (None, 60)})"
        if condition is None or not isinstance(self.then, Mapping) or not self.then:
            raise SpaceError(
                f"a rule says when it applies and what holds then, as in {example}; got "
                f"when={self.when!r}, then={self.then!r}"
            )
        both = next((name for name in condition if name in self.then), None)
        if both is not None:
            raise SpaceError(f"a rule about {both!r} cannot depend on {both!r} itself")
        object.__setattr__(self, "when", condition)
        then = {name: _consequence(name, given) for name, given in self.then.items()}
        object.__setattr__(self, "then", then)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Implies):
            return NotImplemented
        return (
            self.when == other.when
            and self.then.keys() == other.then.keys()
            and all(_alike(self.then[name], other.then[name]) for name in self.then)
        )

    def __hash__(self) -> int:
        return hash((self.when, frozenset(self.then)))

    def __str__(self) -> str:
        said = " and ".join(_words(name, given) for name, given in self.then.items())
        return f"when {self.when}: {said}"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that it is about."""
        return (*self.when, *self.then)

    @property
    def singles(self) -> tuple[Implies, ...]:
        """One rule for each parameter of ``then``: what is absent silences only its own."""
        if len(self.then) == 1:
            return (self,)
        return tuple(Implies(self.when, {name: given}) for name, given in self.then.items())

    def validate(self, parameters: Parameters) -> None:
        """Raise unless its names, values and ranges are those of the space."""
        for name in self.names:
            if name not in parameters:
                error = unknown(name, list(parameters), "parameter", "this space")
                raise SpaceError(f"the rule {str(self)!r}: {error}")
        for name, values in self.when.items():
            if parameters[name].size is None:
                raise SpaceError(
                    f"the rule {str(self)!r}: {name!r} is continuous, and a rule compares its "
                    "values for equality; give it a step, or write a function of the point"
                )
            self._check(name, values, parameters[name])
        for name, given in self.then.items():
            if isinstance(given, Range):
                self._check_range(name, given, parameters[name])
                continue
            self._check(name, given, parameters[name])
            if parameters[name].size is None and len(given) > 1:
                raise SpaceError(
                    f"the rule {str(self)!r}: {name!r} is continuous, and the rule lists single "
                    "values of it; for a range write low and high, {'low': 20, 'high': 60}, for "
                    "single values give the parameter a step, or make it a Choice"
                )

    def _check(self, name: str, values: Sequence[Any], parameter: Parameter) -> None:
        for value in values:
            try:
                parameter.check(value)
            except SpaceError as error:
                raise SpaceError(f"the rule {str(self)!r}: parameter {name!r}: {error}") from error

    def _check_range(self, name: str, given: Range, parameter: Parameter) -> None:
        if not parameter.numeric:
            raise SpaceError(
                f"the rule {str(self)!r}: {name!r} is no number, so it has no range; list the "
                "options that are allowed"
            )
        low, high = parameter.span
        inside = given.low <= high and given.high >= low
        if inside and (parameter.size or _LISTED) < _LISTED:
            inside = bool(_inside(given, parameter.numbers(_levels(parameter)), parameter).any())
        if not inside:
            raise SpaceError(
                f"the rule {str(self)!r}: no value of {name!r} ({low!r} to {high!r}) is in that "
                f"range; leave out what {self.when} says, or change the range"
            )

    def applies(self, columns: Mapping[str, Array], parameters: Parameters) -> Mask:
        """Whether the condition holds at each of n points: encoded columns (n, width) by name."""
        every = [_one_of(columns[n], v, parameters[n]) for n, v in self.when.items()]
        return np.logical_and.reduce(every)

    def holds(self, columns: Mapping[str, Array], parameters: Parameters) -> Mask:
        """Whether each of n points satisfies it: the encoded columns (n, width) by name."""
        kept = ~self.applies(columns, parameters)
        every = [_kept(columns[n], given, parameters[n]) for n, given in self.then.items()]
        return np.asarray(kept | np.logical_and.reduce(every))

    def broken(self, point: Mapping[str, Any], parameters: Parameters) -> str | None:
        """The values at a checked point, if they are not what the rule asks for."""
        columns = {name: parameters[name].encode([point[name]]) for name in self.names}
        if self.holds(columns, parameters)[0]:
            return None
        return f"{self}: {' and '.join(f'{name} is {point[name]!r}' for name in self.then)}"

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; an open end is null."""
        condition = Condition.of(self.when)
        return {
            "kind": self.kind,
            "when": {} if condition is None else condition.describe(),
            "then": {name: _described(given) for name, given in self.then.items()},
        }


def _consequence(name: str, given: Any) -> Range | tuple[Any, ...]:
    """A range, or the options allowed, from what a person wrote."""
    if isinstance(given, Range):
        return given
    if isinstance(given, Mapping):
        odd = next((key for key in given if key not in ("low", "high")), None)
        if odd is not None:
            raise SpaceError(
                f"a range of {name!r} has low and high, not {odd!r}."
                f"{did_you_mean(odd, ('low', 'high'))}"
            )
        return _range(name, given.get("low"), given.get("high"))
    if isinstance(given, tuple) and len(given) == 2 and all(map(_is_end, given)):
        return _range(name, *given)
    options = tuple(map(plain, given)) if isinstance(given, list | tuple) else (plain(given),)
    if not options:
        raise SpaceError(f"a rule leaves no value of {name!r}; name at least one")
    return options


def _is_end(end: Any) -> bool:
    return end is None or (isinstance(plain(end), int | float) and not isinstance(end, bool))


def _range(name: str, low: Any, high: Any) -> Range:
    ends = [
        default if end is None or end == default else number(end, f"the {side} of {name!r}")
        for end, default, side in ((low, -math.inf, "low"), (high, math.inf, "high"))
    ]
    if ends == [-math.inf, math.inf]:
        raise SpaceError(f"the range of {name!r} has neither end; give a low, a high or both")
    if ends[0] > ends[1]:
        raise SpaceError(f"the range of {name!r} is empty: {ends[0]!r} is above {ends[1]!r}")
    return Range(*ends)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Range) or isinstance(b, Range):
        return bool(a == b)
    return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)


def _words(name: str, given: Range | tuple[Any, ...]) -> str:
    if not isinstance(given, Range):
        return str(Condition({name: given}))
    before = f"{given.low:.12g} <= " if given.low > -math.inf else ""
    after = f" <= {given.high:.12g}" if given.high < math.inf else ""
    return f"{before}{name}{after}"


def _described(given: Range | tuple[Any, ...]) -> Any:
    if not isinstance(given, Range):
        return [v if is_scalar(v) else {"opaque": outline(v)} for v in given]
    ends = {"low": given.low, "high": given.high}
    return {side: end if math.isfinite(end) else None for side, end in ends.items()}


def _one_of(columns: Array, values: Sequence[Any], parameter: Parameter) -> Mask:
    """Whether coordinates (n, width) are those of one of these values."""
    short = parameter.condensed(parameter.snap(columns))
    allowed = parameter.condensed(parameter.encode([parameter.check(value) for value in values]))
    return np.asarray((short[:, None, :] == allowed).all(axis=2).any(axis=1))


def _kept(columns: Array, given: Range | tuple[Any, ...], parameter: Parameter) -> Mask:
    if isinstance(given, Range):
        return _inside(given, parameter.numbers(columns), parameter)
    return _one_of(columns, given, parameter)


def _inside(given: Range, numbers: Array, parameter: Parameter) -> Mask:
    """Whether numbers (n,) are in the range, up to the rounding of encode and decode."""
    floor = abs(parameter.span[0]) if parameter.continuous else 0.0
    slack = _ROUNDING * np.maximum(np.abs(numbers), floor)
    return np.asarray((numbers >= given.low - slack) & (numbers <= given.high + slack))


def _levels(parameter: Parameter) -> Array:
    levels = parameter.levels()
    return np.empty((0, parameter.width)) if levels is None else levels


# Candidates, moved to where the rules allow them.


def into_rules(space: Space, u: Array, *, spread: bool) -> Array:
    """Coordinates (n, d) with what breaks a rule moved into what it leaves, as far as possible.

    With ``spread`` a range is filled evenly, as uniform rows filled the whole; otherwise a number
    moves to the nearest end, and options stay. Rules about what others decide come second.
    """
    if not space.rules:
        return u
    moved, parameters = u.copy(), space.parameters
    names = dict.fromkeys(name for rule in space.rules for name in rule.names)
    columns = {name: moved[:, space.columns_of(name)] for name in names}  # views
    parts = [part for rule in space.rules for part in rule.singles]
    for _ in range(2):
        for name in dict.fromkeys(target for part in parts for target in part.then):
            mine = [part for part in parts if name in part.then]
            present = space.present(moved)  # a rule says nothing where its condition is absent
            there = {n: present[:, space.columns_of(n)].all(axis=1) for n in names}
            active = [
                np.logical_and.reduce([p.applies(columns, parameters), *(there[n] for n in p.when)])
                for p in mine
            ]
            _move(columns[name], parameters[name], [p.then[name] for p in mine], active, spread)
    return moved


def _move(
    at: Array,
    parameter: Parameter,
    rules: Sequence[Range | tuple[Any, ...]],
    where: Sequence[Mask],
    spread: bool,
) -> None:
    """Move coordinates (n, width) of a parameter into what each rule leaves where it applies."""
    low, high = (np.full(len(at), end) for end in (-math.inf, math.inf))
    levels = _levels(parameter) if (parameter.size or _LISTED) < _LISTED else None
    allowed = None if levels is None else np.ones((len(at), len(levels)), dtype=bool)
    for given, active in zip(rules, where, strict=True):
        if isinstance(given, Range):
            low[active] = np.maximum(low[active], given.low)
            high[active] = np.minimum(high[active], given.high)
        if allowed is not None and levels is not None:
            allowed[active] &= _kept(levels, given, parameter)
        elif not isinstance(given, Range):  # too many values to list: the nearest of those named
            named = parameter.encode([parameter.check(value) for value in given])
            some = at[active]
            at[active] = named[np.argmin(np.abs(some[:, None, :] - named).sum(axis=2), axis=1)]
    if allowed is not None and levels is not None:
        _to_levels(at, levels, allowed, parameter, spread)
    elif parameter.numeric:
        _to_range(at, low, high, parameter, spread)


def _to_range(at: Array, low: Array, high: Array, parameter: Parameter, spread: bool) -> None:
    """Move coordinates (n, 1) whose numbers are outside [low, high], (n,) each."""
    x = parameter.numbers(at)
    out = ((x < low) | (x > high)) & (low <= high)
    first, last = parameter.span
    ends = [parameter.nearest(np.clip(end[out], first, last)) for end in (low, high)]
    share = np.clip(at[out], 0.0, 1.0)
    at[out] = ends[0] + share * (ends[1] - ends[0]) if spread else np.clip(share, *ends)


def _to_levels(at: Array, levels: Array, allowed: Mask, parameter: Parameter, spread: bool) -> None:
    """Move coordinates (n, width) whose level is not among those allowed, (n, size)."""
    gaps = np.square(at[:, None, :] - levels).sum(axis=2)
    place = np.argmin(gaps, axis=1)
    out = ~allowed[np.arange(len(at)), place] & allowed.any(axis=1)
    if not out.any() or not (spread or parameter.numeric):
        return
    if parameter.width > 1 or not spread:  # the allowed level that is nearest
        chosen = np.argmin(np.where(allowed[out], gaps[out], math.inf), axis=1)
    else:  # the same share of those allowed as of all
        rank = np.floor(np.clip(at[out, 0], 0.0, 1.0 - 1e-12) * allowed[out].sum(axis=1))
        chosen = np.argmax(np.cumsum(allowed[out], axis=1) > rank[:, None], axis=1)
    at[out] = levels[chosen]


# A table file: one rule in each line.

_NEEDED, _COLUMNS = (
    ("when", "is", "parameter"),
    ("when", "is", "parameter", "low", "high", "options"),
)


def read_rules(path: str | Path, parameters: Parameters) -> list[Implies]:
    """The rules of a table file, CSV or a workbook, for a space's parameters.

    A line of it names the columns ``when,is,parameter,low,high``: a parameter, an option of it,
    and another parameter with the range that it has then; an empty cell is an open end. With a
    column ``options`` a line may list the options that are left instead, as in ``KOH|NaOH``.
    """
    with as_space_errors():
        lines = lines_in(path, Expected(_COLUMNS))
        if not any(is_filled(line) for _, line in lines.cells):
            raise SpaceError(f"{path} is empty; its first line is when,is,parameter,low,high")
        table = table_from(lines, ("is", "low", "high"), None, loose=True)
    at = f"{path}:{lines.cells[lines.top][0]}"
    for name in table.columns:
        if name not in _COLUMNS:
            raise SpaceError(
                f"{at}: {name!r} is no column; the columns are {', '.join(_COLUMNS)}."
                f"{did_you_mean(name, _COLUMNS)}"
            )
    absent = next((name for name in _NEEDED if name not in table.columns), None)
    if absent is not None:
        raise SpaceError(f"{at}: there is no column {absent!r}; write when,is,parameter,low,high")
    rules = []
    for row in table.rows:
        try:
            rules.append(_rule(row, parameters))
        except SpaceError as error:
            raise SpaceError(f"{row.where}: {error}") from error
    return rules


def _rule(row: SheetRow, parameters: Parameters) -> Implies:
    for column in _NEEDED:
        if not row.text(column):
            raise SpaceError(f"the cell {column!r} is empty")
    for column in ("when", "parameter"):
        if row.text(column) not in parameters:
            raise unknown(row.text(column), list(parameters), "parameter", "this space")
    parent, name, mark = row.text("when"), row.text("parameter"), row.dialect.decimal
    value = _parsed("is", row.text("is"), parameters[parent], mark)
    low, high = (_number(side, row.text(side), mark) for side in ("low", "high"))
    options = row.text("options")
    if options and (low is not None or high is not None):
        raise SpaceError("a line has a low and a high, or options, not both")
    then: Any = (low, high)
    if options:
        words = options.split("|")
        then = [_parsed("options", word.strip(), parameters[name], mark) for word in words]
    rule = Implies({parent: [value]}, {name: then})
    rule.validate(parameters)
    return rule


def _parsed(column: str, text: str, parameter: Parameter, decimal: str) -> Any:
    pointed = with_point(text) if decimal == "," else None
    if pointed is not None:
        with suppress(SpaceError):  # or it is an option that is spelled with a comma
            return parameter.check(parameter.parse(pointed))
    try:
        return parameter.check(parameter.parse(text))
    except SpaceError as error:
        raise SpaceError(f"the cell {column!r}: {error}") from error


def _number(column: str, text: str, decimal: str) -> float | None:
    try:
        return plain_number(text, decimal) if text else None
    except SpaceError as error:
        raise SpaceError(f"the cell {column!r}: {error}") from error
