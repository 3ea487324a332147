"""CSV files, block by block: numbers and short text in memory, never the whole file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from covey.errors import SpaceError
from covey.space.cells import Block, Cells, Spelled
from covey.space.column import Column
from covey.space.lines import header_of, line_of, records, start_of
from covey.space.names import check_distinct
from covey.space.progress import Tally
from covey.space.reading_arrow import arrow_blocks

_ROWS = 2000  # a block's strings fit a processor's cache; ten times more take twice the time
_LARGE = 2**23  # bytes; below, to import pyarrow would take longer than to do without


def read_csv(
    file: Path, is_carried: Callable[[str], bool] = lambda name: False
) -> dict[str, Column]:
    """The columns of a CSV file in UTF-8 with a header, commas and double quotes.

    One pass, and another for the columns that looked like numbers at first and are text. Columns
    that are carried along unseen keep their spelling.
    """
    header = header_of(file)
    _check_header(file, header)
    cells = _pass(file, {name: Cells(verbatim=is_carried(name)) for name in header})
    lost = {name: Cells(as_text=True) for name, column in cells.items() if column.lost}
    if lost:
        cells |= _pass(file, {name: lost.get(name) for name in header})
    # Popped, or all of it would be in memory twice, in pieces and joined.
    return {name: cells.pop(name).column() for name in header}


def _pass(file: Path, columns: Mapping[str, Cells | None]) -> dict[str, Cells]:
    """Fill the columns that are not None with all rows behind the header."""
    tally = Tally(str(file))
    for block in _blocks(file, len(columns)):
        for column, cells in zip(columns.values(), block, strict=True):
            if column is not None:
                column.add(cells)
        tally.add(len(block[0]))
    if not tally.rows:
        raise SpaceError(f"{file} has a header and no rows; write a line for each candidate")
    return {name: column for name, column in columns.items() if column is not None}


def _blocks(file: Path, width: int) -> Iterator[Sequence[Block]]:
    """Blocks of rows by columns: by pyarrow as far as its reading is beyond doubt, then by csv."""
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


def _by_columns(file: Path, width: int, rows: list[list[str]], before: int) -> list[Spelled]:
    if set(map(len, rows)) != {width}:
        odd = next(i for i, row in enumerate(rows) if len(row) != width)
        line = line_of(file, before + odd)
        raise SpaceError(
            f"rows are ragged: line {line} of {file} has {len(rows[odd])} cells, the header has "
            f"{width}; quote cells that hold commas"
        )
    return list(map(Spelled, zip(*rows, strict=True)))


def _check_header(file: Path, header: Sequence[str]) -> None:
    if not header:
        raise SpaceError(
            f"{file} is empty; it needs a line with the names of the columns (at least one "
            "column), and a line for each candidate"
        )
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise SpaceError(f"{file} has a single column {header[0]!r}; separate columns by commas")
    if "" in header:
        raise SpaceError(
            f"column {header.index('') + 1} of {file} has no name; column names must be non-empty "
            "strings, got ''. Name it in the first line."
        )
    check_distinct(header, str(file))
