"""Parquet files, batch by batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from covey.errors import MissingExtraError, SpaceError
from covey.space.column import Column, as_column, joined
from covey.space.names import check_distinct
from covey.space.progress import Tally

_ROWS = 2**16  # of a batch


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
    for batch in opened.iter_batches(batch_size=_ROWS, use_threads=False, columns=names):
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
