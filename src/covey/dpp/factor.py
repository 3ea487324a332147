"""A partial Cholesky factor, grown one pivot at a time."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array

_EPS = float(np.finfo(np.float64).eps)


class Factor:
    r"""Rows C with L ≈ CᵀC, exact on the pivots, and what they leave of the diagonal.

    .. math:: r_i = L_{ii} - \sum_m C_{mi}^2 = L_{ii} - L_{iS} L_{SS}^{-1} L_{Si}

    Only the diagonal and one column per pivot are read. Cost n·rank per pivot, memory n·rank.

    >>> L = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> factor = Factor(L.diagonal(), capacity=2)
    >>> factor.grow(0, L[0])
    >>> factor.residual
    array([0. , 1.5])
    """

    __slots__ = ("_diagonal", "_rows", "rank", "residual")

    def __init__(self, diagonal: Array, capacity: int) -> None:
        self._diagonal = diagonal
        self._rows = np.empty((capacity, len(diagonal)))
        self.rank = 0
        self.residual = np.array(diagonal)  # (n,), the conditional variances

    @property
    def rows(self) -> Array:
        """C, (rank, n)."""
        return self._rows[: self.rank]

    @property
    def floor(self) -> Array:
        """Below this a residual is rounding, (n,): some units in the last place per pivot."""
        return (128.0 + 16.0 * self.rank) * _EPS * self._diagonal

    def grow(self, pivot: int, column: Array) -> None:
        """Add one pivot, given its column of L, (n,)."""
        rows = self.rows
        row = (column - rows[:, pivot] @ rows) / np.sqrt(self.residual[pivot])
        self._rows[self.rank] = row
        self.residual -= row * row
        self.residual[pivot] = 0.0
        self.rank += 1
