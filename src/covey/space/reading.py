"""Rows from where they lie: records, arrays, data frames, CSV and Parquet files."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from covey.errors import MissingExtraError, SpaceError
from covey.space.table import Column, Table, as_column, from_array, from_records

_ALLOWED = (
    "a list of dicts, a 2-d array, a pandas or polars frame, or the path of a CSV or Parquet file"
)


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


def read(rows: Rows) -> Table:
    """The table behind whatever was given as rows."""
    if isinstance(rows, str | os.PathLike):
        return _from_path(rows)
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


def _from_frame(frame: Frame, values: Callable[[Any], Any]) -> Table:
    names = list(frame.columns)
    _check_distinct(names, "the frame")
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


def _from_path(path: str | os.PathLike[str]) -> Table:
    file = Path(path)
    if not file.is_file():
        raise SpaceError(
            f"there is no file {os.fspath(path)!r} to read rows from; check the path, or pass the "
            "pool itself as space=..."
        )
    columns = (_parquet if file.suffix in (".parquet", ".pq") else _csv)(file)
    return Table(columns, path=str(file.absolute()))


def _parquet(file: Path) -> dict[str, Column]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        table = parquet.read_table(file)
    except pa.ArrowException as error:
        raise SpaceError(f"{file} is not a Parquet file that can be read: {error}") from error
    _check_distinct(table.column_names, str(file))
    return {name: as_column(_arrow_values(table.column(name))) for name in table.column_names}


def _arrow_values(column: Any) -> Any:
    values = column.to_numpy() if column.null_count == 0 else None
    return values if values is not None and values.dtype.kind in "biuf" else column.to_pylist()


def _csv(file: Path) -> dict[str, Column]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            header, *rows = [row for row in csv.reader(lines) if row] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpaceError(f"{file} is not CSV text in UTF-8: {error}") from error
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise SpaceError(f"{file} has a single column {header[0]!r}; separate columns by commas")
    _check_distinct(header, str(file))
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise SpaceError(
                f"rows are ragged: row {i} of {file} has {len(row)} cells, the header has "
                f"{len(header)}; quote cells that hold commas"
            )
    cells: Iterable[tuple[str, ...]] = zip(*rows, strict=True) if rows else [()] * len(header)
    return {name: _cells(column) for name, column in zip(header, cells, strict=True)}


def _cells(cells: Sequence[str]) -> Column:
    """Numbers if every cell is one, else text; an empty cell is missing either way."""
    numbers = _numbers(cells)
    if numbers is not None:
        return as_column(numbers)
    empty = [not cell or cell.isspace() for cell in cells]
    filled = [cell for cell, gone in zip(cells, empty, strict=True) if not gone]
    values = iter(_numbers(filled) or filled)
    return as_column([None if gone else next(values) for gone in empty])


def _numbers(cells: Sequence[str]) -> list[int] | list[float] | None:
    for parse in (int, float):
        try:
            numbers = list(map(parse, cells))
        except ValueError:
            continue
        # Python reads 1_000 as a number; in a table it is a name.
        return None if "_" in " ".join(cells) else numbers
    return None


def _check_distinct(names: Sequence[Any], owner: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SpaceError(f"{owner} has two columns called {twice[0]!r}; rename one of them")
