"""A table and its coordinates for the model: what a pool is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from covey.space.distinct import Places
from covey.space.features import Feature, fit_feature
from covey.space.roles import chosen_inputs, refuse_too_wide

if TYPE_CHECKING:
    from covey.arrays import Array, Indices
    from covey.space.table import Table


@dataclass(frozen=True)
class Encoded:
    """The distinct rows of a table, the first of each, and their coordinates."""

    table: Table
    features: dict[str, Feature]  # of the inputs
    rows: Array  # (n, d), read only
    places: Places
    kept: Indices | None  # which rows of the whole table they are, if not all
    repeats: str  # which were left out, in words

    @classmethod
    def of(cls, table: Table, inputs: Sequence[str] | None, labels: Sequence[str]) -> Self:
        """The candidates of a table, or an error that names the row and the column at fault."""
        chosen = chosen_inputs(table, inputs, labels)
        features = {name: fit_feature(name, table.columns[name], table.where) for name in chosen}
        refuse_too_wide(features, len(table))
        rows = encode(features, table.columns, len(table))
        rows.setflags(write=False)
        places = Places(rows)
        kept, pair = places.first_of_each()
        if pair is None:
            return cls(table, features, rows, places, None, "")
        some = rows[kept]
        some.setflags(write=False)
        words = _words(table, pair, len(table) - len(kept))
        return cls(table.take(kept), features, some, Places(some), kept, words)

    def original(self, i: int) -> int:
        """The row of the whole table that candidate ``i`` is."""
        return i if self.kept is None else int(self.kept[i])


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
