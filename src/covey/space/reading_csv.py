"""The columns of a table in a file, block by block: numbers and short text, never the whole file.

`read_csv` gives the columns of a file in any way that `covey.tables` reads: CSV and its relatives,
and workbooks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from covey.errors import SpaceError
from covey.space.names import check_distinct
from covey.space.table import Column, joined, numbers_in, texts
from covey.spreadsheets import decimal_mark
from covey.tables import (
    Expected,
    Reader,
    Records,
    as_space_errors,
    has_point,
    is_filled,
    note_above,
    records_of,
    with_point,
)

if TYPE_CHECKING:
    from covey.arrays import Mask

# The records of a file, and the lines they begin on.


def _records_in(file: Path, names: Iterable[str]) -> Records:
    """The records of a file; ``names`` are columns that it should have."""
    with as_space_errors():
        found = records_of(lambda: file.open("rb"), str(file), Expected(frozenset(names)))
    return replace(found, strict=False)  # as pools of earlier journals were read


@contextmanager
def _rows_in(records: Records) -> Iterator[tuple[list[str], Reader]]:
    """The names of the columns, and a reader of the records behind them; blank lines are []."""
    with as_space_errors(), records.reader() as reader:
        above = [(records.line_of(reader), record) for record in islice(reader, records.top or 0)]
        note_above([line for line in above if is_filled(line[1])], records.dialect)
        yield next(filter(None, reader), []), reader


def first_record(file: Path, names: Iterable[str] = ()) -> list[str]:
    """The names of the columns; none if the file is empty."""
    with _rows_in(_records_in(file, names)) as (header, _):
        return header


def line_of(file: Path, row: int, names: Iterable[str] = ()) -> int | None:
    """The line, counted from 1, on which a row begins, counted from 0 behind the header.

    Reads the file again up to there, for error messages; None if that fails.
    """
    try:
        return _line_of(_records_in(file, names), row)
    except (SpaceError, OSError):
        return None


def _line_of(records: Records, row: int) -> int | None:
    with _rows_in(records) as (_, reader):
        before = records.line_of(reader)
        for record in reader:
            if record and not row:
                # A record of a workbook is one line, and what is between them none.
                return before + 1 if records.sheet is None else records.line_of(reader)
            row -= bool(record)
            before = records.line_of(reader)
    return None


# Progress of reading a large file.

_log = logging.getLogger("covey")


class ReadingProgress:
    """Counts rows as they are read, and logs the count after two seconds, four, eight and so on."""

    def __init__(self, what: str) -> None:
        self.rows = 0
        self._what = what
        self._began = time.monotonic()
        self._next = 2.0

    def add(self, rows: int) -> None:
        """Count further rows; log the total when the next report is due."""
        self.rows += rows
        spent = time.monotonic() - self._began
        if spent >= self._next:
            self._next = 2.0 * spent
            _log.info("reading %s: %d rows so far, in %.0f s", self._what, self.rows, spent)


# The whole file: block by block, each column collected as its cells come in.

_ROWS = 2000  # of a block, so that it fits a processor's cache; ten times more take twice as long


def read_csv(
    file: Path, is_carried: Callable[[str], bool] = lambda name: False, names: Iterable[str] = ()
) -> dict[str, Column]:
    """The columns of a table with a header, which has ``names`` of those that are known.

    One pass, and a second one for columns that began as numbers and turned out to be text. Columns
    that are carried along (``is_carried``) keep the spelling of their cells.
    """
    records = _records_in(file, names)
    with _rows_in(records) as (header, _):
        _check_header(file, header)
    carried = list(map(is_carried, header))
    mark = _decimal(records, carried)
    cells = _pass(
        records,
        {
            name: ColumnBuilder(verbatim=carry, decimal="." if carry else mark)
            for name, carry in zip(header, carried, strict=True)
        },
    )
    lost = {name: ColumnBuilder(as_text=True) for name, column in cells.items() if column.lost}
    if lost:
        cells |= _pass(records, {name: lost.get(name) for name in header})
    for note in records.dialect.said():
        _log.warning("%s: %s", file, note)
    # Popped, or all columns would be in memory twice, in parts and joined.
    return {name: cells.pop(name).column() for name in header}


def _decimal(records: Records, carried: Sequence[bool]) -> str:
    """The decimal mark of the numbers that are not carried along."""
    if records.dialect.separator == ",":
        return "."
    way = "Write them with one mark, and no mark of thousands."
    with _rows_in(records) as (header, reader):
        cells = (
            (f"{records.file}:{records.line_of(reader)}: {name} is {cell!r}", cell.strip())
            for record in reader
            for name, cell, skip in zip(header, record, carried, strict=False)
            if not skip and ("," in cell or "." in cell)
        )
        return decimal_mark(cells, records.dialect.separator, None, way)


def _pass(
    records: Records, columns: Mapping[str, ColumnBuilder | None]
) -> dict[str, ColumnBuilder]:
    """Fill the columns that are not None with all rows behind the header."""
    tally = ReadingProgress(records.file)
    with _rows_in(records) as (_, reader):
        for block in _blocks(records, reader, len(columns)):
            for column, cells in zip(columns.values(), block, strict=True):
                if column is not None:
                    column.add(cells)
            tally.add(len(block[0]))
    if not tally.rows:
        raise SpaceError(
            f"{records.file} has a header and no rows; write a line for each candidate or option"
        )
    return {name: column for name, column in columns.items() if column is not None}


def _blocks(records: Records, reader: Reader, width: int) -> Iterator[Sequence[Sequence[str]]]:
    """Blocks of rows, each a list of columns."""
    rows = 0
    while taken := list(islice(filter(None, reader), _ROWS)):
        if records.sheet is not None:  # whose lines end at the last cell with something in it
            taken = [row + [""] * (width - len(row)) for row in taken]
        yield _by_columns(records, width, taken, rows)
        rows += len(taken)


def _by_columns(
    records: Records, width: int, rows: list[list[str]], before: int
) -> list[tuple[str, ...]]:
    if set(map(len, rows)) != {width}:
        odd = next(i for i, row in enumerate(rows) if len(row) != width)
        line = _line_of(records, before + odd)
        raise SpaceError(
            f"rows are ragged: line {line} of {records.file} has {len(rows[odd])} cells, the "
            f"header has {width}; quote cells that hold {records.dialect.separator!r}, and name "
            "the inputs or labels if lines stand above the header"
        )
    return list(zip(*rows, strict=True))


def _check_header(file: Path, header: Sequence[str]) -> None:
    if not header:
        raise SpaceError(
            f"{file} is empty; it needs a line with the names of the columns (at least one "
            "column), and a line for each candidate or option"
        )
    if "" in header:
        raise SpaceError(
            f"column {header.index('') + 1} of {file} has no name; column names must be non-empty "
            "strings, got ''. Name it in the first line."
        )
    check_distinct(header, str(file))


class ColumnBuilder:
    """Builds a column from its blocks: numbers if every cell is one, else text.

    An empty cell is missing either way. Numbers are kept without their spelling, so a column that
    turns out to be text after a block of numbers is ``lost``: it must be read again, ``as_text``
    from the start. In a ``verbatim`` column, which is carried along, a cell that Python would spell
    differently is text: 007, 1E5, 2.50.
    """

    def __init__(
        self, *, as_text: bool = False, verbatim: bool = False, decimal: str = "."
    ) -> None:
        self.lost = False
        self._text, self._verbatim, self._decimal = as_text, verbatim, decimal
        self._whole = True
        self._parts: list[Column] = []
        self._gaps: list[Mask] = []

    def add(self, cells: Sequence[str]) -> None:
        """Append the next block."""
        if self.lost:
            return
        numbers = self._numbers(cells)
        if numbers is not None:
            self._add_numbers(numbers, np.zeros(len(numbers), dtype=np.bool_))
            return
        gone = [not cell for cell in map(str.strip, cells)]
        if not self._text:
            numbers = self._numbers([c for c, empty in zip(cells, gone, strict=True) if not empty])
            if numbers is not None:
                self._add_numbers(numbers, np.array(gone, dtype=np.bool_))
                return
            self._text, self.lost = True, bool(self._parts)
        if any(gone):
            self._parts.append(texts([None if e else c for c, e in zip(cells, gone, strict=True)]))
        else:
            self._parts.append(texts(cells))

    def _numbers(self, cells: Sequence[str]) -> Column | None:
        """Return the cells as numbers, or None where the column keeps their spelling."""
        if self._text:
            return None
        if self._decimal == ",":
            return self._numbers_with_commas(cells)
        numbers = numbers_in(cells, self._whole)
        if numbers is None or not self._verbatim:
            return numbers
        return numbers if list(map(str, numbers.tolist())) == list(cells) else None

    def _numbers_with_commas(self, cells: Sequence[str]) -> Column | None:
        numbers = numbers_in([with_point(cell) or cell for cell in cells], self._whole)
        pointed = None if numbers is None else next(filter(has_point, cells), None)
        if pointed is not None:
            raise SpaceError(
                f"{pointed!r} has a decimal point, and its file decimal commas; write all numbers "
                "with commas, and none with marks of thousands"
            )
        return numbers

    def _add_numbers(self, numbers: Column, gone: Mask) -> None:
        self._whole = self._whole and numbers.dtype != np.float64
        self._parts.append(numbers)
        self._gaps.append(gone)

    def column(self) -> Column:
        """The whole column."""
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
