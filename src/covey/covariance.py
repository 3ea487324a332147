"""The `Covariance` protocol, conditional variances, and the pivoted Cholesky factor.

Every symmetric matrix here is read by parts: its diagonal, blocks, columns, and the matrix of a
subset. A prior on n points (`covey.kernels.KernelMatrix`), a posterior (`covey.belief.Gaussian`,
K - VᵀV), the kernel of a DPP (`Information`) and a user's own matrix (`covey.dpp`) are covariances,
and so is each of them conditioned, restricted to a subset, or with the identity added.
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

# A matrix may miss symmetry or semidefiniteness by this fraction of its diagonal, as single
# precision does. (Our choice.)
TOLERANCE = 1e-6
_GATHERED = 2**32  # bytes up to which a kernel is held whole on a device (our choice)
_UNITS = 4096.0  # machine epsilons of rounding that are tolerated (our choice)


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
        """The matrix of these items alone, which may be quicker to read."""
        ...


@runtime_checkable
class RandomFunction(Covariance, Protocol):
    """The covariance of a random function at n items, which can also be evaluated elsewhere."""

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array, /
    ) -> tuple[Callable[[slice], Array], Array]:
        """Joint draws at the items, a slice of the draws at a time; and elsewhere, (draws, m)."""
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
        """A matrix and its own diagonal."""
        return Dense(matrix, matrix.diagonal())

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the matrix."""
        return self.matrix[rows[:, None], cols]

    def columns(self, cols: Indices, /) -> Array:
        """Columns, read as rows: the same by symmetry, and contiguous in memory."""
        return self.matrix[cols].T

    def on(self, indices: Indices, /) -> Dense:
        """A copy of the rows and columns of these items."""
        return Dense(self.block(indices, indices), self.diagonal[indices])


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A covariance times a factor."""

    base: Covariance
    factor: float

    @property
    def diagonal(self) -> Array:
        """The variances."""
        return self.factor * self.base.diagonal

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the matrix."""
        return self.factor * self.base.block(rows, cols)

    def columns(self, cols: Indices, /) -> Array:
        """Columns of the matrix."""
        return self.factor * self.base.columns(cols)

    def on(self, indices: Indices, /) -> Scaled:
        """The covariance of these items."""
        return Scaled(self.base.on(indices), self.factor)


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """A subset of the items of a covariance, read through the whole of it."""

    whole: Covariance
    items: Indices  # (m,)

    @property
    def diagonal(self) -> Array:
        """The variances of the items, (m,)."""
        return self.whole.diagonal[like(self.items, self.whole.diagonal)]

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries, read from the whole."""
        return self.whole.block(self.items[rows], self.items[cols])

    def columns(self, cols: Indices, /) -> Array:
        """Columns, as a block of the whole."""
        return self.whole.block(self.items, self.items[cols])

    def on(self, indices: Indices, /) -> Subset:
        """Fewer items of the same whole."""
        return Subset(self.whole, self.items[indices])


@dataclass(frozen=True, eq=False)
class Information:
    """L = I + mean over members of Σ/σ², the kernel of the DPP; all eigenvalues >= 1 (MATH 0.6).

    >>> half = Dense.of(0.5 * np.eye(2))
    >>> Information((half,), (0.25,)).columns(np.array([1]))
    array([[0.],
           [3.]])
    """

    members: tuple[Covariance, ...]  # Σ of each
    noises: tuple[float, ...]  # σ² of each

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
        """Columns, at the cost of the columns of each member."""
        out = self._mean([member.columns(cols) for member in self.members])
        out[cols, np.arange(len(cols))] += 1.0
        return out

    def on(self, indices: Indices, /) -> Information:
        """The kernel of a subset."""
        some = tuple(member.on(indices) for member in self.members)
        return Information(some, self.noises)

    def _mean(self, arrays: Sequence[Array]) -> Array:
        """The mean of Σ/σ² over the members, for arrays of one shape."""
        scaled = [array / noise for array, noise in zip(arrays, self.noises, strict=True)]
        if len(scaled) == 1:
            return scaled[0]
        xp = namespace(scaled[0])
        mean: Array = xp.mean(xp.stack(scaled), axis=0)
        return mean


def _crossings(rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
    """The positions (i, j) with rows[i] == cols[j]; items may occur more than once.

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


# Conditional variances, given a set of items.


