"""The user's kernel L of a k-DPP, an array or an object with columns, checked and adapted."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from covey.arrays import Array, Indices, like, namespace, to_numpy
from covey.covariance import TOLERANCE, Covariance, Dense, Subset, not_psd_error
from covey.errors import NumericsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_STRIPE = 64  # rows of a dense matrix that are checked at a time, so that they stay in the cache


@runtime_checkable
class Columns(Protocol):
    """A symmetric matrix that gives its diagonal and any of its columns."""

    @property
    def diagonal(self) -> Array:
        """The diagonal, (n,)."""
        ...

    def columns(self, indices: Indices, /) -> Array:
        """The columns at these indices, (n, len(indices))."""
        ...


@runtime_checkable
class Blocks(Columns, Protocol):
    """A symmetric matrix that also gives single entries, without a pass over n."""

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """The entries at these rows and columns, (len(rows), len(cols))."""
        ...


KernelLike: TypeAlias = "ArrayLike | Columns"
"""The types that `covey.dpp` takes as L; `adapt` turns them into a `Covariance`."""


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A user's kernel as a `Covariance`; each array that it gives is checked for shape and nan."""

    source: Columns
    diagonal: Array  # (n,), no entry below zero
    cut: Blocks | None  # the source, if it gives single entries

    def columns(self, indices: Indices, /) -> Array:
        """Columns of the source."""
        return _checked(self.source.columns(indices), (len(self.diagonal), len(indices)))

    def block(self, rows: Indices, cols: Indices, /) -> Array:
        """Entries of the source; else cut from columns, on the side with fewer."""
        if self.cut is not None:
            return _checked(self.cut.block(rows, cols), (len(rows), len(cols)))
        if len(cols) <= len(rows):
            return self.columns(cols)[rows]
        return self.columns(rows)[cols].T

    def on(self, indices: Indices, /) -> Covariance:
        """The kernel of these items: the source's own ``on``, else read through the whole."""
        smaller = getattr(self.source, "on", None)
        if self.cut is None or smaller is None:
            return Subset(self, indices)
        some = smaller(indices)
        return Checked(some, self.diagonal[like(indices, self.diagonal)], some)


def adapt(L: KernelLike) -> Covariance:
    """Any accepted kernel as a covariance.

    A dense array is checked once for nan and symmetry, cost n², and not copied; columns are checked
    as they are read.
    """
    if isinstance(L, Dense | Checked | Subset):
        return L
    if isinstance(L, Columns):
        return Checked(L, _diagonal(L.diagonal), L if isinstance(L, Blocks) else None)
    return _dense(L)


def densify(kernel: Covariance) -> Array:
    """The whole (n, n) matrix, on the host."""
    if isinstance(kernel, Dense):
        return to_numpy(kernel.matrix)
    return to_numpy(kernel.columns(np.arange(len(kernel.diagonal))))


def check_count(k: int, n: int) -> int:
    """``k`` as an int; NumericsError unless 1 <= k <= n.

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


def _dense(values: ArrayLike) -> Dense:
    """An array as a covariance, checked for shape, nan and symmetry. Cost n²."""
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
    """The diagonal (n,), checked and clipped at zero."""
    if callable(values):
        raise NumericsError("a kernel's diagonal is an attribute or property, not a method.")
    diagonal = _array(values)
    if diagonal.ndim != 1 or len(diagonal) == 0:
        raise NumericsError(
            f"a kernel needs a diagonal of shape (n,), n >= 1; got {tuple(diagonal.shape)}"
        )
    if not _finite(diagonal):
        where = int(np.flatnonzero(~np.isfinite(to_numpy(diagonal)))[0])
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
    """An array that the kernel gave, checked for shape and nan."""
    found = _array(values)
    if tuple(found.shape) != shape:
        raise NumericsError(
            f"the kernel gave an array of shape {tuple(found.shape)}, expected {shape}"
        )
    if not _finite(found):
        raise NumericsError("the kernel gave entries that are nan or infinite; check its inputs")
    return found


def _array(values: Array) -> Array:
    """A float array in its own library; a NumPy array if it belongs to none."""
    try:
        xp = namespace(values)
    except TypeError:
        xp = np
    return np.asarray(values, dtype=np.float64) if xp is np else values


def _finite(array: Array) -> bool:
    xp = namespace(array)
    return bool(xp.all(xp.isfinite(array)))
