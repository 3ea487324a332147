"""The rows of a pool from whatever holds them: records, arrays, data frames, CSV, Parquet.

`read_rows` gives the `Table`; a `Source` remembers the file it was read from.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from covey.errors import MissingExtraError, SpaceError
from covey.space.names import check_distinct, plain
from covey.space.reading_csv import ReadingProgress, line_of, read_csv
from covey.space.table import Column, Table, as_column, from_array, from_records, joined
from covey.tables import PACKED

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
    except (pa.ArrowException, OSError, ValueError) as error:  # for example, text that is not UTF-8
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
    tally = ReadingProgress(str(file))
    parts: dict[str, list[Column]] = {name: [] for name in names}
    for batch in opened.iter_batches(batch_size=_PARQUET_ROWS, use_threads=False, columns=names):
        for part, column in zip(parts.values(), batch.columns, strict=True):
            part.append(as_column(_values(column)))
        tally.add(len(batch))
    return {name: joined(parts.pop(name)) for name in names}


def _unnamed_indexes(schema: Any) -> set[str]:
    """Index columns without a name, which pandas wrote only to number its rows."""
    try:
        written = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        columns = written.get("columns", ())
        indexes = {name for name in written.get("index_columns", ()) if isinstance(name, str)}
        named = {one["field_name"] for one in columns if one.get("name") is not None}
    except (ValueError, TypeError, KeyError, AttributeError):  # not the metadata of pandas
        return set()
    return indexes - named


def _values(column: Any) -> Any:
    values = column.to_numpy(zero_copy_only=False) if column.null_count == 0 else None
    return values if values is not None and values.dtype.kind in "biuf" else column.to_pylist()


# The file a table was read from.


@dataclass(frozen=True, slots=True)
class Source:
    """The state of a file: its path, its size in bytes and when it was last written."""

    path: str
    size: int
    modified: int  # in nanoseconds
    names: tuple[str, ...] = field(default=(), compare=False)  # columns by which it was read

    @classmethod
    def of(cls, file: Path) -> Source:
        """The file as it is now; an OSError if it cannot be accessed."""
        stat = file.stat()
        return cls(str(file.absolute()), stat.st_size, stat.st_mtime_ns)

    @property
    def is_parquet(self) -> bool:
        """Whether its name says that it is a Parquet file; any other is taken for a sheet."""
        return Path(self.path).suffix.lower() in (".parquet", ".pq")

    def where(self, row: int) -> str:
        """How to find a row in the file: the line of a CSV file, counted from 1."""
        if self.is_parquet:
            return f"row {row} (the first is row 0) of {self.path}"
        line = line_of(Path(self.path), row, self.names)
        return f"row {row} (the first is row 0)" if line is None else f"line {line} of {self.path}"


_ALLOWED = (
    "a list of dicts, a 2-d array, a pandas or polars frame, or the path of a CSV, .xlsx or "
    "Parquet file"
)
_MARKS = {
    b"PAR1": "a Parquet file; rename it to end in .parquet",
    b"\x1f\x8b": "compressed by gzip; unpack it first",
}


class Frame(Protocol):
    """The part of a pandas or polars frame that is used."""

    @property
    def columns(self) -> Iterable[Any]:
        """Column names."""
        ...

    def __getitem__(self, name: Any, /) -> Any:
        """One column as a series."""
        ...


Rows: TypeAlias = Sequence[Mapping[str, Any]] | Column | Frame | str | os.PathLike[str]


def read_rows(rows: Rows, inputs: Sequence[str] | None = None, labels: Sequence[str] = ()) -> Table:
    """The table of rows given as records, array, data frame or path.

    In CSV, input columns become numbers where they can; labels stay as spelled.
    """

    def is_carried(name: str) -> bool:
        return name in labels if inputs is None else name not in inputs

    if isinstance(rows, str | os.PathLike):
        return _from_path(rows, is_carried, (*(inputs or ()), *labels))
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
    # Text, categories and nullable types: missing values become None.
    return [None if missing else v for v, missing in zip(series.tolist(), gone, strict=True)]


def _polars_values(series: Any) -> Any:
    plain = series.null_count() == 0 and (
        series.dtype.is_numeric() or str(series.dtype) == "Boolean"
    )
    values = series.to_numpy() if plain else None
    return values if values is not None and values.dtype.kind in "biuf" else series.to_list()


_SERIES = {"pandas": _pandas_values, "polars": _polars_values}


def _from_path(
    path: str | os.PathLike[str], is_carried: Callable[[str], bool], names: tuple[str, ...]
) -> Table:
    file = Path(path)
    require_file(file, "rows", "check the path, or pass the pool itself as space=...")
    try:
        before = Source.of(file)
        _refuse_binary(file, before)
        columns = read_parquet(file) if before.is_parquet else read_csv(file, is_carried, names)
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
    return Table(columns, replace(before, names=names))


def require_file(file: Path, what: str, advice: str) -> None:
    """Raise unless there is a file; ``what`` would have been read from it."""
    try:
        found = file.is_file()
    except OSError as error:  # a name that is too long
        raise SpaceError(f"cannot look for {str(file)[:80]!r}: {error.strerror}.") from error
    if not found:
        raise SpaceError(
            f"there is no file {str(file)!r} to read {what} from{_instead(file)}; {advice}"
        )


def _instead(file: Path) -> str:
    if file.is_dir():
        return ", but a directory; name a file in it"
    return ", but something else than a file" if file.exists() else ""


def _refuse_binary(file: Path, source: Source) -> None:
    """Refuse a file that is not text, and say what it is."""
    if source.is_parquet:
        return
    with file.open("rb") as stream:
        head = stream.read(8000)
    for mark, kind in _MARKS.items():
        if head.startswith(mark):
            raise SpaceError(f"{file} is not CSV text but {kind}")
    is_wide = b"\0" in head[:2] or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in head and not (is_wide or head.startswith(PACKED)):
        raise SpaceError(
            f"{file} is not CSV text: byte {head.index(0) + 1} of it is zero, as in a binary file. "
            "Give a CSV file, a workbook (.xlsx), or a Parquet file whose name ends in .parquet."
        )
