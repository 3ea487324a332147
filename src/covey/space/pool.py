"""A finite pool of candidates: the rows of a table, some columns seen by the model.

`Pool` is what users make. `Encoded` is a table reduced to distinct rows with their coordinates;
`RowIndex` finds rows among many by their hashes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from covey.errors import SpaceError
from covey.space.names import digest, is_number, is_scalar, listed, missing, plain, unknown
from covey.space.reading import Rows, Source, read_rows
from covey.space.table import Feature, Scaled, equal_to, fit_feature

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.space.constraints import Constraint
    from covey.space.kinds import Parameter
    from covey.space.mixture import Mixture
    from covey.space.table import Column, Table

_log = logging.getLogger("covey")

# Equal rows, found without comparing all pairs.

# SplitMix64 (Steele, Lea and Flood 2014): the increment, and the mixing of 64 bits.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
_HASHED = 2**16  # cells hashed at a time, which fit a processor's cache


class RowIndex:
    """An index of rows by their sorted 64-bit hashes: 16 bytes a row, built in n log n + n d.

    Rows with equal hashes are compared bit by bit, so a collision costs time but is never wrong.
    """

    def __init__(self, rows: Array) -> None:
        hashes = _hashes(rows)
        self._rows = rows
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def first_of_each(self) -> tuple[Indices, tuple[int, int] | None]:
        """Indices of the first of every distinct row, in order, and the first pair of equal rows.

        >>> RowIndex(np.array([[1.0], [2.0], [1.0]])).first_of_each()
        (array([0, 1]), (0, 2))
        """
        n, order = len(self._rows), self._order
        same = self._hashes[1:] == self._hashes[:-1]
        if not same.any():
            return np.arange(n), None
        met = np.zeros(n, dtype=np.bool_)
        met[order[1:][same]] = met[order[:-1][same]] = True
        suspects = np.flatnonzero(met)
        packed = _bits(self._rows[suspects]).view(np.dtype((np.void, 8 * self._rows.shape[1])))
        _, first, group = np.unique(packed[:, 0], return_index=True, return_inverse=True)
        original = suspects[first[group.reshape(-1)]]
        repeats = original != suspects
        if not repeats.any():
            return np.arange(n), None
        kept = np.ones(n, dtype=np.bool_)
        kept[suspects[repeats]] = False
        at = int(np.flatnonzero(repeats)[0])
        return np.flatnonzero(kept), (int(original[at]), int(suspects[at]))

    def find(self, rows: Array) -> Indices:
        """The index (m,) of each of m rows, -1 for one that is not there; log n each.

        >>> RowIndex(np.array([[1.0], [2.0]])).find(np.array([[2.0], [3.0]]))
        array([ 1, -1])
        """
        hashes = _hashes(rows)
        found = np.full(len(rows), -1, dtype=np.intp)
        at, end = (np.searchsorted(self._hashes, hashes, side=s) for s in ("left", "right"))
        left = np.flatnonzero(at < end)
        while len(left):  # more than once only after a collision
            there = self._order[at[left]]
            same = (_bits(self._rows[there]) == _bits(rows[left])).all(axis=1)
            found[left[same]] = there[same]
            at[left] += 1
            left = left[~same & (at[left] < end[left])]
        return found


def _bits(rows: Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.ascontiguousarray(rows).view(np.uint64)


def _hashes(rows: Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A hash (n,) of each row: the sum of its cells, each scrambled depending on its column."""
    n, d = rows.shape
    steps = _STEP * np.arange(1, d + 1, dtype=np.uint64)
    hashes = np.empty(n, dtype=np.uint64)
    block = max(1, _HASHED // d)
    for start in range(0, n, block):
        cells = _bits(rows[start : start + block]) + steps
        for shift, factor in _SCRAMBLE:
            cells ^= cells >> np.uint64(shift)
            cells *= np.uint64(factor)
        cells.sum(axis=1, out=hashes[start : start + block])
    return hashes


# Which columns the model sees (inputs), and which are carried along (labels).

# 2 GiB of float64; only one-hot columns of many distinct texts get there.
_MOST_CELLS = 2**28


def chosen_inputs(
    table: Table, inputs: Sequence[str] | None, labels: Sequence[str]
) -> tuple[str, ...]:
    """The inputs, or all columns that are not labels; or an error that names the nearest."""
    names = tuple(table.columns)
    for role, given in (("inputs", inputs), ("labels", labels)):
        if isinstance(given, str):
            raise SpaceError(f"{role} must be a list of columns, got {given!r}; write [{given!r}]")
        for name in given or ():
            if name not in names:
                raise unknown(name, names, "column", table.path or "the table")
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


def _checked_log(log: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
    """The inputs on a log scale, or an error."""
    if isinstance(log, str) or not isinstance(log, Sequence):
        raise SpaceError(f"log must be a list of columns, got {log!r}; write log=['conc']")
    for name in log:
        if name not in inputs:
            raise unknown(name, inputs, "input", "the model, of which log scales are,")
    return tuple(log)


def refuse_too_wide(features: Mapping[str, Feature], n: int) -> None:
    """Raise if the inputs of n rows would not fit into memory."""
    if n * sum(feature.width for feature in features.values()) > _MOST_CELLS:
        name = max(features, key=lambda name: features[name].width)
        raise SpaceError(
            f"encoding {n} rows would take more than 2 GiB; the input {name!r} alone needs "
            f"{features[name].width} columns. Carry it unseen with labels=[{name!r}] and give "
            "numbers that describe it as inputs."
        )


# A table and its coordinates for the model.


@dataclass(frozen=True)
class Encoded:
    """The distinct rows of a table, the first of each, and their coordinates."""

    table: Table
    features: dict[str, Feature]  # of the inputs
    rows: Array  # (n, d), read only
    places: RowIndex
    repeats: str  # a message about the rows left out

    @classmethod
    def of(
        cls,
        table: Table,
        inputs: Sequence[str] | None,
        labels: Sequence[str],
        log: Sequence[str] = (),
    ) -> Self:
        """The candidates of a table, or an error that names the row and the column at fault."""
        chosen = chosen_inputs(table, inputs, labels)
        logs = _checked_log(log, chosen)
        features = {
            name: fit_feature(name, table.columns[name], table.where, log=name in logs)
            for name in chosen
        }
        refuse_too_wide(features, len(table))
        rows = encode(features, table.columns, len(table))
        rows.setflags(write=False)
        places = RowIndex(rows)
        kept, pair = places.first_of_each()
        if pair is None:
            return cls(table, features, rows, places, "")
        some = rows[kept]
        some.setflags(write=False)
        words = _words(table, pair, len(table) - len(kept))
        return cls(table.take(kept), features, some, RowIndex(some), words)


def encode(features: Mapping[str, Feature], columns: Mapping[str, Any], n: int) -> Array:
    """Coordinates (n, d) of n rows given by columns."""
    rows = np.empty((n, sum(feature.width for feature in features.values())))
    start = 0
    for name, feature in features.items():
        rows[:, start : start + feature.width] = feature.encode(columns[name])
        start += feature.width
    return rows


def slices(features: Mapping[str, Feature]) -> dict[str, slice]:
    """The encoded columns of each input."""
    stops = list(accumulate(feature.width for feature in features.values()))
    return dict(zip(features, map(slice, [0, *stops[:-1]], stops), strict=True))


def _words(table: Table, pair: tuple[int, int], left_out: int) -> str:
    a, b = pair
    both = f"rows {a} and {b}" if table.source is None else f"{table.where(a)} and {table.where(b)}"
    return (
        f"{both} have the same inputs; rows that repeat an earlier one ({left_out} in all) are "
        "left out"
    )


class Pool:
    """A finite set of candidates: from dicts, a 2-d array, a data frame, a CSV or a Parquet file.

    The model sees the ``inputs`` (by default every column that is not a label): numbers scaled to
    [0, 1] by the pool's smallest and largest, in logs those that ``log`` names; text and booleans
    one-hot. All other columns are carried along in the points. Rows with the same inputs are one
    candidate, the first of them. Files are read in blocks; a mistake in one is named by its line,
    counted from 1, and its column.

    >>> pool = Pool([{"t": 20, "dye": "red"}, {"t": 40, "dye": "red"}], labels=["dye"])
    >>> pool.rows
    array([[0.],
           [1.]])
    >>> pool.point(1)
    {'t': 40, 'dye': 'red'}
    """

    def __init__(
        self,
        rows: Rows,
        inputs: Sequence[str] | None = None,
        labels: Sequence[str] = (),
        log: Sequence[str] = (),
    ) -> None:
        held = Encoded.of(read_rows(rows, inputs, labels), inputs, labels, log)
        if held.repeats:
            warnings.warn(held.repeats, UserWarning, stacklevel=2)
        self._held = held
        self._table = held.table
        self._rows = held.rows
        self._features = held.features
        self._slices = slices(held.features)
        self._seen = held.table.source  # the file as it was when its content was last compared

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
    def log(self) -> tuple[str, ...]:
        """The inputs that the model sees in logs."""
        return tuple(n for n, one in self._features.items() if isinstance(one, Scaled) and one.log)

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

    # The description of a pool by a log, while its file holds other candidates by now.
    written: Mapping[str, Any] | None = None

    # What a `Space` may have and a pool never does: its rows are all that is allowed.
    groups: ClassVar[None] = None  # each column has a length-scale of its own
    presence: ClassVar[None] = None  # no input of a pool may be absent
    absent_at: ClassVar[None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})  # columns are not declared
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    mixtures: ClassVar[tuple[Mixture, ...]] = ()

    def levels(self, fixed: Collection[str] = ()) -> tuple[slice, ...]:
        """The encoded columns of each input that has options and no numbers, and is not fixed."""
        return tuple(
            where
            for name, where in self._slices.items()
            if name not in fixed and where.stop - where.start > 1
        )

    def resolution(self, share: float) -> Array:
        """Differences (width,) below which encoded rows are alike: a share of each range."""
        return np.full(self.width, share)

    def columns_of(self, name: str) -> slice:
        """The encoded columns of one input."""
        if name not in self._slices:
            raise unknown(name, self.inputs, "input", "this pool")
        return self._slices[name]

    def encode(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates (n, d) of n points, in the pool or not; only their inputs matter."""
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
        """The values (n,) of one column."""
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
        """Refuse a label that contradicts the row with these inputs: it is no new candidate."""
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
        held = {name: plain(point[name]) for name in self.names if name in point}
        return {name: value for name, value in held.items() if is_scalar(value)}

    def from_json(self, obj: Mapping[str, Any], partial: bool = False) -> dict[str, Any]:
        """The point that :meth:`to_json` wrote; labels come back from the pool."""
        return self.check(obj, partial=partial) if self.written is None else dict(obj)

    def describe(self) -> dict[str, Any]:
        """Its description in JSON; ``opaque`` unless its rows come from a file."""
        if self.written is not None:
            return dict(self.written)
        path = self._table.path
        return {
            "kind": "pool",
            "columns": list(self.names),
            "inputs": list(self.inputs),
            **({"log": list(self.log)} if self.log else {}),
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
        """The sha256 of the description without the path, since a file may move."""
        described = self.describe()
        return digest({k: v for k, v in described.items() if k not in ("path", "opaque")})

    @property
    def path(self) -> str | None:
        """The file that the rows were read from, if they were."""
        return self._table.path

    def verify_source(self) -> None:
        """Raise if the file that the rows were read from holds others by now.

        Compares the file's size and time, in microseconds; only if they differ is it read again. A
        file that is gone, or cannot be read, is logged once and is no error: the rows are in
        memory. (Our choice.)

        Raises:
            SpaceError: it has changed, or can no longer be read.
        """
        if self.written is not None:
            raise SpaceError(
                f"{self.path} holds other candidates than those of this study. Put the file back "
                "as it was, or go on with the new ones: study.extend(pool, reason), or "
                "`covey extend`."
            )
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
            if not self._is_in(source.path):
                raise SpaceError(
                    f"{source.path} has changed since this pool was read from it. Nothing was done."
                    " Put the file back as it was and try again; or go on from the journal with "
                    "Study.load(..., space=covey.Pool(...)) of a copy as it was."
                )
            self._seen = now

    def _is_in(self, path: str) -> bool:
        """Whether a file holds these candidates."""
        try:
            rows = read_rows(path, self.inputs, self.labels)
            now = Encoded.of(rows, self.inputs, self.labels, self.log)
        except SpaceError:
            return False
        return now.table.sha256() == self._sha256

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Pool) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        labels = f", labels={list(self.labels)!r}" if self.labels else ""
        log = f", log={list(self.log)!r}" if self.log else ""
        return f"Pool({self.size} candidates, inputs={list(self.inputs)!r}{labels}{log})"
