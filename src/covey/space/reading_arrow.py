"""CSV files by pyarrow, where it is installed: the same cells as Python's csv module, sooner.

The two agree on every file that keeps to RFC 4180. Where a block does not (a quote inside a cell,
a bare carriage return, rows of unequal length), pyarrow steps aside and csv goes on from there.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from covey.space.table import Column, Spelled

_BYTES = 2**21  # of a block
_LONGEST = 2**23  # bytes of a record; longer ones are left to csv
_BARE = re.compile(rb"\r(?!\n)")  # a line that ends in a carriage return alone
_QUOTE, _NEWLINE = ord('"'), ord("\n")


@dataclass(frozen=True, slots=True)
class ArrowCells:
    """A block of strings in an Arrow array."""

    cells: Any  # pyarrow.StringArray

    def numbers(self, whole: bool) -> Column | None:
        """As Python reads them; pyarrow does it where it is sure to read the same."""
        quick = _integers(self.cells) if whole else None
        if quick is None:
            quick = _floats(self.cells, whole)
        return Spelled(self.tolist()).numbers(whole) if quick is None else quick

    def tolist(self) -> list[str]:
        """The cells as they are spelled."""
        return list(self.cells.to_pylist())

    def __len__(self) -> int:
        return len(self.cells)


def _integers(cells: Any) -> Column | None:
    numbers = _cast(cells, "int64")
    # Arrow takes 0x1F for a number.
    return None if numbers is None or _any(cells, "x", "X") else numbers


def _floats(cells: Any, whole: bool) -> Column | None:
    numbers = _cast(cells, "float64")
    if numbers is None or _any(cells, "("):  # Arrow takes nan(1) for a number
        return None
    # What Arrow does not know as integers may be: +1, or 2^64.
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
    """Blocks of rows behind the header, from its first byte on, while they are beyond doubt.

    Returns:
        The byte from which on csv must read, and the rows before it: -1 before the header.
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
            new = [column[1:] if rows < 0 else column for column in columns]  # but for the header
            at, rows = at + len(block), rows + len(columns[0])
            if len(new[0]):
                yield list(map(ArrowCells, new))
    finally:
        pa.default_memory_pool().release_unused()
    return at, rows


def _whole_records(file: Path, start: int) -> Iterator[bytes]:
    """The file in pieces that end where a record does."""
    with file.open("rb") as stream:
        stream.seek(start)
        rest = b""
        while read := stream.read(_BYTES):
            block, rest = _cut(rest + read)
            if block:
                yield block
            if len(rest) > _LONGEST:  # a quote that is not closed, perhaps
                return
        if rest:
            yield rest


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Whole records, and the beginning of the next: behind the last newline outside of quotes."""
    if b'"' not in data:
        cut = data.rfind(b"\n") + 1
        return data[:cut], data[cut:]
    codes = np.frombuffer(data, dtype=np.uint8)
    quotes, newlines = np.flatnonzero(codes == _QUOTE), np.flatnonzero(codes == _NEWLINE)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    cut = int(ends[-1]) + 1 if len(ends) else 0
    return data[:cut], data[cut:]


def _parse(block: bytes, width: int) -> list[Any] | None:
    """The columns of a block as strings, or None if there is any doubt about them."""
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
    """Whether csv might refuse a cell."""
    from pyarrow import compute

    longest = compute.max(compute.binary_length(cells)).as_py()
    return longest is not None and longest >= csv.field_size_limit()


def _well_quoted(block: bytes) -> bool:
    """Whether quotes stand around whole cells only, and are doubled inside of them."""
    if b'"' not in block:
        return True
    codes = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    opening = np.isin(codes[quotes[::2] - 1], np.frombuffer(b',\n"', dtype=np.uint8))
    closing = np.isin(codes[quotes[1::2] + 1], np.frombuffer(b',\r\n"', dtype=np.uint8))
    return len(quotes) % 2 == 0 and bool(opening.all() and closing.all())
