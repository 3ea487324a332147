"""The kernel of a k-DPP: a positive semidefinite matrix, given whole or by its columns."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from covey.arrays import Array, Indices, beside, host, is_host, namespace
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


@runtime_checkable
class Divisible(Blocks, Protocol):
    """A symmetric matrix that can also be cut down to some of its items."""

    def on(self, indices: Indices, /) -> Blocks:
        """The matrix of these items alone, which may make it quicker to read."""
        ...


Kernel: TypeAlias = "ArrayLike | Columns"


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A kernel held as one (n, n) array, never copied."""

    matrix: Array
    diagonal: Array

    def columns(self, indices: Indices, /) -> Array:
        """Columns, read as rows: the same by symmetry, and contiguous in memory."""
        return self.matrix[indices].T

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries at the crossings of ``rows`` and ``cols``."""
        return self.matrix[rows[:, None], cols]

    def on(self, indices: Indices, /) -> Dense:
        """A copy of the rows and columns of some items."""
        return Dense(self.block(indices, indices), self.diagonal[indices])


@dataclass(frozen=True, slots=True, eq=False)
class ByColumns:
    """A kernel that knows columns only; a block is cut from whichever side has fewer of them."""

    source: Columns
    diagonal: Array

    def columns(self, indices: Indices, /) -> Array:
        """Columns of the source, checked for shape and nan."""
        return _checked(self.source.columns(indices), (len(self.diagonal), len(indices)))

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries at the crossings, at the price of min(len(rows), len(cols)) columns."""
        if len(cols) <= len(rows):
            return self.columns(cols)[rows]
        return self.columns(rows)[cols].T

    def on(self, indices: Indices, /) -> Part:
        """Some items, read through the whole kernel."""
        return Part(self, indices)


@dataclass(frozen=True, slots=True, eq=False)
class ByBlocks:
    """A kernel that knows columns and blocks."""

    source: Blocks
    diagonal: Array

    def columns(self, indices: Indices, /) -> Array:
        """Columns of the source, checked for shape and nan."""
        return _checked(self.source.columns(indices), (len(self.diagonal), len(indices)))

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the source, checked for shape and nan."""
        return _checked(self.source.block(rows, cols), (len(rows), len(cols)))

    def on(self, indices: Indices, /) -> Divisible:
        """Some items: cut by the source if it can, else read through the whole kernel."""
        if not isinstance(self.source, Divisible):
            return Part(self, indices)
        return ByBlocks(self.source.on(indices), self.diagonal[beside(indices, self.diagonal)])


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some items of a kernel."""

    whole: Blocks
    items: Indices

    @property
    def diagonal(self) -> Array:
        """Their diagonal, (len(items),)."""
        return self.whole.diagonal[beside(self.items, self.whole.diagonal)]

    def columns(self, indices: Indices, /) -> Array:
        """Columns, as a block of the whole."""
        return self.whole.block(self.items, self.items[indices])

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the whole."""
        return self.whole.block(self.items[rows], self.items[cols])

    def on(self, indices: Indices, /) -> Part:
        """Fewer items of the same whole."""
        return Part(self.whole, self.items[indices])


def adapt(L: Kernel) -> Divisible:
    """Any accepted kernel as one that can tell diagonal, columns and blocks, and be cut down.

    A dense array is read once (nan, symmetry) and not copied; columns are checked as they come.
    """
    if isinstance(L, Dense | ByColumns | ByBlocks | Part):
        return L
    if isinstance(L, Blocks):
        return ByBlocks(L, _diagonal(L.diagonal))
    if isinstance(L, Columns):
        return ByColumns(L, _diagonal(L.diagonal))
    return _dense(L)


def gathered(kernel: Blocks) -> Blocks:
    """A kernel of few items, held whole if it is on a device.

    There a column takes as long as a thousand of them, being all calls and no work.
    """
    n = len(kernel.diagonal)
    if is_host(kernel.diagonal) or 8 * n * n > _GATHERED:
        return kernel
    return Dense(kernel.block(np.arange(n), np.arange(n)), kernel.diagonal)


def densify(kernel: Blocks) -> Array:
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
