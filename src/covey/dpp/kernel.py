"""The kernel of a k-DPP: a positive semidefinite matrix, given whole or by its columns."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from covey.arrays import (
    Array,
    Indices,
    beside,
    first_largest,
    host,
    is_host,
    namespace,
)
from covey.covariance import Covariance, Dense, Subset, conditional_variances
from covey.errors import NumericsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# A matrix may miss symmetry or semidefiniteness by this fraction of its diagonal: what single
# precision leaves behind. (Our choice.)
TOLERANCE = 1e-6
# Rows of a dense matrix looked at together while it is checked, so that they stay in the cache.
_STRIPE = 64
# Bytes of a kernel that is held whole on a device. (Our choice.)
_GATHERED = 2**32


@runtime_checkable
class Columns(Protocol):
    """A symmetric matrix that can tell its diagonal and any of its columns."""

    @property
    def diagonal(self) -> Array:
        """The diagonal, (n,)."""
        ...

    def columns(self, indices: Indices, /) -> Array:
        """The named columns, (n, len(indices))."""
        ...


@runtime_checkable
class Blocks(Columns, Protocol):
    """A symmetric matrix that can also tell single entries without a pass over n."""

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """The entries at these rows and columns, (len(rows), len(cols))."""
        ...


KernelLike: TypeAlias = "ArrayLike | Columns"
"""What `covey.dpp` takes as L; `adapt` makes a `Covariance` of it once."""


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A user's kernel as a `Covariance`, whose answers are checked for shape and nan."""

    source: Columns
    diagonal: Array  # (n,), no entry below zero
    cut: Blocks | None  # the source, if it can tell single entries

    def columns(self, indices: Indices, /) -> Array:
        """Columns of the source."""
        return _checked(self.source.columns(indices), (len(self.diagonal), len(indices)))

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the source; else cut from columns, on whichever side there are fewer."""
        if self.cut is not None:
            return _checked(self.cut.block(rows, cols), (len(rows), len(cols)))
        if len(cols) <= len(rows):
            return self.columns(cols)[rows]
        return self.columns(rows)[cols].T

    def on(self, indices: Indices, /) -> Covariance:
        """Some items: cut by the source if it can, else read through the whole kernel."""
        smaller = getattr(self.source, "on", None)
        if self.cut is None or smaller is None:
            return Subset(self, indices)
        some = smaller(indices)
        return Checked(some, self.diagonal[beside(indices, self.diagonal)], some)


def adapt(L: KernelLike) -> Covariance:
    """Any accepted kernel as a covariance.

    A dense array is read once (nan, symmetry) and not copied; columns are checked as they come.
    """
    if isinstance(L, Dense | Checked | Subset):
        return L
    if isinstance(L, Columns):
        return Checked(L, _diagonal(L.diagonal), L if isinstance(L, Blocks) else None)
    return _dense(L)


def gathered(kernel: Covariance) -> Covariance:
    """A kernel of few items, held whole if it is on a device.

    There a column takes as long as a thousand of them, being all calls and no work.
    """
    n = len(kernel.diagonal)
    if is_host(kernel.diagonal) or 8 * n * n > _GATHERED:
        return kernel
    return Dense(kernel.block(np.arange(n), np.arange(n)), kernel.diagonal)


def densify(kernel: Covariance) -> Array:
    """The whole (n, n) matrix, on the host."""
    if isinstance(kernel, Dense):
        return host(kernel.matrix)
    return host(kernel.columns(np.arange(len(kernel.diagonal))))


def check_count(k: int, n: int) -> int:
    """``k`` as an int when 1 <= k <= n.

    >>> check_count(4, 3)
    Traceback (most recent call last):
    covey.errors.NumericsError: cannot choose 4 distinct points from 3; use 1 <= k <= 3
    """
    try:
        k = operator.index(k)
    except TypeError as error:
        raise NumericsError(f"k must be a whole number, got {k!r}; use 1 <= k <= {n}") from error
    if k < 1:
        raise NumericsError(f"k must be at least 1, got {k}; use 1 <= k <= {n}")
    if k > n:
        raise NumericsError(f"cannot choose {k} distinct points from {n}; use 1 <= k <= {n}")
    return k


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


def _dense(values: ArrayLike) -> Dense:
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NumericsError(
            f"a kernel is an (n, n) array or an object with `diagonal` and `columns`, "
            f"got {type(values).__name__}"
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise NumericsError(f"a kernel must be square, (n, n); got shape {matrix.shape}")
    diagonal = _diagonal(matrix.diagonal())
    gap = _asymmetry(matrix)
    if not np.isfinite(gap):
        row, col = (int(i) for i in np.argwhere(~np.isfinite(matrix))[0])
        raise NumericsError(
            f"the kernel must be finite, got {matrix[row, col]} at row {row}, column {col}"
        )
    if gap > TOLERANCE * float(diagonal.max()) * np.sqrt(len(matrix)):
        raise NumericsError(
            f"the kernel must be symmetric; it differs from its transpose by about {gap:.3g}. "
            "Pass (L + L.T) / 2 if that is what you mean"
        )
    return Dense(matrix, diagonal)


def _asymmetry(matrix: Array) -> float:
    """Largest entry of |(L - Lᵀ) x| for one fixed generic x: one pass over memory, no copy."""
    n = len(matrix)
    probe = np.random.default_rng(0).uniform(0.5, 1.5, n)
    gap = np.zeros(n)
    with np.errstate(invalid="ignore", over="ignore"):  # nan and inf are the caller's to report
        for low in range(0, n, _STRIPE):
            stripe = matrix[low : low + _STRIPE]
            gap[low : low + _STRIPE] += stripe @ probe
            gap -= probe[low : low + _STRIPE] @ stripe
    return float(np.abs(gap).max())


def _diagonal(values: Array) -> Array:
    if callable(values):
        raise NumericsError("a kernel's diagonal is an attribute or property, not a method.")
    diagonal = _array(values)
    if diagonal.ndim != 1 or len(diagonal) == 0:
        raise NumericsError(
            f"a kernel needs a diagonal of shape (n,), n >= 1; got {tuple(diagonal.shape)}"
        )
    if not _finite(diagonal):
        where = int(np.flatnonzero(~np.isfinite(host(diagonal)))[0])
        raise NumericsError(
            f"the kernel must be finite, got {diagonal[where]} at row {where}, column {where}"
        )
    xp = namespace(diagonal)
    low = int(xp.argmin(diagonal))
    if float(diagonal[low]) < -TOLERANCE * float(xp.max(xp.abs(diagonal))):
        raise not_psd_error(f"its diagonal holds {float(diagonal[low]):.3g} at index {low}")
    clipped: Array = xp.where(diagonal > 0.0, diagonal, 0.0)
    return clipped


def _checked(values: Array, shape: tuple[int, int]) -> Array:
    found = _array(values)
    if tuple(found.shape) != shape:
        raise NumericsError(
            f"the kernel gave an array of shape {tuple(found.shape)}, expected {shape}"
        )
    if not _finite(found):
        raise NumericsError("the kernel gave entries that are nan or infinite; check its inputs")
    return found


def _array(values: Array) -> Array:
    """Floats, where they are; what belongs to no array library becomes NumPy's."""
    try:
        xp = namespace(values)
    except TypeError:
        xp = np
    return np.asarray(values, dtype=np.float64) if xp is np else values


