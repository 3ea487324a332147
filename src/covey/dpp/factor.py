"""A partial Cholesky factor, grown one pivot at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from covey.arrays import Array, Indices, beside, first_largest, namespace


class Factor:
    r"""Rows C with L ≈ CᵀC, exact on the pivots, and what they leave of the diagonal.

    .. math:: r_i = L_{ii} - \sum_m C_{mi}^2 = L_{ii} - L_{iS} L_{SS}^{-1} L_{Si}

    Only the diagonal and one column per pivot are read. Cost n·rank per pivot, memory n·rank, where
    the diagonal is.

    >>> L = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> factor = Factor(L.diagonal(), capacity=2)
    >>> factor.grow(0, L[0])
    >>> factor.residual
    array([0. , 1.5])
    """

    __slots__ = ("_diagonal", "_rows", "rank", "residual")

    def __init__(self, diagonal: Array, capacity: int) -> None:
        xp = namespace(diagonal)
        shape = (capacity, len(diagonal))
        self._diagonal = diagonal
        self._rows: Array = xp.empty(shape, dtype=diagonal.dtype, device=diagonal.device)
        self.rank = 0
        self.residual: Array = xp.asarray(diagonal, copy=True)  # (n,), the conditional variances

    @property
    def rows(self) -> Array:
        """C, (rank, n)."""
        return self._rows[: self.rank]

    @property
    def floor(self) -> Array:
        """Below this a residual is rounding, (n,): some units in the last place per pivot."""
        return unit(self._diagonal, self.rank) * self._diagonal

    def largest(self) -> tuple[float, int]:
        """The largest residual that is not rounding and the first index to have it, or -inf."""
        xp = namespace(self.residual)
        left = xp.where(self.residual > self.floor, self.residual, -np.inf)
        most = float(xp.max(left))
        return most, 0 if most == -np.inf else int(first_largest(left))

    def grow(self, pivot: int, column: Array) -> None:
        """Add one pivot, given its column of L, (n,)."""
        rows = self.rows
        row = (column - rows[:, pivot] @ rows) / math.sqrt(float(self.residual[pivot]))
        self._rows[self.rank] = row
        self.residual -= row * row
        self.residual[pivot] = 0.0
        self.rank += 1

    def take(self, pivots: Indices, parts: Iterable[tuple[slice, Array]]) -> None:
        """Begin with pivots whose rows of C are known, for one part of the items after another."""
        self.rank = len(pivots)
        for part, rows in parts:
            self._rows[: self.rank, part] = rows
            self.residual[part] -= namespace(rows).einsum("ij,ij->j", rows, rows)
        self.residual[beside(pivots, self.residual)] = 0.0


def unit(array: Array, rank: int) -> float:
    """What rounding may leave of one after so many pivots, in the precision of the array."""
    eps = float(namespace(array).finfo(array.dtype).eps)
    return (128.0 + 16.0 * rank) * eps
