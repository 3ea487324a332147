"""A finite pool of candidates: the rows of a table, some columns seen by the model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import SpaceError
from covey.space.distinct import first_of_each
from covey.space.features import Feature, fit_feature
from covey.space.names import listed, missing, unknown
from covey.space.reading import Rows, read
from covey.space.scalars import digest, is_number, is_scalar, plain

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.space.table import Column, Table

# 2 GiB of float64; only one-hot columns of many distinct texts get there.
_MOST_CELLS = 2**28


class Pool:
    """Candidates one by one: a list of dicts, a 2-d array, a data frame, a CSV or Parquet path.

    The model sees the ``inputs`` (by default every column that is not a label): numbers scaled to
    [0, 1] by the pool's smallest and largest, text and booleans one-hot. All other columns are
    carried along in the points. Rows with the same inputs are one candidate, the first of them.

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
        table = read(rows)
        self._inputs = _chosen_inputs(tuple(table.columns), inputs, labels)
        self._features = {name: fit_feature(name, table.columns[name]) for name in self._inputs}
        _refuse_too_wide(self._features, len(table))
        stops = np.cumsum([feature.width for feature in self._features.values()]).tolist()
        self._slices = dict(zip(self._inputs, map(slice, [0, *stops[:-1]], stops), strict=True))
        encoded = self._encode_columns(table.columns, len(table))
        kept, pair = first_of_each(encoded)
        if pair is not None:
            warnings.warn(
                f"rows {pair[0]} and {pair[1]} have the same inputs; rows that repeat an earlier "
                f"one ({len(table) - len(kept)} in all) are left out",
                UserWarning,
                stacklevel=2,
            )
            table, encoded = table.take(kept), encoded[kept]
        encoded.setflags(write=False)
        self._table: Table = table
        self._rows: Array = encoded

    @property
    def names(self) -> tuple[str, ...]:
        """Every column, in the order of the table."""
        return tuple(self._table.columns)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns the model sees."""
        return self._inputs

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

    def columns_of(self, name: str) -> slice:
        """The encoded columns of one input."""
        if name not in self._slices:
            raise unknown(name, self.inputs, "input", "this pool")
        return self._slices[name]

    def _encode_columns(self, columns: Mapping[str, Any], n: int) -> Array:
        u = np.empty((n, sum(feature.width for feature in self._features.values())))
        for name, feature in self._features.items():
            u[:, self._slices[name]] = feature.encode(columns[name])
        return u

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, in the pool or not; only their inputs are looked at."""
        if isinstance(points, Mapping):
            raise SpaceError("encode takes a list of points, got one dict; write encode([point])")
        columns = {
            name: [self._checked(name, self._given(point, name)) for point in points]
            for name in self._inputs
        }
        return self._encode_columns(columns, len(points))

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

    def point(self, i: int) -> dict[str, Any]:
        """Candidate ``i`` with all its columns, as Python scalars."""
        if not 0 <= i < self.size:
            raise SpaceError(f"there is no candidate {i}; this pool has 0 to {self.size - 1}")
        return self._table.row(i)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {key: i for i, key in enumerate(_keys(self._rows))}

    def locate(self, points: Sequence[Mapping[str, Any]]) -> Indices:
        """Indices (n,) of points among the candidates, -1 for one that is not there.

        The first call builds a dict of all candidates; each look-up is then O(1).
        """
        found = [self._places.get(key, -1) for key in _keys(self.encode(points))]
        return np.array(found, dtype=np.intp)

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
                mask &= _equal(self._table.columns[name], value)
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

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Pool) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        labels = f", labels={list(self.labels)!r}" if self.labels else ""
        return f"Pool({self.size} candidates, inputs={list(self.inputs)!r}{labels})"


def _chosen_inputs(
    names: tuple[str, ...], inputs: Sequence[str] | None, labels: Sequence[str]
) -> tuple[str, ...]:
    for role, given in (("inputs", inputs), ("labels", labels)):
        if isinstance(given, str):
            raise SpaceError(f"{role} must be a list of columns, got {given!r}; write [{given!r}]")
        for name in given or ():
            if name not in names:
                raise unknown(name, names, "column", "the table")
    both = set(inputs or ()).intersection(labels)
    if both:
        raise SpaceError(
            f"{listed(sorted(both))} cannot be both an input and a label; "
            "an input is seen by the model, a label is not"
        )
    chosen = tuple(name for name in names if name not in labels) if inputs is None else inputs
    if not chosen:
        raise SpaceError(
            f"no inputs are left for the model; the table has {listed(names)}. "
            "Leave one out of labels, or name some in inputs."
        )
    return tuple(dict.fromkeys(chosen))


def _refuse_too_wide(features: Mapping[str, Feature], n: int) -> None:
    if n * sum(feature.width for feature in features.values()) > _MOST_CELLS:
        name = max(features, key=lambda name: features[name].width)
        raise SpaceError(
            f"encoding {n} rows would take more than 2 GiB; the input {name!r} alone needs "
            f"{features[name].width} columns. Carry it unseen with labels=[{name!r}] and give "
            "numbers that describe it as inputs."
        )


def _keys(rows: Array) -> list[bytes]:
    buffer, step = np.ascontiguousarray(rows).tobytes(), 8 * rows.shape[1]
    return [buffer[i : i + step] for i in range(0, len(buffer), step)]


def _equal(column: Column, value: Any) -> Mask:
    if column.dtype == np.object_:
        return np.array([type(v) is type(value) and v == value for v in column], dtype=np.bool_)
    alike = isinstance(value, bool) if column.dtype == np.bool_ else is_number(value)
    return column == value if alike else np.zeros(len(column), dtype=np.bool_)
