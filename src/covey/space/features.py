"""How a column of a pool becomes coordinates for the model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean
from covey.space.names import listed, number, plain, unknown
from covey.space.table import Column, is_spelled_number, is_text

if TYPE_CHECKING:
    from covey.arrays import Array, Indices
    from covey.space.table import Table


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


# Rows that are the same, found without comparing them all.

# SplitMix64 (Steele, Lea and Flood 2014): the step, and what scrambles 64 bits into any others.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
_BLOCK = 2**16  # cells hashed at a time, which fit a processor's cache


class Places:
    """Where each row is, by 64-bit hashes in order: 16 bytes a row, made in n log n + n d.

    Only rows whose hashes meet are compared, and then in full, bit by bit: a collision costs time,
    never a row.
    """

    def __init__(self, rows: Array) -> None:
        hashes = _hashes(rows)
        self._rows = rows
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def first_of_each(self) -> tuple[Indices, tuple[int, int] | None]:
        """Indices of the first of every distinct row, in order, and the first pair that is one.

        >>> Places(np.array([[1.0], [2.0], [1.0]])).first_of_each()
        (array([0, 1]), (0, 2))
        """
        n, order = len(self._rows), self._order
        same = self._hashes[1:] == self._hashes[:-1]
        if not same.any():
            return np.arange(n), None
        met = np.zeros(n, dtype=np.bool_)
        met[order[1:][same]] = met[order[:-1][same]] = True
        suspects = np.flatnonzero(met)
        packed = _bits(self._rows[suspects]).view(np.dtype((np.void, 8 * self._rows.shape[1])))
        _, first, group = np.unique(packed[:, 0], return_index=True, return_inverse=True)
        original = suspects[first[group.reshape(-1)]]
        repeats = original != suspects
        if not repeats.any():
            return np.arange(n), None
        kept = np.ones(n, dtype=np.bool_)
        kept[suspects[repeats]] = False
        at = int(np.flatnonzero(repeats)[0])
        return np.flatnonzero(kept), (int(original[at]), int(suspects[at]))

    def find(self, rows: Array) -> Indices:
        """The index (m,) of each of m rows, -1 for one that is not there; log n each.

        >>> Places(np.array([[1.0], [2.0]])).find(np.array([[2.0], [3.0]]))
        array([ 1, -1])
        """
        hashes = _hashes(rows)
        found = np.full(len(rows), -1, dtype=np.intp)
        at, end = (np.searchsorted(self._hashes, hashes, side=s) for s in ("left", "right"))
        left = np.flatnonzero(at < end)
        while len(left):  # once, but for a collision
            there = self._order[at[left]]
            same = (_bits(self._rows[there]) == _bits(rows[left])).all(axis=1)
            found[left[same]] = there[same]
            at[left] += 1
            left = left[~same & (at[left] < end[left])]
        return found


def _bits(rows: Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.ascontiguousarray(rows).view(np.uint64)


def _hashes(rows: Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """One number for each row: a sum of scrambled cells, scrambled otherwise in each column."""
    n, d = rows.shape
    steps = _STEP * np.arange(1, d + 1, dtype=np.uint64)
    hashes = np.empty(n, dtype=np.uint64)
    block = max(1, _BLOCK // d)
    for start in range(0, n, block):
        cells = _bits(rows[start : start + block]) + steps
        for shift, factor in _SCRAMBLE:
            cells ^= cells >> np.uint64(shift)
            cells *= np.uint64(factor)
        cells.sum(axis=1, out=hashes[start : start + block])
    return hashes


# Which columns of a table the model sees, and which are carried along.

# 2 GiB of float64; only one-hot columns of many distinct texts get there.
_MOST_CELLS = 2**28


def chosen_inputs(
    table: Table, inputs: Sequence[str] | None, labels: Sequence[str]
) -> tuple[str, ...]:
    """The inputs, or all columns that are not labels; or an error that names the nearest."""
    names = tuple(table.columns)
    for role, given in (("inputs", inputs), ("labels", labels)):
        if isinstance(given, str):
            raise SpaceError(f"{role} must be a list of columns, got {given!r}; write [{given!r}]")
        for name in given or ():
            if name not in names:
                raise unknown(name, names, "column", table.path or "the table")
    both = set(inputs or ()).intersection(labels)
    if both:
        raise SpaceError(
            f"{listed(sorted(both))} cannot be both an input and a label; "
            "an input is seen by the model, a label is not"
        )
    chosen = tuple(name for name in names if name not in labels) if inputs is None else inputs
    if not chosen:
        raise SpaceError(
            f"no inputs are left for the model; the table has {listed(names)}. "
            "Leave one out of labels, or name some in inputs."
        )
    return tuple(dict.fromkeys(chosen))


def refuse_too_wide(features: Mapping[str, Feature], n: int) -> None:
    """Raise if the inputs of n rows would not fit into memory."""
    if n * sum(feature.width for feature in features.values()) > _MOST_CELLS:
        name = max(features, key=lambda name: features[name].width)
        raise SpaceError(
            f"encoding {n} rows would take more than 2 GiB; the input {name!r} alone needs "
            f"{features[name].width} columns. Carry it unseen with labels=[{name!r}] and give "
            "numbers that describe it as inputs."
        )


# A table and its coordinates for the model: what a pool is made of.


@dataclass(frozen=True)
class Encoded:
    """The distinct rows of a table, the first of each, and their coordinates."""

    table: Table
    features: dict[str, Feature]  # of the inputs
    rows: Array  # (n, d), read only
    places: Places
    kept: Indices | None  # which rows of the whole table they are, if not all
    repeats: str  # which were left out, in words

    @classmethod
    def of(cls, table: Table, inputs: Sequence[str] | None, labels: Sequence[str]) -> Self:
        """The candidates of a table, or an error that names the row and the column at fault."""
        chosen = chosen_inputs(table, inputs, labels)
        features = {name: fit_feature(name, table.columns[name], table.where) for name in chosen}
        refuse_too_wide(features, len(table))
        rows = encode(features, table.columns, len(table))
        rows.setflags(write=False)
        places = Places(rows)
        kept, pair = places.first_of_each()
        if pair is None:
            return cls(table, features, rows, places, None, "")
        some = rows[kept]
        some.setflags(write=False)
        words = _words(table, pair, len(table) - len(kept))
        return cls(table.take(kept), features, some, Places(some), kept, words)

    def original(self, i: int) -> int:
        """The row of the whole table that candidate ``i`` is."""
        return i if self.kept is None else int(self.kept[i])


def encode(features: Mapping[str, Feature], columns: Mapping[str, Any], n: int) -> Array:
    """Coordinates (n, d) of n rows given by columns."""
    rows = np.empty((n, sum(feature.width for feature in features.values())))
    start = 0
    for name, feature in features.items():
        rows[:, start : start + feature.width] = feature.encode(columns[name])
        start += feature.width
    return rows


def slices(features: Mapping[str, Feature]) -> dict[str, slice]:
    """The encoded columns of each input."""
    stops = list(accumulate(feature.width for feature in features.values()))
    return dict(zip(features, map(slice, [0, *stops[:-1]], stops), strict=True))


def _words(table: Table, pair: tuple[int, int], left_out: int) -> str:
    a, b = pair
    both = f"rows {a} and {b}" if table.source is None else f"{table.where(a)} and {table.where(b)}"
    return (
        f"{both} have the same inputs; rows that repeat an earlier one ({left_out} in all) are "
        "left out"
    )