def conditional_variances(diagonal: Array, white: Array) -> Array:
    r"""v(j|S) = L_jj - |C⁻¹ L_Sj|², C Cᵀ = L_SS, for columns ``white`` = C⁻¹ L_Sj: (p,).

    It is det L_{S+j} / det L_S, the factor by which item j multiplies the determinant (Schur
    complement, MATH 5). Rounding may make it slightly negative where it vanishes. Cost p |S|.

    >>> conditional_variances(np.array([2.0]), np.array([[1.0], [0.5]]))
    array([0.75])
    """
    left: Array = diagonal - namespace(white).einsum("ij,ij->j", white, white)
    return left


@dataclass(frozen=True, eq=False)
class Conditional:
    """A set S of given items and the Cholesky factor of L_SS, for conditional variances."""

    kernel: Covariance
    items: Indices  # (m,)
    factor: Array  # (m, m), lower

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self.factor, self.kernel.diagonal)

    def variances(self, at: Indices) -> Array:
        """v(j|S) for the items ``at``, on the host; zero for those in S. Cost m² for each."""
        diagonal = self.kernel.diagonal
        white = self._whiten(self.kernel.block(self.items, at))
        variances = to_numpy(conditional_variances(diagonal[like(at, diagonal)], white))
        variances[np.isin(at, self.items)] = 0.0
        return np.maximum(variances, 0.0)

    def all_variances(self) -> Array:
        """v(j|S) for all items, (n,), chunk by chunk. Cost n m²."""
        diagonal = self.kernel.diagonal
        every = np.arange(len(diagonal))
        size = entries_each(self.items, diagonal)
        return np.concatenate(
            list(each_chunk(lambda part: self.variances(every[part]), diagonal, size))
        )


def entries_each(items: Indices, where: Array) -> int:
    """``per_row`` of `each_chunk` for conditioning on these items.

    On the host a quarter of their number, so chunks are larger than the cache: a kernel may spend
    as much on the items, once a chunk, as on hundreds of candidates. (Our choice.)
    """
    return max(1, len(items) // 4 if is_numpy(where) else len(items))


def gathered(kernel: Covariance, most: int = _GATHERED) -> Covariance:
    """The kernel, held whole if it is on a device and takes at most ``most`` bytes.

    On a device one column takes as long to read as a thousand: launching dominates.
    """
    n = len(kernel.diagonal)
    if is_numpy(kernel.diagonal) or 8 * n * n > most:
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
    """The error for a kernel that is not positive semidefinite."""
    return NumericsError(
        f"the kernel is not positive semidefinite: {what}; "
        "a k-DPP needs a covariance, or any matrix of the form F Fᵀ"
    )


def check_semidefinite(residual: Array, diagonal: Array, items: Indices | None = None) -> None:
    """Raise if a conditional variance (of all items, or of ``items``) is negative beyond rounding.

    A chosen item has residual 0, and a duplicate of it a few units of rounding below.
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
    r"""Rows C with L ≈ CᵀC, exact on the pivots, and the residual diagonal.

    .. math:: r_i = L_{ii} - \sum_m C_{mi}^2 = L_{ii} - L_{iS} L_{SS}^{-1} L_{Si}

    Reads the diagonal and one column per pivot. Cost n·rank per pivot, memory n·rank on the device
    of the diagonal (Chen, Zhang & Zhou 2018).

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
        """Residuals below this are rounding errors, (n,)."""
        return unit(self._diagonal, self.rank) * self._diagonal

    def largest(self) -> tuple[float, int]:
        """The largest residual above `floor` and the first index that has it; -inf if none is."""
        xp = namespace(self.residual)
        left = xp.where(self.residual > self.floor, self.residual, -np.inf)
        most = float(xp.max(left))
        return most, 0 if most == -np.inf else int(first_largest(left))

    def grow(self, pivot: int, column: Array) -> None:
        """Add one pivot, given its column (n,) of L. Cost n·rank."""
        rows = self.rows
        # e_i = (L_ji - <c_j, c_i>) / d_j, then d_i² -= e_i² (Chen, Zhang & Zhou 2018; MATH 5).
        row = (column - rows[:, pivot] @ rows) / math.sqrt(float(self.residual[pivot]))
        self._rows[self.rank] = row
        self.residual -= row * row
        self.residual[pivot] = 0.0
        self.rank += 1

    def take(self, pivots: Indices, parts: Iterable[tuple[slice, Array]]) -> None:
        """Start from pivots whose rows of C are known, given slice by slice of the items."""
        self.rank = len(pivots)
        for part, rows in parts:
            self._rows[: self.rank, part] = rows
            self.residual[part] = conditional_variances(self.residual[part], rows)
        self.residual[like(pivots, self.residual)] = 0.0