def _finite(array: Array) -> bool:
    xp = namespace(array)
    return bool(xp.all(xp.isfinite(array)))


# What greedy maximisation chooses.

_UNITS = 4096.0  # of rounding that single precision may leave behind (our choice)


class GreedyPicks(NamedTuple):
    """What greedy picked, in order, and the factor by which each pick multiplied det L_S."""

    picks: Indices  # (k,)
    gains: Array  # (k,)
    passes: int  # how often all n items were looked at, a column or a chunk at a time


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
        self.residual[beside(pivots, self.residual)] = 0.0


def unit(array: Array, rank: int) -> float:
    """What rounding may leave of one after so many pivots, in the precision of the array."""
    eps = float(namespace(array).finfo(array.dtype).eps)
    return (128.0 + 16.0 * rank) * eps


# Few of very many items, to look at first.

# Values within this of each other count as equal: wider than in `covey.arrays.first_largest`.
MARGIN = 1e-8


def spread(values: Array, count: int) -> Indices:
    """About ``count`` items, ascending: half with the largest values, half evenly spread.

    >>> spread(np.array([0.0, 1.0, 0.0, 7.0, 8.0, 0.0]), 4)
    array([0, 3, 4, 5])
    """
    even = np.linspace(0, len(values) - 1, min(len(values), count // 2)).astype(np.intp)
    return np.union1d(largest(values, count - count // 2), even)


def largest(values: Array, count: int) -> Indices:
    """Where the largest values are; of those about as large as the least of them, the first.

    >>> largest(np.array([2.0, 2.0, 5.0, 2.0 + 1e-12]), 2)
    array([2, 0])
    """
    if count >= len(values):
        return np.arange(len(values))
    least = np.partition(values, len(values) - count)[len(values) - count]
    if least == -np.inf:
        return np.flatnonzero(values > -np.inf)
    width = MARGIN * abs(least)
    above = np.flatnonzero(values > least + width)
    level = np.flatnonzero(np.abs(values - least) <= width)
    return np.concatenate([above, level[: count - len(above)]])
