"""Rows that are the same, found without comparing them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from covey.arrays import Array, Indices

# An odd constant near 2^64 / golden ratio: consecutive inputs land far apart (Knuth, vol. 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def first_of_each(rows: Array) -> tuple[Indices, tuple[int, int] | None]:
    """Indices of the first of every distinct row, in order, and the first pair that is the same.

    Rows (n, d) are hashed to 64 bits and the hashes sorted: n log n + n d. Only rows whose hashes
    meet are compared in full, so a collision costs time and never a row.

    >>> first_of_each(np.array([[1.0], [2.0], [1.0]]))
    (array([0, 1]), (0, 2))
    """
    hashes = _hashes(rows)
    order = np.argsort(hashes, kind="stable")
    same = hashes[order[1:]] == hashes[order[:-1]]
    if not same.any():
        return np.arange(len(rows)), None
    met = np.zeros(len(rows), dtype=np.bool_)
    met[order[1:][same]] = met[order[:-1][same]] = True
    suspects = np.flatnonzero(met)
    packed = np.ascontiguousarray(rows[suspects]).view(np.dtype((np.void, 8 * rows.shape[1])))[:, 0]
    _, first, group = np.unique(packed, return_index=True, return_inverse=True)
    original = suspects[first[group.reshape(-1)]]
    repeats = original != suspects
    if not repeats.any():
        return np.arange(len(rows)), None
    kept = np.ones(len(rows), dtype=np.bool_)
    kept[suspects[repeats]] = False
    at = int(np.flatnonzero(repeats)[0])
    return np.flatnonzero(kept), (int(original[at]), int(suspects[at]))


def _hashes(rows: Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    bits = np.ascontiguousarray(rows).view(np.uint64)
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) * _GOLDEN
        hashes ^= hashes >> np.uint64(29)
    return hashes
