"""Tables held by columns, and how a column becomes coordinates for the model.

`as_column` gives a column its type, `Table` holds named columns of equal length wherever their rows
came from, and `fit_feature` turns an input column into coordinates: `Scaled` for numbers, `OneHot`
for text and booleans.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.errors import SpaceError, did_you_mean
from covey.space.names import check_name, is_number, is_scalar, listed, number, plain

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.space.reading import Source

# The type of a column: numbers, booleans, text, or objects.

Column: TypeAlias = NDArray[Any]

# 16 bytes a cell and the text itself, where an object takes about 60; None is missing.
TEXT = np.dtypes.StringDType(na_object=None)


def as_column(values: Sequence[Any] | Column) -> Column:
    """Values of one column as int64, float64, bool or text if they all are, else as objects.

    >>> as_column([1, 2.5])
    array([1. , 2.5])
    >>> as_column(["a", None]).tolist()
    ['a', None]
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "bif":
            kind = {"b": np.bool_, "i": np.int64, "f": np.float64}[values.dtype.kind]
            return values.astype(kind)
        values = values.tolist() if values.dtype.kind in "uU" else list(values)
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        values = [plain(value) for value in values]
    return _of_kind(values, set(map(type, values)))


def _of_kind(values: Sequence[Any], kinds: set[type]) -> Column:
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {int}:
        return _integers(values)
    if kinds in ({float}, {int, float}):
        return np.array(values, dtype=np.float64)
    if kinds in ({str}, {str, type(None)}):
        return texts(values)
    return _objects(values)


def texts(values: Sequence[str | None]) -> Column:
    """Text, None where it is missing."""
    try:
        return np.array(values, dtype=TEXT)
    except UnicodeEncodeError:  # a lone surrogate, which no file can hold
        return _objects(values)


def is_text(column: Column) -> bool:
    """Whether all of a column is text, or missing."""
    return column.dtype.kind == "T"


def joined(parts: Sequence[Column]) -> Column:
    """One column from its parts, which may differ in type.

    >>> joined([np.array([1, 2]), as_column([None])]).tolist()
    [1, 2, None]
    """
    dtypes = {part.dtype for part in parts}
    if len(dtypes) == 1 and np.object_ not in dtypes:
        return np.concatenate(parts)
    return as_column([value for part in parts for value in part.tolist()])


def equal_to(column: Column, value: Any) -> Mask:
    """Mask (n,) of the cells that equal a value; 1.0 equals 1, and True does not."""
    if is_text(column) and isinstance(value, str):
        return np.asarray(column == value, dtype=np.bool_)
    if is_text(column) or column.dtype == np.object_:
        same = [type(v) is type(value) and v == value for v in column.tolist()]
        return np.array(same, dtype=np.bool_)
    alike = isinstance(value, bool) if column.dtype == np.bool_ else is_number(value)
    return column == value if alike else np.zeros(len(column), dtype=np.bool_)


def _integers(values: Sequence[int]) -> Column:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return _objects(values)


def _objects(values: Sequence[Any]) -> Column:
    return np.fromiter(values, dtype=object, count=len(values))


