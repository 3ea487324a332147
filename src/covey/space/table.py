"""A table held by columns: what a pool's rows become, wherever they came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.errors import SpaceError
from covey.space.names import check_name
from covey.space.scalars import is_scalar, plain

if TYPE_CHECKING:
    from covey.arrays import Indices

Column: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of equal length: int64, float64 or bool, and objects for the rest."""

    columns: dict[str, Column]
    path: str | None = None

    def __post_init__(self) -> None:
        for name in self.columns:
            check_name(name, "column")
        if not self.columns:
            raise SpaceError("a pool needs at least one column, got none")
        if not len(self):
            raise SpaceError("a pool needs at least one row, got none")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, indices: Indices) -> Table:
        """The table with these rows only."""
        return Table({n: column[indices] for n, column in self.columns.items()}, self.path)

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
                digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
            else:
                values = column.tolist()
                shown = [v if is_scalar(v) else [type(v).__qualname__] for v in values]
                digest.update(json.dumps(shown).encode())
        return digest.hexdigest()


def as_column(values: Sequence[Any] | Column) -> Column:
    """Values of one column as int64, float64 or bool if they all are, else as objects.

    >>> as_column([1, 2.5])
    array([1. , 2.5])
    >>> as_column(["a", None])
    array(['a', None], dtype=object)
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "bif":
            kind = {"b": np.bool_, "i": np.int64, "f": np.float64}[values.dtype.kind]
            return values.astype(kind)
        values = values.tolist() if values.dtype.kind in "uU" else list(values)
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        values = [plain(value) for value in values]
    kinds = set(map(type, values))
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {int}:
        return _integers(values)
    if kinds in ({float}, {int, float}):
        return np.array(values, dtype=np.float64)
    return _objects(values)


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


def _integers(values: Sequence[int]) -> Column:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return _objects(values)


def _objects(values: Sequence[Any]) -> Column:
    return np.fromiter(values, dtype=object, count=len(values))
