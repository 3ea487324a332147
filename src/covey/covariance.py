"""Covariance: the one protocol of every symmetric matrix here, read by parts, never whole unasked.

A kernel on n points (`covey.kernels.KernelMatrix`), what observations leave of it
(`covey.belief.Gaussian`, K - VᵀV), the kernel of a DPP (`Information`) and a user's own matrix
(`covey.dpp`) all tell their diagonal, blocks, columns, and the matrix of a subset. So does what is
made of them: to condition, to cut down or to add the identity gives a covariance again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from covey.arrays import Array, Indices, Whitening, beside, host, is_host, namespace
from covey.large.resources import each_chunk


class Covariance(Protocol):
    """A symmetric positive semidefinite matrix over n items, on the host or on a device."""

    @property
    def diagonal(self) -> Array:
        """The variances, (n,)."""
        ...

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """The entries at these rows and columns, (len(rows), len(cols)), without a pass over n."""
        ...

    def columns(self, cols: Indices, /) -> Array:
        """Whole columns, (n, len(cols))."""
        ...

    def on(self, indices: Indices, /) -> Covariance:
        """The matrix of these items alone, which may make it quicker to read."""
        ...


@runtime_checkable
class RandomFunction(Covariance, Protocol):
    """The covariance of a random function, known at n items and anywhere else besides."""

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array, /
    ) -> tuple[Callable[[slice], Array], Array]:
        """Joint draws of the function: at the items, some draws at a time; and elsewhere."""
        ...

    def gradient(self, elsewhere: Array, weights: Array, /) -> Array:
        """Gradient at the items of x ↦ Σ_i w_i k(x, x_i) for points x_i elsewhere, (n, d)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A covariance held as one (n, n) array, never copied.

    >>> Dense.of(np.array([[2.0, 1.0], [1.0, 3.0]])).on(np.array([1])).diagonal
    array([3.])
    """

    matrix: Array  # (n, n)
    diagonal: Array  # (n,)

    @staticmethod
    def of(matrix: Array) -> Dense:
        """A matrix with the diagonal it has."""
        return Dense(matrix, matrix.diagonal())

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Read off."""
        return self.matrix[rows[:, None], cols]

    def columns(self, cols: Indices, /) -> Array:
        """Columns, read as rows: the same by symmetry, and contiguous in memory."""
        return self.matrix[cols].T

    def on(self, indices: Indices, /) -> Dense:
        """A copy of the rows and columns of some items."""
        return Dense(self.block(indices, indices), self.diagonal[indices])


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """Some items of a covariance that cannot be cut down itself, read through the whole."""

    whole: Covariance
    items: Indices

    @property
    def diagonal(self) -> Array:
        """Their variances, (len(items),)."""
        return self.whole.diagonal[beside(self.items, self.whole.diagonal)]

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the whole."""
        return self.whole.block(self.items[rows], self.items[cols])

    def columns(self, cols: Indices, /) -> Array:
        """Columns, as a block of the whole."""
        return self.whole.block(self.items, self.items[cols])

    def on(self, indices: Indices, /) -> Subset:
        """Fewer items of the same whole."""
        return Subset(self.whole, self.items[indices])


@dataclass(frozen=True, eq=False)
class Information:
    """L = I + mean over members of Σ/σ² (MATH 0.6): the kernel of the DPP; all eigenvalues >= 1.

    >>> half = Dense.of(0.5 * np.eye(2))
    >>> Information((half,), (0.25,)).columns(np.array([1]))
    array([[0.],
           [3.]])
    """

    members: tuple[Covariance, ...]  # Σ of each
    noises: tuple[float, ...]  # σ² of each
    room: int | None = None  # bytes that a factor of it may take, where that is known

    @cached_property
    def diagonal(self) -> Array:
        """1 + σ²(x)/σ², (n,)."""
        return 1.0 + self._mean([member.diagonal for member in self.members])

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries, with a one where a row and a column are the same item."""
        out = self._mean([member.block(rows, cols) for member in self.members])
        i, j = _crossings(rows, cols)
        out[i, j] += 1.0
        return out

    def columns(self, cols: Indices, /) -> Array:
        """Columns, at the cost of one of each member."""
        out = self._mean([member.columns(cols) for member in self.members])
        out[cols, np.arange(len(cols))] += 1.0
        return out

    def on(self, indices: Indices, /) -> Information:
        """The kernel of a subset."""
        some = tuple(member.on(indices) for member in self.members)
        return Information(some, self.noises, self.room)

    def _mean(self, arrays: Sequence[Array]) -> Array:
        """Of Σ/σ² of one shape, wherever they are; the only one is itself."""
        scaled = [array / noise for array, noise in zip(arrays, self.noises, strict=True)]
        if len(scaled) == 1:
            return scaled[0]
        xp = namespace(scaled[0])
        mean: Array = xp.mean(xp.stack(scaled), axis=0)
        return mean


