"""Who is first in each of several rows that are only seen in parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.arrays import Array, Indices, beside, first_largest, host, namespace
from covey.dpp.shortlist import MARGIN


class Contenders(NamedTuple):
    """Entries near the largest of their row, in ascending order of row and place."""

    rows: Indices
    places: Indices
    values: Array


class Race:
    """The first of the largest entries of each row, as the columns come in ascending order.

    Of each row only its records are kept that are nearly as large as the largest so far: the first
    entry that reaches any bound is a record, one larger than all before it.

    >>> race = Race(1)
    >>> race.see(contenders(np.array([[1.0, 3.0]])), 0)
    >>> race.see(contenders(np.array([[3.0 + 1e-12, 2.0]])), 2)
    >>> race.winner(0), float(race.most[0])
    ((1, 3.0), 3.000000000001)
    """

    __slots__ = ("_records", "most")

    def __init__(self, rows: int) -> None:
        self.most = np.full(rows, -np.inf)
        self._records = [(np.empty(0, dtype=np.intp), np.empty(0)) for _ in range(rows)]

    def see(self, some: Contenders, offset: int) -> None:
        """The contenders of further columns, whose first is number ``offset``."""
        bounds = np.searchsorted(some.rows, np.arange(len(self.most) + 1))
        largest = np.full(len(self.most), -np.inf)
        np.maximum.at(largest, some.rows, some.values)
        for row in np.flatnonzero(largest > self.most):
            mine = slice(bounds[row], bounds[row + 1])
            self._merge(int(row), offset + some.places[mine], some.values[mine])

    def _merge(self, row: int, places: Indices, values: Array) -> None:
        before = np.maximum.accumulate(np.append(self.most[row], values))
        new = values > before[:-1]
        at = np.append(self._records[row][0], places[new])
        found = np.append(self._records[row][1], values[new])
        self.most[row] = before[-1]
        keep = found >= reach(before[-1:])
        self._records[row] = (at[keep], found[keep])

    def winner(self, row: int) -> tuple[int, float]:
        """Where the first of the largest entries is, and what it is; (-1, -inf) without any."""
        at, values = self._records[row]
        if len(at) == 0:
            return -1, -np.inf
        first = first_largest(values)
        return int(at[first]), float(values[first])


def contenders(values: Array) -> Contenders:
    """The entries (rows, columns) that may win; those that are -inf do not."""
    xp = namespace(values)
    near = values >= beside(reach(host(xp.max(values, axis=1))), values)[:, None]
    rows, places = xp.nonzero(near)
    where = [np.asarray(host(some), dtype=np.intp) for some in (rows, places)]
    return Contenders(where[0], where[1], host(values[rows, places]))


def reach(most: Array) -> Array:
    """What may count as large as the largest, up to a margin; nothing where that is -inf."""
    known = np.where(most > -np.inf, most, 0.0)
    return np.where(most > -np.inf, known - MARGIN * np.abs(known), np.inf)
