"""CSV files, block by block: numbers and short text in memory, never the whole file.

`read_csv` gives the columns of a file.
"""

from __future__ import annotations

import csv
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError
from covey.space.names import check_distinct
from covey.space.table import Column, joined, numbers_in, texts

if TYPE_CHECKING:
    from covey.arrays import Mask

# The records of a CSV file, and the lines they begin on.

Reader: TypeAlias = Any  # csv.reader, whose type has no public name


@contextmanager
def records(file: Path) -> Iterator[Reader]:
    """A reader of the records behind a byte order mark, if there is one; blank lines are []."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        try:
            yield csv.reader(stream)
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{_undecodable(file)} is not CSV text in UTF-8 ({error.reason}); save the file "
                "as UTF-8"
            ) from error
        except csv.Error as error:
            raise SpaceError(
                f"{file} is not CSV text: {error}; look for a quote that is not closed"
            ) from error


def first_record(file: Path) -> list[str]:
    """The cells of the first record; none if there is none."""
    with records(file) as reader:
        return next(filter(None, reader), [])


def line_of(file: Path, row: int) -> int | None:
    """The line, counted from 1, on which a row begins, counted from 0 behind the header.

    Reads the file again up to there, for error messages; None if that fails.
    """
    before, left = 0, row + 1
    try:
        with records(file) as reader:
            for record in reader:
                if record and not left:
                    return before + 1
                left -= bool(record)
                before = reader.line_num
    except (SpaceError, OSError):
        pass
    return None


def _undecodable(file: Path) -> str:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"line {number} of {file}"
    return str(file)  # the file has changed meanwhile


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
    file: Path, is_carried: Callable[[str], bool] = lambda name: False
) -> dict[str, Column]:
    """The columns of a CSV file in UTF-8 with a header, commas and double quotes.

    One pass, and a second one for columns that began as numbers and turned out to be text. Columns
    that are carried along (``is_carried``) keep the spelling of their cells.
    """
    header = first_record(file)
    _check_header(file, header)
    cells = _pass(file, {name: ColumnBuilder(verbatim=is_carried(name)) for name in header})
    lost = {name: ColumnBuilder(as_text=True) for name, column in cells.items() if column.lost}
    if lost:
        cells |= _pass(file, {name: lost.get(name) for name in header})
    # Popped, or all columns would be in memory twice, in parts and joined.
    return {name: cells.pop(name).column() for name in header}


def _pass(file: Path, columns: Mapping[str, ColumnBuilder | None]) -> dict[str, ColumnBuilder]:
    """Fill the columns that are not None with all rows behind the header."""
    tally = ReadingProgress(str(file))
    for block in _blocks(file, len(columns)):
        for column, cells in zip(columns.values(), block, strict=True):
            if column is not None:
                column.add(cells)
        tally.add(len(block[0]))
    if not tally.rows:
        raise SpaceError(
            f"{file} has a header and no rows; write a line for each candidate or option"
        )
    return {name: column for name, column in columns.items() if column is not None}


def _blocks(file: Path, width: int) -> Iterator[Sequence[Sequence[str]]]:
    """Blocks of rows, each a list of columns."""
    rows = 0
    with records(file) as reader:
        next(filter(None, reader), None)  # the header
        while taken := list(islice(reader, _ROWS)):
            block = [row for row in taken if row]
            if block:
                yield _by_columns(file, width, block, rows)
            rows += len(block)


def _by_columns(
    file: Path, width: int, rows: list[list[str]], before: int
) -> list[tuple[str, ...]]:
    if set(map(len, rows)) != {width}:
        odd = next(i for i, row in enumerate(rows) if len(row) != width)
        line = line_of(file, before + odd)
        raise SpaceError(
            f"rows are ragged: line {line} of {file} has {len(rows[odd])} cells, the header has "
            f"{width}; quote cells that hold commas"
        )
    return list(zip(*rows, strict=True))


def _check_header(file: Path, header: Sequence[str]) -> None:
    if not header:
        raise SpaceError(
            f"{file} is empty; it needs a line with the names of the columns (at least one "
            "column), and a line for each candidate or option"
        )
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise SpaceError(f"{file} has a single column {header[0]!r}; separate columns by commas")
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

    def __init__(self, *, as_text: bool = False, verbatim: bool = False) -> None:
        self.lost = False
        self._text, self._verbatim = as_text, verbatim
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
        numbers = None if self._text else numbers_in(cells, self._whole)
        if numbers is None or not self._verbatim:
            return numbers
        return numbers if list(map(str, numbers.tolist())) == list(cells) else None

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
