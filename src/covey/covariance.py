"""Covariance: the one protocol of every symmetric matrix here, read by parts, never whole unasked.

A kernel on n points (`covey.kernels.KernelMatrix`), what observations leave of it
(`covey.belief.Gaussian`, K - VᵀV), the kernel of a DPP (`Information`) and a user's own matrix
(`covey.dpp`) all tell their diagonal, blocks, columns, and the matrix of a subset. So does what is
made of them: to condition, to cut down or to add the identity gives a covariance again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from covey.arrays import (
    Array,
    Indices,
    Whitening,
    each_chunk,
    first_largest,
    is_numpy,
    like,
    namespace,
    to_numpy,
    unit,
)
from covey.errors import NumericsError

# A matrix may miss symmetry or semidefiniteness by this fraction of its diagonal: what single
# precision leaves behind. (Our choice.)
TOLERANCE = 1e-6
# Bytes of a kernel that is held whole on a device. (Our choice.)
_GATHERED = 2**32
_UNITS = 4096.0  # of rounding that single precision may leave behind (our choice)


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
        return self.whole.diagonal[like(self.items, self.whole.diagonal)]

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
        variances = to_numpy(conditional_variances(diagonal[like(at, diagonal)], white))
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
    return max(1, len(items) // 4 if is_numpy(where) else len(items))


def gathered(kernel: Covariance) -> Covariance:
    """A kernel of few items, held whole if it is on a device.

    There a column takes as long as a thousand of them, being all calls and no work.
    """
    n = len(kernel.diagonal)
    if is_numpy(kernel.diagonal) or 8 * n * n > _GATHERED:
        return kernel
    return Dense(kernel.block(np.arange(n), np.arange(n)), kernel.diagonal)


def rank_error(k: int, rank: int) -> NumericsError:
    """The error for a kernel whose k x k determinants all vanish."""
    if rank == 0:
        return NumericsError(f"cannot choose {k} points from a kernel that is zero everywhere")
    return NumericsError(
        f"cannot choose {k} points from a kernel of rank {rank}; use k <= {rank}, "
        "or add a small multiple of the identity to the kernel"
    )


def not_psd_error(what: str) -> NumericsError:
    """The error for a matrix that no determinantal process can have."""
    return NumericsError(
        f"the kernel is not positive semidefinite: {what}; "
        "a k-DPP needs a covariance, or any matrix of the form F Fᵀ"
    )


def check_semidefinite(residual: Array, diagonal: Array, items: Indices | None = None) -> None:
    """Whether conditional variances (of all, or of some items) are those of a covariance.

    A chosen item has residual 0, and a duplicate of it a few units of rounding below; in single
    precision, a few of that.
    """
    xp = namespace(residual)
    worst = int(xp.argmin(residual))
    found = float(residual[worst])
    slack = max(TOLERANCE, _UNITS * float(xp.finfo(residual.dtype).eps))
    if found < -slack * float(diagonal[worst]):
        name = worst if items is None else int(items[worst])
        raise not_psd_error(f"item {name} has conditional variance {found:.3g}")


# A partial Cholesky factor, grown one pivot at a time.


class PivotedCholesky:
    r"""Rows C with L ≈ CᵀC, exact on the pivots, and what they leave of the diagonal.

    .. math:: r_i = L_{ii} - \sum_m C_{mi}^2 = L_{ii} - L_{iS} L_{SS}^{-1} L_{Si}

    Only the diagonal and one column per pivot are read. Cost n·rank per pivot, memory n·rank, where
    the diagonal is.

    >>> L = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> factor = PivotedCholesky(L.diagonal(), capacity=2)
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
        # e_i = (L_ji - <c_j, c_i>) / d_j, then d_i² -= e_i² (Chen, Zhang & Zhou 2018; MATH 5).
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
            self.residual[part] = conditional_variances(self.residual[part], rows)
        self.residual[like(pivots, self.residual)] = 0.0
