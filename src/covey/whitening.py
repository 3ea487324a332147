"""Whitening: the inverse of a Cholesky factor, applied to very many columns."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, beside, inverse_lower, is_host

# Rows taken together on the host: only blocks of this size on the diagonal are inverted. With 16
# or 64 it was seen to take a fifth more. (Our choice.)
_BLOCK = 32


class Whitening:
    """C⁻¹ of a lower triangular C (m, m), applied to arrays (m, p) wherever they are. Cost p m².

    All of it is products of matrices. A triangular solve with very many right sides keeps other
    threads waiting on the host, and on a GPU is slow and was seen to hang. So there the inverse
    multiplies them; here it is forward substitution by blocks, and what the inverse of a block
    loses in accuracy one step of refinement gets back.

    >>> Whitening(np.array([[2.0, 0.0], [1.0, 1.0]]), np.zeros(1))(np.array([[2.0], [3.0]]))
    array([[1.],
           [2.]])
    """

    __slots__ = ("_blocks", "_inverse")

    def __init__(self, factor: Array, where: Array) -> None:
        here = is_host(where)
        self._inverse = None if here else beside(inverse_lower(factor), where)
        starts = range(0, len(factor) if here else 0, _BLOCK)
        self._blocks = [_Block(factor, low) for low in starts]

    def __call__(self, right: Array) -> Array:
        """C⁻¹ times the array, (m, p)."""
        if self._inverse is not None:
            return self._inverse @ right
        out = np.empty(right.shape)
        for block in self._blocks:
            out[block.rows] = block.solve(right[block.rows], out)
        return out


class _Block:
    """Some rows of C."""

    __slots__ = ("_corner", "_inverse", "_left", "rows")

    def __init__(self, factor: Array, low: int) -> None:
        self.rows = slice(low, low + _BLOCK)
        self._left = factor[self.rows, :low]
        self._corner = np.ascontiguousarray(factor[self.rows, self.rows])
        self._inverse = np.ascontiguousarray(inverse_lower(self._corner))

    def solve(self, right: Array, above: Array) -> Array:
        """C⁻¹ times these rows, given what it came to above them."""
        if self.rows.start:
            right = right - self._left @ above[: self.rows.start]
        first = self._inverse @ right
        left = right - self._corner @ first
        solved: Array = first + self._inverse @ left
        return solved