def _crossings(rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
    """Where a row and a column are the same item, which may come more than once.

    >>> i, j = _crossings(np.array([7, 5, 7]), np.array([5, 9, 7]))
    >>> i.tolist(), j.tolist()
    ([0, 1, 2], [2, 0, 2])
    """
    order = np.argsort(cols, kind="stable")
    ordered = cols[order]
    low, high = (np.searchsorted(ordered, rows, side=side) for side in ("left", "right"))
    times = high - low
    i = np.repeat(np.arange(len(rows)), times)
    # Within each run of equal columns, one place after the other.
    step = np.arange(len(i)) - np.repeat(np.cumsum(times) - times, times)
    return i, order[np.repeat(low, times) + step]


# Conditional variances, given some items.


def conditional_variances(diagonal: Array, white: Array) -> Array:
    r"""v(j|S) = L_jj - |C⁻¹ L_Sj|², C Cᵀ = L_SS, for columns ``white`` = C⁻¹ L_Sj: (p,).

    It is the factor det L_{S+j} / det L_S by which one more item multiplies the determinant
    (Schur complements, MATH 5). Rounding may leave a little below zero where the variance vanishes.

    >>> conditional_variances(np.array([2.0]), np.array([[1.0], [0.5]]))
    array([0.75])
    """
    left: Array = diagonal - namespace(white).einsum("ij,ij->j", white, white)
    return left


@dataclass(frozen=True, eq=False)
class Conditional:
    """The items S that are given, and the Cholesky factor of L_SS."""

    kernel: Covariance
    items: Indices  # (m,)
    factor: Array  # (m, m), lower

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self.factor, self.kernel.diagonal)

    def variances(self, at: Indices) -> Array:
        """v(j|S) for the items ``at``, on the host; zero for those in S.

        Reads m entries of L for each. Cost m² each.
        """
        diagonal = self.kernel.diagonal
        white = self._whiten(self.kernel.block(self.items, at))
        variances = host(conditional_variances(diagonal[beside(at, diagonal)], white))
        variances[np.isin(at, self.items)] = 0.0
        return np.maximum(variances, 0.0)

    def all_variances(self) -> Array:
        """v(j|S) for all n items, chunk by chunk. Cost n m²."""
        diagonal = self.kernel.diagonal
        every = np.arange(len(diagonal))
        size = entries_each(self.items, diagonal)
        return np.concatenate(
            list(each_chunk(lambda part: self.variances(every[part]), diagonal, size))
        )


def entries_each(items: Indices, where: Array) -> int:
    """Entries counted for each candidate of a chunk, with so many items to condition on.

    On the host fewer than there are, since a kernel may spend as much on these items for each chunk
    as on hundreds of candidates; an array of the chunk then takes 16 MB. (Our choice.)
    """
    return max(1, len(items) // 4 if is_host(where) else len(items))
