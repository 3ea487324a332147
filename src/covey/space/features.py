"""How a column of a pool becomes coordinates for the model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean
from covey.space.cells import is_spelled_number
from covey.space.column import Column, is_text
from covey.space.names import listed
from covey.space.scalars import number, plain

if TYPE_CHECKING:
    from covey.arrays import Array

_MOST_TEXTS = 1000  # (our choice) more say hardly anything but that rows differ
_NOTHING = {"na", "n/a", "#n/a", "null", "none", "missing", "unknown", "-", "--", "?", "."}


@dataclass(frozen=True, slots=True)
class Scaled:
    """A numeric column, its smallest value at 0 and its largest at 1; a constant one at 0.5."""

    low: float
    high: float

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1

    def check(self, value: Any) -> float:
        """The value as a Python number, or an error."""
        value = plain(value)
        number(value, "a numeric value")
        return float(value) if isinstance(value, float) else int(value)

    def encode(self, values: Sequence[Any] | Column) -> Array:
        """Coordinates (n, 1); beyond the range they go on beyond [0, 1]."""
        x = np.asarray(values, dtype=np.float64)
        if self.low == self.high:
            # In units of its own, so that another value is another place. (Our choice.)
            return (0.5 + (x - self.low))[:, None]
        return ((x - self.low) / (self.high - self.low) + 0.0)[:, None]


@dataclass(frozen=True, slots=True)
class OneHot:
    """A column of text or of booleans, one encoded column for each distinct value."""

    values: tuple[Any, ...]
    _places: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {value: i for i, value in enumerate(self.values)})

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.values)

    def check(self, value: Any) -> Any:
        """The value if the pool has it, or an error that names the nearest."""
        value = plain(value)
        if type(value) is not type(self.values[0]) or value not in self._places:
            raise SpaceError(
                f"{value!r} is not in the pool; this column has "
                f"{listed(map(repr, self.values))}.{did_you_mean(value, self.values)}"
            )
        return value

    def encode(self, values: Sequence[Any] | Column) -> Array:
        """Coordinates (n, width) of values the pool has."""
        hot = np.zeros((len(values), self.width))
        items = values.tolist() if isinstance(values, np.ndarray) else values
        hot[np.arange(len(values)), [self._places[value] for value in items]] = 1.0
        return hot


Feature: TypeAlias = Scaled | OneHot
Where: TypeAlias = Callable[[int], str]


def fit_feature(name: str, column: Column, where: Where) -> Feature:
    """The feature of an input column, or an error that says ``where`` the row is that spoils it."""
    if column.dtype == np.bool_:
        return OneHot(tuple(sorted(set(column.tolist()))))
    if is_text(column):
        return _fit_text(name, column.tolist(), where)
    if column.dtype == np.object_:
        column = _as_numbers(name, column.tolist(), where)
    _refuse_missing(name, ~np.isfinite(column), column, where)
    low, high = float(column.min()), float(column.max())
    if math.isinf(high - low):
        raise SpaceError(f"the input {name!r} is too wide for float64: {low!r} to {high!r}")
    return Scaled(low, high)


def _as_numbers(name: str, values: list[Any], where: Where) -> Column:
    _refuse_missing(name, [_is_missing(value) for value in values], values, where)
    kinds = Counter(map(type, values))
    if kinds.keys() - {int, float}:
        usual = kinds.most_common(1)[0][0]
        odd = next((i for i, v in enumerate(values) if type(v) is not usual), 0)
        held = " and ".join(sorted(kind.__qualname__ for kind in kinds))
        raise SpaceError(
            f"the input {name!r} holds {held}; {where(odd)} has {values[odd]!r}. An input must be "
            "all numbers, all text or all booleans: convert it, or carry it unseen with "
            f"labels=[{name!r}]."
        )
    return np.array([number(value, f"the input {name!r}") for value in values])


def _fit_text(name: str, values: list[str | None], where: Where) -> OneHot:
    _refuse_missing(name, [value is None for value in values], values, where)
    counts = Counter(value for value in values if value is not None)
    words = {text for text in counts if not is_spelled_number(text)}
    numbers = sum(count for text, count in counts.items() if text not in words)
    # One cell of text makes text of a whole column of numbers. (Our choice of how many.)
    meant = numbers > 0 and all(text.strip().lower() in _NOTHING for text in words)
    if words and (meant or numbers >= 0.9 * len(values)):
        odd = next(i for i, value in enumerate(values) if value in words)
        raise SpaceError(
            f"{where(odd)} has {values[odd]!r} in the input {name!r}, where {numbers} of "
            f"{len(values)} cells are numbers and all should be: correct it, drop the row, or "
            f"carry the column unseen with labels=[{name!r}]. If they are names, spell them so "
            "('no. 5' for '5')."
        )
    if len(counts) > _MOST_TEXTS:
        raise SpaceError(
            f"the input {name!r} has {len(counts)} different texts, the first {values[0]!r} at "
            f"{where(0)}; the model sees one column for each, and at most {_MOST_TEXTS}. Carry it "
            f"unseen with labels=[{name!r}] and give numbers that describe it as inputs."
        )
    return OneHot(tuple(sorted(counts)))


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _refuse_missing(name: str, missing: Any, values: Any, where: Where) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        value = plain(values[rows[0]])
        raise SpaceError(
            f"{where(int(rows[0]))} has {'nothing (None)' if value is None else value} in the "
            f"input {name!r}, which must be a finite number or text: fill it in, drop the row, or "
            f"carry the column unseen with labels=[{name!r}]"
        )
