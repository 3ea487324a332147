"""Rows that are the same, found without comparing them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from covey.arrays import Array, Indices

# SplitMix64 (Steele, Lea and Flood 2014): the step, and what scrambles 64 bits into any others.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
_BLOCK = 2**16  # cells hashed at a time, which fit a processor's cache


class Places:
    """Where each row is, by 64-bit hashes in order: 16 bytes a row, made in n log n + n d.

    Only rows whose hashes meet are compared, and then in full, bit by bit: a collision costs time,
    never a row.
    """

    def __init__(self, rows: Array) -> None:
        hashes = _hashes(rows)
        self._rows = rows
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    def first_of_each(self) -> tuple[Indices, tuple[int, int] | None]:
        """Indices of the first of every distinct row, in order, and the first pair that is one.

        >>> Places(np.array([[1.0], [2.0], [1.0]])).first_of_each()
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

        >>> Places(np.array([[1.0], [2.0]])).find(np.array([[2.0], [3.0]]))
        array([ 1, -1])
        """
        hashes = _hashes(rows)
        found = np.full(len(rows), -1, dtype=np.intp)
        at, end = (np.searchsorted(self._hashes, hashes, side=s) for s in ("left", "right"))
        left = np.flatnonzero(at < end)
        while len(left):  # once, but for a collision
            there = self._order[at[left]]
            same = (_bits(self._rows[there]) == _bits(rows[left])).all(axis=1)
            found[left[same]] = there[same]
            at[left] += 1
            left = left[~same & (at[left] < end[left])]
        return found


def _bits(rows: Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.ascontiguousarray(rows).view(np.uint64)


def _hashes(rows: Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """One number for each row: a sum of scrambled cells, scrambled otherwise in each column."""
    n, d = rows.shape
    steps = _STEP * np.arange(1, d + 1, dtype=np.uint64)
    hashes = np.empty(n, dtype=np.uint64)
    block = max(1, _BLOCK // d)
    for start in range(0, n, block):
        cells = _bits(rows[start : start + block]) + steps
        for shift, factor in _SCRAMBLE:
            cells ^= cells >> np.uint64(shift)
            cells *= np.uint64(factor)
        cells.sum(axis=1, out=hashes[start : start + block])
    return hashes
