"""CSV files, block by block: numbers and short text in memory, never the whole file.

`read_csv` gives the columns of a file. Python's csv module reads small files; large ones pyarrow
reads sooner, where it is installed, and gives the same cells. The two agree on every file that
keeps to RFC 4180. Where a block does not (a quote inside a cell, a bare carriage return, rows of
unequal length), csv goes on from there.
"""

from __future__ import annotations

import codecs
import csv
import io
import logging
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError
from covey.space.names import check_distinct
from covey.space.table import Block, Column, TextCells, joined, texts

if TYPE_CHECKING:
    from covey.arrays import Mask

# The records of a CSV file, and the lines they begin on.

Reader: TypeAlias = Any  # csv.reader, whose type has no public name


def start_of(file: Path) -> int:
    """The first byte of text, behind a byte order mark."""
    with file.open("rb") as stream:
        mark = codecs.BOM_UTF8
        return len(mark) if stream.read(len(mark)) == mark else 0


@contextmanager
def records(file: Path, start: int) -> Iterator[Reader]:
    """A reader of the records from byte ``start`` on, where one begins; blank lines are []."""
    with file.open("rb") as stream:
        stream.seek(start)
        try:
            yield csv.reader(io.TextIOWrapper(stream, encoding="utf-8", newline=""))
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
    with records(file, start_of(file)) as reader:
        return next(filter(None, reader), [])


def line_of(file: Path, row: int) -> int | None:
    """The line, counted from 1, on which a row begins, counted from 0 behind the header.

    Reads the file again up to there, for error messages; None if that fails.
    """
    before, left = 0, row + 1
    try:
        with records(file, start_of(file)) as reader:
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
_LARGE = 2**23  # bytes; smaller files are read sooner without importing pyarrow


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


def _blocks(file: Path, width: int) -> Iterator[Sequence[Block]]:
    """Blocks of rows, each a list of columns: by pyarrow while it surely agrees, then by csv."""
    at, rows = start_of(file), -1
    if file.stat().st_size >= _LARGE:
        at, rows = yield from arrow_blocks(file, width, at)
    with records(file, at) as reader:
        if rows < 0:
            rows += len(list(islice(filter(None, reader), 1)))  # the header
        while taken := list(islice(reader, _ROWS)):
            block = [row for row in taken if row]
            if block:
                yield _by_columns(file, width, block, rows)
            rows += len(block)


def _by_columns(file: Path, width: int, rows: list[list[str]], before: int) -> list[TextCells]:
    if set(map(len, rows)) != {width}:
        odd = next(i for i, row in enumerate(rows) if len(row) != width)
        line = line_of(file, before + odd)
        raise SpaceError(
            f"rows are ragged: line {line} of {file} has {len(rows[odd])} cells, the header has "
            f"{width}; quote cells that hold commas"
        )
    return list(map(TextCells, zip(*rows, strict=True)))


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

    def add(self, block: Block) -> None:
        """Append the next block."""
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
            numbers = TextCells(filled).numbers(self._whole)
            if numbers is not None and self._faithful(numbers, lambda: filled):
                self._add_numbers(numbers, np.array(gone, dtype=np.bool_))
                return
            self._text, self.lost = True, bool(self._parts)
        if any(gone):
            self._parts.append(texts([None if e else c for c, e in zip(cells, gone, strict=True)]))
        else:
            self._parts.append(texts(cells))

    def _faithful(self, numbers: Column, cells: Callable[[], list[str]]) -> bool:
        """Whether the numbers give back the spelling of the cells, if the column is verbatim."""
        return not self._verbatim or list(map(str, numbers.tolist())) == cells()

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


# Blocks by pyarrow, where it is installed and reads the same cells as csv.

_BYTES = 2**21  # bytes of a block
_LONGEST = 2**23  # bytes of a record; longer ones are left to csv
_BARE = re.compile(rb"\r(?!\n)")  # a line that ends in a carriage return alone
_QUOTE, _NEWLINE = ord('"'), ord("\n")


