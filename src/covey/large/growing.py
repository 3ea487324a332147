"""The Cholesky factor of the covariance of many observations, which grows with them.

Notation: A = K + D at m observations, A = L Lᵀ, in blocks of 256 rows and columns; I and J number
the blocks, and <J stands for all blocks before J.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from covey.arrays import Array, cholesky, plus_diagonal, side_by_side, solve_lower
from covey.kernels import Kernel

BLOCK = 256  # rows: enough for matrix products at full speed, few enough to compute again


@dataclass(frozen=True, eq=False)
class Factor:
    r"""L of the observations ``at``, which can grow by further ones.

    .. math:: L_{IJ} = (A_{IJ} - L_{I,<J} L_{J,<J}^\top) L_{JJ}^{-\top}

    A block is computed from A and the blocks before it, by products whose shapes do not depend on
    later blocks. So it is the same to the last bit whether the factor was computed at once or
    grown, and with any number of threads. Only whole blocks are reused when a factor grows.

    >>> from covey.kernels import Matern52
    >>> at = np.linspace(0.0, 1.0, 5)[:, None]
    >>> some = empty(Matern52((0.5,)), 1).grown(at[:3], np.full(3, 0.1))
    >>> np.allclose(some.grown(at, np.full(5, 0.1)).lower[:3, :3], some.lower)
    True
    """

    kernel: Kernel
    at: Array  # (m, d)
    noise: Array  # (m,), the diagonal D
    lower: Array  # L (m, m), by rows
    block: int = BLOCK  # rows and columns of a block
    _shares: list[Array] = field(default_factory=list)  # `_share` of each whole block

    def __len__(self) -> int:
        return len(self.at)

    def grown(self, at: Array, noise: Array) -> Factor:
        """The factor of the observations ``at`` (m, d), reusing the rows that both begin with.

        Cost m² for each new row; memory m² beside the old factor.
        """
        shared = min(_common(self.at, at), _common(self.noise, noise))
        if shared == len(self) == len(at):
            return self
        head = shared // self.block
        lower = np.zeros((len(at), len(at)))
        for rows in self._blocks(head * self.block):
            lower[rows, : rows.stop] = self.lower[rows, : rows.stop]
        made = Factor(self.kernel, at, noise, lower, self.block, self._shares[:head])
        made._fill(head)
        return made

    def _fill(self, head: int) -> None:
        """Compute the rows of all blocks but the first ``head``."""
        blocks = self._blocks(len(self))
        list(side_by_side(self._covariances, blocks[head:]))
        for j, cols in enumerate(blocks):
            if j >= head:
                self._corner(cols)
            # The blocks of a column do not need each other.
            list(side_by_side(partial(self._below, cols), blocks[max(j + 1, head) :]))

    def _covariances(self, rows: slice) -> None:
        """Write K, up to the diagonal, into the rows where L will be."""
        self.lower[rows, : rows.stop] = self.kernel(self.at[rows], self.at[: rows.stop])

    def _corner(self, cols: slice) -> None:
        """L_JJ, the Cholesky factor of A_JJ - L_J,<J L_J,<Jᵀ."""
        left = self.lower[cols, : cols.start]
        corner = plus_diagonal(self.lower[cols, cols], self.noise[cols]) - left @ left.T
        # Rounding is relative to the prior variance, however little of it is left.
        self.lower[cols, cols] = cholesky(corner, self.kernel.variance)

    def _below(self, cols: slice, rows: slice) -> None:
        """L_IJ for the block I = ``rows`` below the corner J = ``cols``."""
        lower = self.lower
        block = lower[rows, cols] - lower[rows, : cols.start] @ lower[cols, : cols.start].T
        lower[rows, cols] = solve_lower(_copy(lower[cols, cols]), block.T).T

    @property
    def precision(self) -> Array:
        r"""The diagonal of A⁻¹, (m,): column sums of squares of L⁻¹, block by block.

        Cost m³/3 once, then m² for each new row.
        """
        blocks, done = self._blocks(len(self)), len(self._shares)
        made = list(side_by_side(self._share, blocks[done:]))
        whole = len(self) // self.block
        self._shares.extend(made[: whole - done])
        total = np.zeros(len(self))
        for share in (*self._shares, *made[max(whole - done, 0) :]):
            total[: len(share)] += share
        return total

    def _share(self, rows: slice) -> Array:
        """Column sums of squares of the rows I of L⁻¹: L_II⁻¹ (X, 1) with X L_{<I} = -L_{I,<I}."""
        lower = self.lower
        inverse = np.zeros((rows.stop - rows.start, rows.stop))
        inverse[:, rows] = np.eye(rows.stop - rows.start)
        left = inverse[:, : rows.start]
        left[:] = -lower[rows, : rows.start]
        for cols in reversed(self._blocks(rows.start)):
            after = slice(cols.stop, rows.start)
            block = left[:, cols] - left[:, after] @ lower[after, cols]
            left[:, cols] = solve_lower(_copy(lower[cols, cols]), block.T, transposed=True).T
        white = solve_lower(_copy(lower[rows, rows]), inverse)
        return np.einsum("ij,ij->j", white, white)

    def _blocks(self, stop: int) -> list[slice]:
        return [slice(low, min(low + self.block, stop)) for low in range(0, stop, self.block)]


def empty(kernel: Kernel, width: int, block: int = BLOCK) -> Factor:
    """The factor of no observations, to grow from."""
    return Factor(kernel, np.zeros((0, width)), np.zeros(0), np.zeros((0, 0)), block)


def _copy(block: Array) -> Array:
    """A contiguous copy; LAPACK would copy a part of a larger array anyway, more slowly."""
    return np.ascontiguousarray(block)


def _common(a: Array, b: Array) -> int:
    """The number of leading rows that two arrays have in common."""
    n = min(len(a), len(b))
    differ = np.any(a[:n] != b[:n], axis=tuple(range(1, a.ndim)))
    return int(np.argmax(differ)) if differ.any() else n
