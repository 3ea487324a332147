"""A table held by columns: what a pool's rows become, wherever they came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import SpaceError
from covey.space.column import Column, as_column, is_text
from covey.space.names import check_name
from covey.space.scalars import is_scalar, plain

if TYPE_CHECKING:
    from covey.arrays import Indices
    from covey.space.source import Source

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
