"""A table held by columns: what a pool's rows become, wherever they came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.errors import SpaceError
from covey.space.names import check_name, is_number, is_scalar, plain

if TYPE_CHECKING:
    from covey.arrays import Indices, Mask
    from covey.space.reading import Source


# One column of a table: numbers, booleans, text, or whatever else it holds.

Column: TypeAlias = NDArray[Any]

# Sixteen bytes a cell and the text itself, where an object takes some sixty; None is missing.
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
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        return _objects(values)


def is_text(column: Column) -> bool:
    """Whether all of a column is text, or missing."""
    return column.dtype.kind == "T"


def joined(parts: Sequence[Column]) -> Column:
    """The column whose pieces came one after the other, each of its own kind.

    >>> joined([np.array([1, 2]), as_column([None])]).tolist()
    [1, 2, None]
    """
    dtypes = {part.dtype for part in parts}
    if len(dtypes) == 1 and np.object_ not in dtypes:
        return np.concatenate(parts)
    return as_column([value for part in parts for value in part.tolist()])


def equal_to(column: Column, value: Any) -> Mask:
    """Mask (n,) of the cells that are this very value: True is not 1, and 1.0 is."""
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


_BLOCK = 2**14  # cells that are Python objects at a time


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
        """Where the file lies that it was read from, if it was."""
        return None if self.source is None else self.source.path

    def where(self, row: int) -> str:
        """How to find a row again; of the whole table, as it was read."""
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
        """Digest of names and content in hex; numbers count as float64, however they came."""
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
    """The column as one JSON list, piece by piece."""
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


# One column of a CSV file as its blocks come in.

_KINDS = ((int, np.int64), (float, np.float64))


class Block(Protocol):
    """Some cells of one column, one below the other."""

    def numbers(self, whole: bool) -> Column | None:
        """All of them as numbers, or None; integers, if ``whole`` and they all are."""
        ...

    def tolist(self) -> list[str]:
        """The cells as they are spelled."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Spelled:
    """A block of Python strings.

    >>> Spelled(["1", "2"]).numbers(whole=True), Spelled(["1", "2.5"]).numbers(whole=True)
    (array([1, 2]), array([1. , 2.5]))
    """

    cells: Sequence[str]

    def numbers(self, whole: bool) -> Column | None:
        """As Python reads them; but 1_000, a number to Python, is a name in a table."""
        for parse, kind in _KINDS if whole else _KINDS[1:]:
            try:
                numbers = list(map(parse, self.cells))
            except ValueError:
                continue
            if "_" in "".join(self.cells):
                return None
            try:
                return np.array(numbers, dtype=kind)
            except OverflowError:  # beyond int64
                return np.array(numbers, dtype=object)
        return None

    def tolist(self) -> list[str]:
        """The cells as they are spelled."""
        return list(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


def is_spelled_number(cell: str) -> bool:
    """Whether a cell would be a number in a column of numbers."""
    return Spelled([cell]).numbers(whole=False) is not None


class Cells:
    """Numbers as long as every cell is one, else text; an empty cell is missing either way.

    Numbers are kept without their spelling, so a column that turns out to be text after a block
    of numbers is ``lost``: it must be read again, ``as_text`` from the start. In a column that is
    carried along, ``verbatim``, a cell that Python would spell otherwise is text: 007, 1E5, 2.50.
    """

    def __init__(self, *, as_text: bool = False, verbatim: bool = False) -> None:
        self.lost = False
        self._text, self._verbatim = as_text, verbatim
        self._whole = True
        self._parts: list[Column] = []
        self._gaps: list[Mask] = []

    def add(self, block: Block) -> None:
        """The next cells."""
        if self.lost:
            return
        numbers = None if self._text else block.numbers(self._whole)
        if numbers is not None and self._faithful(numbers, block.tolist):
            self._add_numbers(numbers, np.zeros(len(numbers), dtype=np.bool_))
            return
        cells = block.tolist()
        gone = [not cell for cell in map(str.strip, cells)]
        if not self._text:
            filled = [cell for cell, empty in zip(cells, gone, strict=True) if not empty]
            numbers = Spelled(filled).numbers(self._whole)
            if numbers is not None and self._faithful(numbers, lambda: filled):
                self._add_numbers(numbers, np.array(gone, dtype=np.bool_))
                return
            self._text, self.lost = True, bool(self._parts)
        if any(gone):
            self._parts.append(texts([None if e else c for c, e in zip(cells, gone, strict=True)]))
        else:
            self._parts.append(texts(cells))

    def _faithful(self, numbers: Column, cells: Callable[[], list[str]]) -> bool:
        """Whether the numbers tell how the cells are spelled, if that matters."""
        return not self._verbatim or list(map(str, numbers.tolist())) == cells()

    def _add_numbers(self, numbers: Column, gone: Mask) -> None:
        self._whole = self._whole and numbers.dtype != np.float64
        self._parts.append(numbers)
        self._gaps.append(gone)

    def column(self) -> Column:
        """All of them."""
        if self._text:
            return joined(self._parts)
        parts = self._parts if self._whole else list(map(_as_floats, self._parts))
        numbers, gone = joined(parts), np.concatenate(self._gaps)
        if not gone.any():
            return numbers
        column = np.full(len(gone), None, dtype=object)
        column[~gone] = numbers.astype(object)
        return column


def _as_floats(part: Column) -> Column:
    if part.dtype == np.object_:  # integers beyond int64, some beyond float64
        return np.array([float(str(number)) for number in part.tolist()])
    return part.astype(np.float64)