_BLOCK = 2**14  # cells converted to Python objects at a time


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length: int64, float64, bool or text, and objects for the rest."""

    columns: dict[str, Column]
    source: Source | None = None

    def __post_init__(self) -> None:
        for name in self.columns:
            check_name(name, "column")
        if not self.columns:
            raise SpaceError("a pool needs at least one column, got none")
        if not len(self):
            raise SpaceError("a pool needs at least one row, got none")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def path(self) -> str | None:
        """The path of the file it was read from, if any."""
        return None if self.source is None else self.source.path

    def where(self, row: int) -> str:
        """How to find a row of the table as it was read, for messages."""
        if self.source is None:
            return f"row {row} (the first is row 0)"
        return self.source.where(row)

    def take(self, indices: Indices) -> Table:
        """The table with these rows only."""
        return Table({n: column[indices] for n, column in self.columns.items()}, self.source)

    def row(self, i: int) -> dict[str, Any]:
        """One row as Python scalars."""
        return {name: plain(column[i]) for name, column in self.columns.items()}

    def sha256(self) -> str:
        """Digest of names and content in hex; all numbers count as float64."""
        digest = hashlib.sha256()
        for name, column in self.columns.items():
            digest.update(json.dumps([name, len(column)]).encode())
            if column.dtype.kind in "if":
                numbers = column.astype("<f8") + 0.0  # -0.0 is 0.0
                digest.update(np.where(np.isnan(numbers), np.nan, numbers).data)
            else:
                for text in _json(column):
                    digest.update(text.encode())
        return digest.hexdigest()


def _json(column: Column) -> Iterator[str]:
    """The column as one JSON list, in parts."""
    yield "["
    for start in range(0, len(column), _BLOCK):
        values = column[start : start + _BLOCK].tolist()
        if not is_text(column):
            values = [v if is_scalar(v) else [type(v).__qualname__] for v in values]
        yield (", " if start else "") + json.dumps(values)[1:-1]
    yield "]"


def from_records(rows: Sequence[Any]) -> Table:
    """The table of a list of dicts with the same keys."""
    if not rows:
        raise SpaceError("a pool needs at least one row, got an empty list")
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise SpaceError(
                f"rows must be dicts, but row {i} is {type(row).__name__}; for rows of numbers "
                "pass a 2-d array, Pool(numpy.array(rows))"
            )
    names = rows[0].keys()
    for i, row in enumerate(rows):
        if row.keys() != names:
            odd = sorted(map(str, row.keys() ^ names))
            raise SpaceError(
                f"rows are ragged: row {i} and row 0 do not both have {', '.join(odd)}; "
                "give every row the same columns (None for a missing label)"
            )
    return Table({name: as_column([row[name] for row in rows]) for name in names})


def from_array(rows: Column) -> Table:
    """The table of a 2-d array, its columns named x0, x1, ..."""
    if rows.ndim != 2:
        raise SpaceError(
            f"an array of rows must be 2-d, got shape {rows.shape}; "
            "reshape(-1, 1) makes one column of a 1-d array"
        )
    return Table({f"x{j}": as_column(rows[:, j]) for j in range(rows.shape[1])})


# Cells of a file as text, which may be numbers.

_KINDS = ((int, np.int64), (float, np.float64))


def numbers_in(cells: Sequence[str], whole: bool) -> Column | None:
    """Return cells as Python reads numbers, except that 1_000 is none; None if one is no number.

    With ``whole`` they are integers if they all can be.

    >>> numbers_in(["1", "2"], whole=True), numbers_in(["1", "2.5"], whole=True)
    (array([1, 2]), array([1. , 2.5]))
    """
    for parse, kind in _KINDS if whole else _KINDS[1:]:
        try:
            numbers = list(map(parse, cells))
        except ValueError:
            continue
        if "_" in "".join(cells):
            return None
        try:
            return np.array(numbers, dtype=kind)
        except OverflowError:  # beyond int64
            return np.array(numbers, dtype=object)
    return None


def is_spelled_number(cell: str) -> bool:
    """Whether a cell would be a number in a column of numbers."""
    return numbers_in([cell], whole=False) is not None


# Features: how an input column becomes coordinates.

_MOST_TEXTS = 1000  # distinct texts of an input; more would hardly inform the model (our choice)
_MISSING_WORDS = {"na", "n/a", "#n/a", "null", "none", "missing", "unknown", "-", "--", "?", "."}


@dataclass(frozen=True, slots=True)
class Scaled:
    """A numeric column, its smallest value at 0 and its largest at 1; a constant one at 0.5.

    With ``log`` the ends are logs, and so is what lies between.
    """

    low: float
    high: float
    log: bool = False

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1

    def check(self, value: Any) -> float:
        """The value as a Python number, or an error."""
        value = plain(value)
        x = number(value, "a numeric value")
        if self.log and x < _TINY:
            raise SpaceError(f"a value on a log scale must be above 0, got {value!r}")
        return float(value) if isinstance(value, float) else int(value)

    def encode(self, values: Sequence[Any] | Column) -> Array:
        """Coordinates (n, 1); values beyond the range lie outside [0, 1]."""
        x = np.asarray(values, dtype=np.float64)
        if self.log:
            x = _logs(x)
        if self.low == self.high:
            # Differences in the column's own units, so that other values differ. (Our choice.)
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


_TINY = float(np.finfo(float).tiny)


def _logs(x: Array) -> Array:
    """Logs one by one: a row is found by its bits, and NumPy's may depend on its neighbours."""
    return np.fromiter(map(math.log, x.tolist()), dtype=np.float64, count=len(x))


Feature: TypeAlias = Scaled | OneHot
Where: TypeAlias = Callable[[int], str]


def fit_feature(name: str, column: Column, where: Where, *, log: bool = False) -> Feature:
    """The feature of an input column, or an error that says ``where`` the offending row is."""
    if log and (column.dtype == np.bool_ or is_text(column)):
        raise SpaceError(f"log names {name!r}, which holds no numbers; leave it out")
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
    if log and low < _TINY:
        row = int(np.argmin(column))
        raise SpaceError(
            f"{where(row)} has {plain(column[row])!r} in the input {name!r}, and a log scale needs "
            "numbers above 0: leave the column out of log, or correct or drop the row"
        )
    return Scaled(math.log(low), math.log(high), log=True) if log else Scaled(low, high)


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
    # A few cells of text make a column of numbers text. (The shares are our choice.)
    meant = numbers > 0 and all(text.strip().lower() in _MISSING_WORDS for text in words)
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
