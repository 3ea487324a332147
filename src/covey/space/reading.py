"""Rows from where they lie: records, arrays, data frames, CSV and Parquet files."""

from __future__ import annotations

import codecs
import csv
import io
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from covey.errors import MissingExtraError, SpaceError
from covey.space.names import check_distinct, plain
from covey.space.reading_arrow import arrow_blocks
from covey.space.table import (
    Block,
    Cells,
    Column,
    Spelled,
    Table,
    as_column,
    from_array,
    from_records,
    joined,
)

# Records of a CSV file, and the lines they begin on.

Reader: TypeAlias = Any  # csv.reader, whose type has no public name


def start_of(file: Path) -> int:
    """The first byte of text, behind a byte order mark."""
    with file.open("rb") as stream:
        mark = codecs.BOM_UTF8
        return len(mark) if stream.read(len(mark)) == mark else 0


@contextmanager
def records(file: Path, start: int) -> Iterator[Reader]:
    """The records from a byte on, which must be the first of one; blank lines are empty lists."""
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

    Reads the file again up to there, which only a mistake in it is worth; None if that fails.
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
    return str(file)  # changed meanwhile


# A word on how far a long reading has come.

_log = logging.getLogger("covey")


class Tally:
    """Counts rows as they are read; after two seconds, then four, then eight, it says how many."""

    def __init__(self, what: str) -> None:
        self.rows = 0
        self._what = what
        self._began = time.monotonic()
        self._next = 2.0

    def add(self, rows: int) -> None:
        """So many more have been read."""
        self.rows += rows
        spent = time.monotonic() - self._began
        if spent >= self._next:
            self._next = 2.0 * spent
            _log.info("reading %s: %d rows so far, in %.0f s", self._what, self.rows, spent)


# CSV files, block by block: numbers and short text in memory, never the whole file.

_ROWS = 2000  # a block's strings fit a processor's cache; ten times more take twice the time
_LARGE = 2**23  # bytes; below, to import pyarrow would take longer than to do without


def read_csv(
    file: Path, is_carried: Callable[[str], bool] = lambda name: False
) -> dict[str, Column]:
    """The columns of a CSV file in UTF-8 with a header, commas and double quotes.

    One pass, and another for the columns that looked like numbers at first and are text. Columns
    that are carried along unseen keep their spelling.
    """
    header = first_record(file)
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


# Parquet files, batch by batch.

_PARQUET_ROWS = 2**16  # of a batch


def read_parquet(file: Path) -> dict[str, Column]:
    """The columns of a Parquet file."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        with parquet.ParquetFile(file) as opened:
            return _columns(opened, file)
    except SpaceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # text that is no UTF-8 any more
        raise SpaceError(
            f"{file} is not a Parquet file that can be read: {error}. Is it all there? Write it, "
            "or copy it, again."
        ) from error
    finally:
        pa.default_memory_pool().release_unused()


def _columns(opened: Any, file: Path) -> dict[str, Column]:
    unnamed = _unnamed_indexes(opened.schema_arrow)
    names = [name for name in opened.schema_arrow.names if name not in unnamed]
    check_distinct(names, str(file))
    if not names or not opened.metadata.num_rows:
        raise SpaceError(
            f"{file} holds {len(names)} columns and {opened.metadata.num_rows} rows; a pool needs "
            "at least one column and at least one row"
        )
    tally = Tally(str(file))
    parts: dict[str, list[Column]] = {name: [] for name in names}
    for batch in opened.iter_batches(batch_size=_PARQUET_ROWS, use_threads=False, columns=names):
        for part, column in zip(parts.values(), batch.columns, strict=True):
            part.append(as_column(_values(column)))
        tally.add(len(batch))
    return {name: joined(parts.pop(name)) for name in names}


def _unnamed_indexes(schema: Any) -> set[str]:
    """Columns that pandas wrote to number its rows: no part of what they describe."""
    try:
        written = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        columns = written.get("columns", ())
        indexes = {name for name in written.get("index_columns", ()) if isinstance(name, str)}
        named = {one["field_name"] for one in columns if one.get("name") is not None}
    except (ValueError, TypeError, KeyError, AttributeError):  # not as pandas writes it
        return set()
    return indexes - named


def _values(column: Any) -> Any:
    values = column.to_numpy(zero_copy_only=False) if column.null_count == 0 else None
    return values if values is not None and values.dtype.kind in "biuf" else column.to_pylist()


# The file a table was read from: where it lies, and whether it is still the same.


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was: its path, its bytes counted, the moment it was last written."""

    path: str
    size: int
    modified: int  # in nanoseconds

    @classmethod
    def of(cls, file: Path) -> Source:
        """The file as it is now; an OSError if it cannot be looked at."""
        stat = file.stat()
        return cls(str(file.absolute()), stat.st_size, stat.st_mtime_ns)

    @property
    def is_parquet(self) -> bool:
        """Whether its name says that it is a Parquet file; any other is taken for CSV."""
        return Path(self.path).suffix.lower() in (".parquet", ".pq")

    def where(self, row: int) -> str:
        """A row as one finds it in the file: the line of a CSV file, counted from 1."""
        if self.is_parquet:
            return f"row {row} (the first is row 0) of {self.path}"
        line = line_of(Path(self.path), row)
        return f"row {row} (the first is row 0)" if line is None else f"line {line} of {self.path}"


