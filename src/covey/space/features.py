"""How a column of a pool becomes coordinates for the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean
from covey.space.names import listed
from covey.space.scalars import number, plain

if TYPE_CHECKING:
    from covey.arrays import Array
    from covey.space.table import Column


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

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.values)

    def check(self, value: Any) -> Any:
        """The value if the pool has it, or an error that names the nearest."""
        value = plain(value)
        if type(value) is not type(self.values[0]) or value not in self.values:
            raise SpaceError(
                f"{value!r} is not in the pool; this column has "
                f"{listed(map(repr, self.values))}.{did_you_mean(value, self.values)}"
            )
        return value

    def encode(self, values: Sequence[Any] | Column) -> Array:
        """Coordinates (n, width) of values the pool has."""
        place = {value: i for i, value in enumerate(self.values)}
        hot = np.zeros((len(values), self.width))
        items = values.tolist() if isinstance(values, np.ndarray) else values
        hot[np.arange(len(values)), [place[value] for value in items]] = 1.0
        return hot


Feature: TypeAlias = Scaled | OneHot


def fit_feature(name: str, column: Column) -> Feature:
    """The feature of an input column, or an error that names the row that spoils it."""
    if column.dtype == np.bool_:
        return OneHot(tuple(sorted(set(column.tolist()))))
    if column.dtype == np.object_:
        values = column.tolist()
        _refuse_missing(name, [_is_missing(value) for value in values], values)
        kinds = set(map(type, values))
        if kinds == {str}:
            return OneHot(tuple(sorted(set(values))))
        if kinds - {int, float}:
            held = " and ".join(sorted(kind.__qualname__ for kind in kinds))
            raise SpaceError(
                f"the input {name!r} holds {held}; an input must be all numbers, all text or all "
                f"booleans. Convert it, or carry it unseen with labels=[{name!r}]."
            )
        column = np.array([number(value, f"the input {name!r}") for value in values])
    _refuse_missing(name, ~np.isfinite(column), column)
    low, high = float(column.min()), float(column.max())
    if math.isinf(high - low):
        raise SpaceError(f"the input {name!r} is too wide for float64: {low!r} to {high!r}")
    return Scaled(low, high)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _refuse_missing(name: str, missing: Any, values: Any) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise SpaceError(
            f"row {rows[0]} (the first is row 0) has {plain(values[rows[0]])} in the input "
            f"{name!r}, which must be a finite number or text: fill it in, drop the row, or carry "
            f"the column unseen with labels=[{name!r}]"
        )
