"""A finite pool of candidates: the rows of a table, some columns seen by the model."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import SpaceError
from covey.space.features import Encoded, encode, slices
from covey.space.names import digest, is_number, is_scalar, listed, missing, plain, unknown
from covey.space.reading import Rows, Source, read_rows
from covey.space.table import equal_to

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.space.table import Column, Table


# What has changed between two readings of a table.

_BLOCK = 2**14


def difference(then: Table, now: Table) -> tuple[int, str] | str | None:
    """The first row that differs and what differs in it; or what differs as a whole; or None."""
    if list(then.columns) != list(now.columns):
        return f"its columns were {listed(then.columns)} and are {listed(now.columns)}"
    rows = {name: _first(then.columns[name], now.columns[name]) for name in then.columns}
    found = [(row, name) for name, row in rows.items() if row is not None]
    if found:
        row, name = min(found)
        was, is_ = then.row(row)[name], now.row(row)[name]
        return row, f"the column {name!r} had {was!r} and has {is_!r}"
    if len(then) != len(now):
        return f"it had {len(then)} rows and has {len(now)}"
    return None


def _first(then: Column, now: Column) -> int | None:
    """The first cell that differs, of as many as both have."""
    for start in range(0, min(len(then), len(now)), _BLOCK):
        cells = slice(start, start + _BLOCK)
        for i, a, b in zip(count(start), then[cells].tolist(), now[cells].tolist(), strict=False):
            if not _same(a, b):
                return i
    return None


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124 - nan, which equals nothing


_log = logging.getLogger("covey")


class Pool:
    """Candidates one by one: a list of dicts, a 2-d array, a data frame, a CSV or Parquet path.

    The model sees the ``inputs`` (by default every column that is not a label): numbers scaled to
    [0, 1] by the pool's smallest and largest, text and booleans one-hot. All other columns are
    carried along in the points. Rows with the same inputs are one candidate, the first of them.
    Files are read in blocks, large ones of CSV by pyarrow where it is installed; a mistake in one
    is named by its line, counted from 1, and its column.

    >>> pool = Pool([{"t": 20, "dye": "red"}, {"t": 40, "dye": "red"}], labels=["dye"])
    >>> pool.rows
    array([[0.],
           [1.]])
    >>> pool.point(1)
    {'t': 40, 'dye': 'red'}
    """

    def __init__(
        self, rows: Rows, inputs: Sequence[str] | None = None, labels: Sequence[str] = ()
    ) -> None:
        held = Encoded.of(read_rows(rows, inputs, labels), inputs, labels)
        if held.repeats:
            warnings.warn(held.repeats, UserWarning, stacklevel=2)
        self._held = held
        self._table = held.table
        self._rows = held.rows
        self._features = held.features
        self._slices = slices(held.features)
        self._seen = held.table.source  # the file as it was when its content was last looked at

    @property
    def names(self) -> tuple[str, ...]:
        """Every column, in the order of the table."""
        return tuple(self._table.columns)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns the model sees."""
        return tuple(self._features)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that are only carried along."""
        return tuple(name for name in self.names if name not in self._features)

    @property
    def width(self) -> int:
        """Number of encoded columns, d."""
        return int(self._rows.shape[1])

    @property
    def size(self) -> int:
        """Number of distinct candidates, n."""
        return len(self._rows)

    @property
    def rows(self) -> Array:
        """The candidates' coordinates (n, d), read only."""
        return self._rows

    @property
    def levels(self) -> tuple[slice, ...]:
        """The encoded columns of each input that has options and no numbers."""
        return tuple(where for where in self._slices.values() if where.stop - where.start > 1)

    def columns_of(self, name: str) -> slice:
        """The encoded columns of one input."""
        if name not in self._slices:
            raise unknown(name, self.inputs, "input", "this pool")
        return self._slices[name]

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, in the pool or not; only their inputs are looked at."""
        if isinstance(points, Mapping):
            raise SpaceError("encode takes a list of points, got one dict; write encode([point])")
        columns = {
            name: [self._checked(name, self._given(point, name)) for point in points]
            for name in self._features
        }
        return encode(self._features, columns, len(points))

    def _given(self, point: Mapping[str, Any], name: str) -> Any:
        if name not in point:
            raise missing([name], self.inputs, "this pool")
        return point[name]

    def _checked(self, name: str, value: Any) -> Any:
        if name not in self._features:
            return plain(value)
        try:
            return self._features[name].check(value)
        except SpaceError as error:
            raise SpaceError(f"column {name!r}: {error}") from error

    def column(self, name: str) -> Column:
        """The values of one column, a candidate each."""
        if name not in self._table.columns:
            raise unknown(name, self.names, "column", "this pool")
        return self._table.columns[name]

    def point(self, i: int) -> dict[str, Any]:
        """Candidate ``i`` with all its columns, as Python scalars."""
        if not 0 <= i < self.size:
            raise SpaceError(f"there is no candidate {i}; this pool has 0 to {self.size - 1}")
        return self._table.row(i)

    def locate(self, points: Sequence[Mapping[str, Any]]) -> Indices:
        """Indices (n,) of points among the candidates, -1 for one that is not there."""
        return self._held.places.find(self.encode(points))

    def check(self, point: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point in canonical form: the pool's own row if it is there.

        A point that is not in the pool needs its inputs only. With ``partial`` some names suffice.
        """
        if not isinstance(point, Mapping):
            raise SpaceError(f"a point must be a dict such as {{'x0': 0.5}}, got {point!r}")
        for name in point:
            if name not in self._table.columns:
                raise unknown(name, self.names, "column", "this pool")
        if not partial:
            place = int(self.locate([point])[0])
            if place >= 0:
                row = self.point(place)
                self._require_labels(point, row)
                return row
        return {name: self._checked(name, point[name]) for name in self.names if name in point}

    def _require_labels(self, point: Mapping[str, Any], row: dict[str, Any]) -> None:
        """A label that contradicts the row of these inputs is a mistake, not a new candidate."""
        for name, value in point.items():
            # Missing labels are nan, which equals nothing, itself included.
            told = plain(value)
            same = row[name] == told or (is_number(told) and str(row[name]) == str(told))
            if name not in self._features and not same:
                raise SpaceError(
                    f"the row with these inputs has {name}={row[name]!r}, not {value!r}; leave "
                    f"{name!r} out, or correct the inputs."
                )

    def matching(self, fixed: Mapping[str, Any]) -> Mask:
        """Mask (n,) of the candidates that have these values, of inputs or of labels."""
        mask = np.ones(self.size, dtype=np.bool_)
        for name, value in self.check(fixed, partial=True).items():
            if name in self._features:
                held = self._features[name].encode([value])
                mask &= (self._rows[:, self._slices[name]] == held).all(axis=1)
            else:
                mask &= equal_to(self._table.columns[name], value)
        return mask

    def to_json(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as JSON holds it; a label that is no JSON scalar is left out."""
        checked = self.check(point, partial=True)
        return {name: value for name, value in checked.items() if is_scalar(value)}

    def from_json(self, obj: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point that :meth:`to_json` wrote; labels come back from the pool."""
        return self.check(obj, partial=partial)

    def describe(self) -> dict[str, Any]:
        """What it is made of, in JSON; ``opaque`` unless a file holds its rows."""
        path = self._table.path
        return {
            "kind": "pool",
            "columns": list(self.names),
            "inputs": list(self.inputs),
            "n": self.size,
            "sha256": self._sha256,
            "opaque": path is None,
            **({} if path is None else {"path": path}),
        }

    @cached_property
    def _sha256(self) -> str:
        return self._table.sha256()

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the description but for where the rows lie: a file may move."""
        described = self.describe()
        return digest({k: v for k, v in described.items() if k not in ("path", "opaque")})

    @property
    def path(self) -> str | None:
        """The file that the rows were read from, if they were."""
        return self._table.path

    def verify_source(self) -> None:
        """Raise if the file that the rows were read from holds others by now.

        Looks at the file's size and time, a matter of microseconds; only if they differ is it read
        again. A file that is gone, or out of reach, does the rows no harm, which are in memory:
        that is noted in the log, once. (Our choice.)

        Raises:
            SpaceError: it has changed; the first row and column in which it did are named.
        """
        source = self._table.source
        if source is None:
            return
        try:
            now = Source.of(Path(source.path))
        except OSError as error:
            if self._seen is not None:
                _log.warning("cannot look at %s any more: %s", source.path, error.strerror)
            self._seen = None
            return
        if now != self._seen:
            change = self._change(source.path)
            if change:
                raise SpaceError(
                    f"{source.path} has changed since this pool was read from it: {change}. Nothing"
                    " was done. Put the file back as it was and try again; or go on from the "
                    "journal with Study.load(..., space=covey.Pool(...)) of a copy as it was."
                )
            self._seen = now

    def _change(self, path: str) -> str:
        """What is other in the file, in words; nothing if it holds the same candidates."""
        try:
            now = Encoded.of(read_rows(path, self.inputs, self.labels), self.inputs, self.labels)
        except SpaceError as error:
            return str(error)
        if now.table.sha256() == self._sha256:
            return ""
        found = difference(self._table, now.table)
        if isinstance(found, tuple):
            return f"at {now.table.where(now.original(found[0]))}, {found[1]}"
        return found or "its values are of another kind"

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Pool) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        labels = f", labels={list(self.labels)!r}" if self.labels else ""
        return f"Pool({self.size} candidates, inputs={list(self.inputs)!r}{labels})"
