"""Array types, and the few operations NumPy lacks (SciPy is imported when first needed)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.errors import NumericsError

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

# Jitter is added in these fractions of the mean diagonal until the factorisation succeeds.
_JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)


def cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor of a symmetric positive (semi)definite matrix.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    scale = float(np.mean(np.diagonal(matrix))) if len(matrix) else 1.0
    for jitter in _JITTERS:
        try:
            shifted = matrix + jitter * scale * np.eye(len(matrix)) if jitter else matrix
            return np.asarray(np.linalg.cholesky(shifted), dtype=np.float64)
        except np.linalg.LinAlgError:
            continue
    raise NumericsError(
        f"a {len(matrix)} x {len(matrix)} covariance is not positive definite, even with "
        f"{_JITTERS[-1]:g} of its mean diagonal added. Check that the kernel is symmetric and "
        "positive semidefinite, and that no entry is nan."
    )


def solve_lower(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """Solve C x = b (or Cᵀ x = b) for a lower triangular C."""
    from scipy.linalg import solve_triangular

    if len(factor) == 0:
        return np.zeros_like(right)
    return np.asarray(
        solve_triangular(
            factor, right, lower=True, trans="T" if transposed else "N", check_finite=False
        )
    )


def log_normal_cdf(z: Array) -> Array:
    """log Φ(z), accurate far into the lower tail where Φ itself underflows (z < -38)."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(z))