_ALLOWED = (
    "a list of dicts, a 2-d array, a pandas or polars frame, or the path of a CSV or Parquet file"
)
_MARKS = {
    b"PAR1": "a Parquet file; rename it to end in .parquet",
    b"\x1f\x8b": "compressed by gzip; unpack it first",
    b"PK\x03\x04": "a zip archive, as Excel's are; save the sheet as CSV UTF-8",
    b"\xff\xfe": "text in UTF-16; save it as UTF-8",
    b"\xfe\xff": "text in UTF-16; save it as UTF-8",
}


class Frame(Protocol):
    """What is used of a pandas or polars frame."""

    @property
    def columns(self) -> Iterable[Any]:
        """Column names."""
        ...

    def __getitem__(self, name: Any, /) -> Any:
        """One column as a series."""
        ...


Rows: TypeAlias = Sequence[Mapping[str, Any]] | Column | Frame | str | os.PathLike[str]


def read_rows(rows: Rows, inputs: Sequence[str] | None = None, labels: Sequence[str] = ()) -> Table:
    """The table behind whatever was given as rows.

    Text becomes numbers in columns that the model sees; where it does not, cells stay as spelled.
    """

    def is_carried(name: str) -> bool:
        return name in labels if inputs is None else name not in inputs

    if isinstance(rows, str | os.PathLike):
        return _from_path(rows, is_carried)
    if isinstance(rows, np.ndarray):
        return from_array(rows)
    library = _frame_library(rows)
    if library:
        return _from_frame(cast("Frame", rows), _SERIES[library])
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise SpaceError(f"rows must be {_ALLOWED}; got {type(rows).__name__}")
    return from_records(list(rows))


def _frame_library(rows: object) -> str | None:
    """The library whose frame this is, found without importing it."""
    for kind in type(rows).__mro__:
        library = kind.__module__.split(".")[0]
        if kind.__name__ == "DataFrame" and library in _SERIES:
            return library
    return None


def records_of(rows: object) -> list[dict[str, Any]] | None:
    """The rows of a pandas or polars frame as dicts of Python scalars; None if it is no frame."""
    library = _frame_library(rows)
    if library is None:
        return None
    frame = cast("Frame", rows)
    names = list(frame.columns)
    check_distinct(names, "the frame")
    columns = [as_column(_SERIES[library](frame[name])) for name in names]
    cells = zip(*columns, strict=True)
    return [{n: plain(cell) for n, cell in zip(names, row, strict=True)} for row in cells]


def _from_frame(frame: Frame, values: Callable[[Any], Any]) -> Table:
    names = list(frame.columns)
    check_distinct(names, "the frame")
    return Table({name: as_column(values(frame[name])) for name in names})


def _pandas_values(series: Any) -> Any:
    gone = series.isna().to_numpy()
    # A nullable integer with gaps would turn into floats.
    if isinstance(series.dtype, np.dtype) or not gone.any():
        values = series.to_numpy()
        if values.dtype.kind in "biuf":
            return values
    # Text, categories and nullable types: whatever stands for missing becomes None.
    return [None if missing else v for v, missing in zip(series.tolist(), gone, strict=True)]


def _polars_values(series: Any) -> Any:
    plain = series.null_count() == 0 and (
        series.dtype.is_numeric() or str(series.dtype) == "Boolean"
    )
    values = series.to_numpy() if plain else None
    return values if values is not None and values.dtype.kind in "biuf" else series.to_list()


_SERIES = {"pandas": _pandas_values, "polars": _polars_values}


def _from_path(path: str | os.PathLike[str], is_carried: Callable[[str], bool]) -> Table:
    file = Path(path)
    try:
        found = file.is_file()
    except OSError as error:  # a name that is too long
        name = os.fspath(path)
        raise SpaceError(f"cannot look for {name[:80]!r}: {error.strerror}.") from error
    if not found:
        raise SpaceError(
            f"there is no file {os.fspath(path)!r} to read rows from{_instead(file)}; check the "
            "path, or pass the pool itself as space=..."
        )
    try:
        before = Source.of(file)
        _refuse_binary(file, before)
        columns = read_parquet(file) if before.is_parquet else read_csv(file, is_carried)
        after = Source.of(file)
    except OSError as error:
        raise SpaceError(
            f"cannot read {file}: {error.strerror or error}; check that it is there and that you "
            "may read it"
        ) from error
    if after != before:
        raise SpaceError(
            f"{file} was written to while it was being read; read it again when it is complete"
        )
    return Table(columns, before)


def _instead(file: Path) -> str:
    if file.is_dir():
        return ", but a directory; name a file in it"
    return ", but something else than a file" if file.exists() else ""


def _refuse_binary(file: Path, source: Source) -> None:
    """Say what a file is that was taken for text by its name."""
    if source.is_parquet:
        return
    with file.open("rb") as stream:
        head = stream.read(8000)
    for mark, kind in _MARKS.items():
        if head.startswith(mark):
            raise SpaceError(f"{file} is not CSV text but {kind}")
    if b"\0" in head:
        raise SpaceError(
            f"{file} is not CSV text: byte {head.index(0) + 1} of it is zero, as in a binary file. "
            "Give a CSV file in UTF-8, or a Parquet file whose name ends in .parquet."
        )