@dataclass(frozen=True, slots=True)
class ArrowCells:
    """A block of strings in an Arrow array."""

    cells: Any  # pyarrow.StringArray

    def numbers(self, whole: bool) -> Column | None:
        """The cells as numbers, or None; by pyarrow where it surely reads the same as Python."""
        quick = _integers(self.cells) if whole else None
        if quick is None:
            quick = _floats(self.cells, whole)
        return TextCells(self.tolist()).numbers(whole) if quick is None else quick

    def tolist(self) -> list[str]:
        """The cells as text."""
        return list(self.cells.to_pylist())

    def __len__(self) -> int:
        return len(self.cells)


def _integers(cells: Any) -> Column | None:
    numbers = _cast(cells, "int64")
    # Arrow reads 0x1F as a number.
    return None if numbers is None or _any(cells, "x", "X") else numbers


def _floats(cells: Any, whole: bool) -> Column | None:
    numbers = _cast(cells, "float64")
    if numbers is None or _any(cells, "("):  # Arrow reads nan(1) as a number
        return None
    # Integers to Python, though not to Arrow: +1, or 2^64.
    return None if whole and not _any(cells, *".eEnN") else numbers


def _cast(cells: Any, kind: str) -> Column | None:
    import pyarrow as pa

    try:
        return np.asarray(cells.cast(kind).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None


def _any(cells: Any, *marks: str) -> bool:
    from pyarrow import compute

    return any(compute.any(compute.match_substring(cells, mark)).as_py() for mark in marks)


def arrow_blocks(
    file: Path, width: int, start: int
) -> Generator[list[ArrowCells], None, tuple[int, int]]:
    """Blocks of rows behind the header, read from byte ``start``, while pyarrow surely agrees.

    Returns:
        The byte from which csv must go on, and the number of rows before it (-1: the header too).
    """
    try:
        import pyarrow as pa
    except ImportError:
        return start, -1
    at, rows = start, -1
    try:
        for block in _whole_records(file, start):
            columns = _parse(block, width)
            if columns is None:
                break
            new = [column[1:] if rows < 0 else column for column in columns]  # without the header
            at, rows = at + len(block), rows + len(columns[0])
            if len(new[0]):
                yield list(map(ArrowCells, new))
    finally:
        pa.default_memory_pool().release_unused()
    return at, rows


def _whole_records(file: Path, start: int) -> Iterator[bytes]:
    """The file in pieces that end at the end of a record."""
    with file.open("rb") as stream:
        stream.seek(start)
        rest = b""
        while read := stream.read(_BYTES):
            block, rest = _cut(rest + read)
            if block:
                yield block
            if len(rest) > _LONGEST:  # perhaps a quote that is not closed
                return
        if rest:
            yield rest


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Split after the last newline outside quotes: whole records, and the rest."""
    if b'"' not in data:
        cut = data.rfind(b"\n") + 1
        return data[:cut], data[cut:]
    codes = np.frombuffer(data, dtype=np.uint8)
    quotes, newlines = np.flatnonzero(codes == _QUOTE), np.flatnonzero(codes == _NEWLINE)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    cut = int(ends[-1]) + 1 if len(ends) else 0
    return data[:cut], data[cut:]


def _parse(block: bytes, width: int) -> list[Any] | None:
    """The columns of a block as strings, or None if csv might read them differently."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    if (b"\r" in block and _BARE.search(block)) or not _well_quoted(block):
        return None
    names = [str(j) for j in range(width)]
    try:
        table = arrow.read_csv(
            pa.BufferReader(block),
            arrow.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
            arrow.ParseOptions(newlines_in_values=b'"' in block),
            arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    return None if any(map(_too_long, columns)) else columns


def _too_long(cells: Any) -> bool:
    """Whether a cell is so long that csv might refuse it."""
    from pyarrow import compute

    longest = compute.max(compute.binary_length(cells)).as_py()
    return longest is not None and longest >= csv.field_size_limit()


def _well_quoted(block: bytes) -> bool:
    """Whether quotes enclose whole cells only, and are doubled inside them."""
    if b'"' not in block:
        return True
    codes = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    opening = np.isin(codes[quotes[::2] - 1], np.frombuffer(b',\n"', dtype=np.uint8))
    closing = np.isin(codes[quotes[1::2] + 1], np.frombuffer(b',\r\n"', dtype=np.uint8))
    return len(quotes) % 2 == 0 and bool(opening.all() and closing.all())
