"""Descriptors of options: numbers from a file, a dict or a frame, as coordinates in [0, 1].

`features_of` does all of it. Options that are alike come to lie close together, so that a result of
one tells something about the others; `Choice` takes the coordinates for its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean, several
from covey.space.names import is_finite, listed, plain, same
from covey.space.reading import Frame, read_rows, require_file
from covey.space.reading_csv import first_record
from covey.spreadsheets import number_from_text

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.space.table import Table

MOST_COLUMNS = 8  # of the coordinates of a choice; of more, the principal components
_COPIES = 0.95  # correlation from which on a column is a near-copy of one before it
_FLAT = 1e-9  # standard deviation, as a share of the largest value, of a column that is constant
_DECIMALS = 9  # of a coordinate, so that a log from another machine agrees
# Descriptors do not say all: each of so many options has a direction of its own, so far from others
# as this share of the range of the features (our choice, decision 25).
OWN, _OWN_DIRECTIONS = 0.3, 100
_CLOSE = 1e-6  # coordinates that differ by less come from the same numbers
_CELLS = 2**20  # differences held at a time

FeatureRows: TypeAlias = Mapping[Any, Any] | Frame | str | os.PathLike[str]
"""A file or a frame, whose first column names the option, or a dict by option."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Coordinates of the options of a choice, in their order."""

    at: Array  # (options, columns), in [0, 1], no two rows equal
    words: str  # where the columns come from
    source: str | None = field(default=None, repr=False)  # path of the file, if it was one
    # Options that are gone, and where their numbers are among these; no part of a description.
    gone: tuple[tuple[Any, Array], ...] = field(default=(), repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features):
            return NotImplemented
        return self.words == other.words and np.array_equal(self.at, other.at)

    def __hash__(self) -> int:
        return hash(self.at.tobytes())

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.at.shape[1])

    @property
    def described(self) -> Array:
        """The columns (options, c) that come from numbers, without each option's own direction."""
        n = len(self.at)
        own = n if 1 < n <= _OWN_DIRECTIONS and self.width > n else 0
        return self.at[:, : self.width - own]

    def is_option(self, columns: Array) -> Mask:
        """Which rows of coordinates (n, width) are those of an option, and not of one gone."""
        return np.asarray(np.abs(columns - self.at[self.ranks(columns)]).max(axis=1) < _CLOSE)

    @property
    def finest(self) -> float:
        """Half the smallest distance of two options, in the column in which they differ most."""
        n = len(self.at)
        gaps = [np.abs(self.at[i + 1 :] - self.at[i]).max(axis=1).min() for i in range(n - 1)]
        return 0.5 * float(min(gaps, default=1.0))

    def ranks(self, columns: Array) -> Indices:
        """The option (n,) nearest to each row of coordinates (n, width)."""
        # By differences: |a|² - 2ab + |b|² would confuse options that are very close.
        step = max(1, _CELLS // self.at.size)
        parts = [
            np.square(columns[i : i + step, None] - self.at).sum(axis=2).argmin(axis=1)
            for i in range(0, len(columns), step)
        ]
        return np.concatenate([np.zeros(0, dtype=np.intp), *parts]).astype(np.intp)

    def place_of(self, value: Any) -> Array:
        """Coordinates (width,) of an option that is gone; in the middle if nothing describes it."""
        placed = np.zeros(self.width)
        columns = self.described
        known = [at for option, at in self.gone if same(option, value)]
        placed[: columns.shape[1]] = known[0] if known else columns.mean(axis=0)
        return placed

    def near(self, other: Features) -> bool:
        """Whether both come from the same numbers, up to rounding on another machine."""
        return self.at.shape == other.at.shape and bool(np.abs(self.at - other.at).max() < _CLOSE)

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again, without the file."""
        return {"at": self.at.tolist(), "words": self.words}

    @staticmethod
    def from_description(data: Any, count: int) -> Features:
        """The inverse of `describe`, for so many options."""
        try:
            at, words = np.array(data["at"], dtype=np.float64), str(data["words"])
        except (TypeError, ValueError, KeyError):
            at, words = np.zeros((0, 0)), ""
        inside = at.ndim == 2 and at.shape[1] > 0 and bool(np.all((at >= 0.0) & (at <= 1.0)))
        if not inside or not len(at) == len(np.unique(at, axis=0)) == count:
            raise SpaceError("the features of a choice in this description are damaged")
        return _frozen(at, words)


def _frozen(at: Array, words: str, source: str | None = None) -> Features:
    at.setflags(write=False)
    return Features(at, words, source)


def features_of(
    given: FeatureRows, options: Sequence[Any], alike: Callable[[Any, str], bool]
) -> Features:
    """The coordinates of options from rows that describe them; ``alike``: a cell spells an option.

    >>> given = {"THF": [66, 7.6], "DMF": [153, 36.7], "water": [100, 80.1]}
    >>> features_of(given, ["THF", "water"], lambda option, text: False).at
    array([[0. , 0.3, 0. ],
           [1. , 0. , 0.3]])
    """
    rows = _read(given)
    columns = _numbers(rows, [_row_of(option, rows, alike) for option in options])
    at, words = reduced(columns)
    same = _equal_pair(at)
    if same is not None:
        one, other = (repr(options[i]) for i in same)
        raise SpaceError(
            f"{one} and {other} have the same features in {rows.called}, so results could not tell "
            "them apart; add a column in which they differ, or leave one of them out"
        )
    return _frozen(with_own_directions(at), words, rows.source)


# Reading: a row of numbers for each option.


@dataclass(frozen=True)
class _Described:
    """Rows that describe options."""

    called: str  # in messages
    texts: list[str]  # the option that each row is about
    cells: Mapping[str, Any]  # columns by name
    where: Callable[[int], str]
    source: str | None = None


def options_in(path: str | os.PathLike[str]) -> list[str]:
    """The first column of a file of features: its options, as spelled."""
    rows = _read(path)
    if len(set(rows.texts)) < len(rows.texts):
        twice = next(text for text in rows.texts if rows.texts.count(text) > 1)
        raise SpaceError(f"{rows.called} has two rows for {twice!r}; keep one of them")
    return rows.texts


def _read(given: Any) -> _Described:
    if isinstance(given, str | os.PathLike):
        return _from_file(Path(given))
    if isinstance(given, Mapping):
        return _from_mapping(given)
    index: Any = getattr(given, "index", None)
    if hasattr(given, "columns") and hasattr(index, "dtype") and _names_options(index):
        table = read_rows(given)
        return _from_table(table, "the index of the frame", list(index), dict(table.columns))
    if not hasattr(given, "columns"):
        raise SpaceError(
            "features is the path of a CSV, .xlsx or Parquet file, a dict of a row of numbers for "
            f"each option, or a pandas or polars frame; got {type(given).__name__}"
        )
    return _first_column(read_rows(given), "the frame")


def _names_options(index: Any) -> bool:
    """Whether the index of a pandas frame has a name or texts.

    One of numbers counts rows, with gaps where the frame was filtered or sorted.
    """
    if getattr(index, "name", None) is not None:
        return True
    return not any(isinstance(plain(label), int | float) for label in index)


def _from_file(path: Path) -> _Described:
    require_file(
        path, "features", "its first column should hold the options, the others a number for each"
    )
    parquet = path.suffix.lower() in (".parquet", ".pq")
    # The first column as spelled: 007 is not 7.
    labels = [] if parquet else first_record(path)[:1]
    return _first_column(read_rows(path, labels=labels), str(path))


def _first_column(table: Table, called: str) -> _Described:
    cells = dict(table.columns)
    first = next(iter(cells))
    return _from_table(table, called, [plain(cell) for cell in cells.pop(first)], cells)


def _from_table(
    table: Table, called: str, options: Sequence[Any], cells: Mapping[str, Any]
) -> _Described:
    if not cells:
        raise SpaceError(f"{called} has no column of numbers beside the options; add one")
    texts = [_spelled(option) for option in options]
    return _Described(called, texts, cells, table.where, table.path)


def _spelled(option: Any) -> str:
    return "" if option is None else str(plain(option)).strip()


def _from_mapping(given: Mapping[Any, Any]) -> _Described:
    called = "the dict of features"
    if not given:
        raise SpaceError(f"{called} is empty; give a row of numbers for each option")
    rows = list(map(_cells, given.values()))
    names = list(rows[0])
    for option, row in zip(given, rows, strict=True):
        if list(row) != names:
            raise SpaceError(
                f"{called} has {several(len(names), 'number')} for {next(iter(given))!r} and "
                f"others for {option!r}; give all options the same columns, in one order"
            )
    cells = {name: [row[name] for row in rows] for name in names}
    return _Described(called, list(map(_spelled, given)), cells, lambda row: f"row {row}")


def _cells(row: Any) -> dict[str, Any]:
    """The numbers of one option by name."""
    if isinstance(row, Mapping):
        return {str(name): cell for name, cell in row.items()}
    if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
        row = [row]
    return {f"column {place}": cell for place, cell in enumerate(row, start=1)}


def _row_of(option: Any, rows: _Described, alike: Callable[[Any, str], bool]) -> int:
    """The row of an option; an error that names it if there is none, or more than one."""
    text = _spelled(option)
    found = [i for i, other in enumerate(rows.texts) if other == text]
    found = found or [i for i, other in enumerate(rows.texts) if alike(option, other)]
    if not found:
        raise SpaceError(
            f"{rows.called} has no features of the option {option!r}; it has rows for "
            f"{listed(rows.texts)}. Add a row, or leave the option out."
            f"{did_you_mean(text, rows.texts)}"
        )
    if len(found) > 1:
        raise SpaceError(
            f"{rows.called} has {len(found)} rows of features of the option {option!r} "
            f"({rows.where(found[0])} and {rows.where(found[1])}); keep one of them"
        )
    return found[0]


def _numbers(rows: _Described, places: Sequence[int]) -> Array:
    """The numbers (n, m) in these rows, in all columns."""
    columns = np.empty((len(places), len(rows.cells)))
    for j, (name, cells) in enumerate(rows.cells.items()):
        for i, place in enumerate(places):
            columns[i, j] = _number(cells[place], name, rows, place)
    return columns


def _number(cell: Any, name: str, rows: _Described, place: int) -> float:
    value = plain(cell)
    if isinstance(value, str):
        with suppress(SpaceError):  # said below, with its place
            value = number_from_text(value)
    if isinstance(value, bool):
        value = float(value)
    if not is_finite(value):
        empty = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
        got = "no number" if empty else repr(value)
        raise SpaceError(
            f"column {name!r} of {rows.called} has {got} for the option {rows.texts[place]!r} "
            f"({rows.where(place)}); every feature must be a finite number. Fill it in, or leave "
            "the column out."
        )
    return float(value)


# Reducing: standardised, without near-copies, few columns, in [0, 1].


def reduced(columns: Array) -> tuple[Array, str]:
    """Coordinates (n, c) in [0, 1] of rows of numbers (n, m), and in words how they came about.

    Columns are standardised; constant ones and near-copies of one before them are left out, and of
    more than `MOST_COLUMNS` the principal components are taken. All are divided by one range, the
    largest, so that distances are those of the standardised numbers.
    """
    z = _standardised(columns)
    kept = _without_copies(z)
    if len(np.unique(z[:, kept], axis=0)) < len(np.unique(z, axis=0)):
        kept = np.flatnonzero(z.any(axis=0)).tolist()  # a near-copy is all that tells two apart
    told = several(columns.shape[1], "column")
    words = told if len(kept) == columns.shape[1] else f"{len(kept)} of {told}"
    if len(columns) == 1:  # a single option needs no telling apart
        return np.full((1, 1), 0.5), told
    if not kept:
        raise SpaceError(
            "the features are the same for all options; add a column in which they differ"
        )
    z = z[:, kept]
    if len(kept) > MOST_COLUMNS:
        z, share = _principal(z)
        part = f"{100.0 * share:.0f} %"
        words = f"{z.shape[1]} principal components of {words}, {part} of their variance"
    span = float(np.ptp(z, axis=0).max())
    return np.round((z - z.min(axis=0)) / span, _DECIMALS) + 0.0, words


def with_own_directions(at: Array) -> Array:
    """Coordinates (n, c + n) with a column for each option, so that none is a copy of another.

    Of more than a hundred options (n, c): there the columns would outgrow the features.
    """
    if not 1 < len(at) <= _OWN_DIRECTIONS:
        return at
    return np.hstack([at, OWN * np.eye(len(at))])


def carried_over(
    then: Features, now: Features, shared: Sequence[tuple[int, int]], gone: Array
) -> Array:
    """The columns from numbers (c,) among ``now`` of an option that only ``then`` describes.

    Both are the same numbers, standardised over other options, so what is ``shared``, the places
    of options in both, says how one becomes the other. ``gone`` are its columns in ``then``.
    """
    pairs = np.array(shared, dtype=np.intp)
    old, new = then.described[pairs[:, 0]], now.described[pairs[:, 1]]
    away = gone - old.mean(axis=0)
    if len(now.at) == 1:  # no scale of its own: as far away as it was
        return new[0] + float(np.sqrt(np.square(away).sum()))
    old, middle = old - old.mean(axis=0), new.mean(axis=0)
    return middle + away @ _map_between(old, new - middle)


def _map_between(old: Array, new: Array) -> Array:
    """The matrix (c, d) by which centred rows (n, c) become rows (n, d), column by column if so."""
    if old.shape[1] == new.shape[1]:
        size = np.square(old).sum(axis=0)
        varies = size > _CLOSE**2
        scale = (old * new).sum(axis=0) / np.where(varies, size, 1.0)
        # Of a column in which what is left does not vary, nothing says the scale.
        scale = np.where(varies, scale, scale[varies].mean() if varies.any() else 1.0)
        if np.abs(old * scale - new).max() < _CLOSE:
            return np.diag(scale)
    return np.asarray(np.linalg.lstsq(old, new, rcond=_FLAT)[0])


def _standardised(columns: Array) -> Array:
    """The columns with mean 0 and standard deviation 1; 0 where a column is constant."""
    size = np.abs(columns).max(axis=0)
    z = columns / np.where(size > 0.0, size, 1.0)  # first, so that squares do not overflow
    z = z - z.mean(axis=0)
    spread = z.std(axis=0)
    flat = spread <= _FLAT
    return np.where(flat, 0.0, z / np.where(flat, 1.0, spread))


def _without_copies(z: Array) -> list[int]:
    """Columns of (n, m) that vary and that no kept one before them all but repeats."""
    kept: list[int] = []
    for j in np.flatnonzero(z.any(axis=0)).tolist():
        if not kept or np.abs(z[:, kept].T @ z[:, j]).max() <= _COPIES * len(z):
            kept.append(j)
    return kept


def _principal(z: Array) -> tuple[Array, float]:
    """The first principal components (n, c) of standardised columns, and their share of all."""
    left, sizes, right = np.linalg.svd(z, full_matrices=False)
    most = min(MOST_COLUMNS, int(np.sum(sizes > _FLAT * sizes[0])))
    # The sign of a component is arbitrary: its largest loading is positive.
    largest = np.abs(right[:most]).argmax(axis=1)
    signs = np.sign(right[np.arange(most), largest])
    share = float(np.square(sizes[:most]).sum() / np.square(sizes).sum())
    return left[:, :most] * sizes[:most] * signs, share


def _equal_pair(at: Array) -> tuple[int, int] | None:
    """The first two rows that are equal."""
    _, first, group = np.unique(at, axis=0, return_index=True, return_inverse=True)
    twice = np.flatnonzero(first[group.reshape(-1)] != np.arange(len(at)))
    return (int(first[group.reshape(-1)[twice[0]]]), int(twice[0])) if len(twice) else None
