"""Array types, and the few operations NumPy lacks (SciPy is imported when first needed)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.errors import NumericsError

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

_TIE = 1e-9
# Jitter is tried in these fractions until the factorisation succeeds.
_JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)


def cholesky(matrix: Array, scale: float | None = None) -> Array:
    """Lower Cholesky factor of a symmetric positive (semi)definite matrix.

    Where rounding has made it indefinite, jitter is added in fractions of ``scale`` (None: of the
    mean diagonal).

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        scale = float(np.mean(np.diagonal(matrix))) if scale is None else scale
    for jitter in _JITTERS:
        try:
            shifted = plus_diagonal(matrix, jitter * scale)
            return np.asarray(np.linalg.cholesky(shifted), dtype=np.float64)
        except np.linalg.LinAlgError:
            continue
    raise NumericsError(
        f"a {len(matrix)} x {len(matrix)} covariance is not positive definite, even with "
        f"{_JITTERS[-1] * scale:g} added to its diagonal. Check that the kernel is symmetric and "
        "positive semidefinite, and that no entry is nan."
    )


def plus_diagonal(matrix: Array, values: Array | float) -> Array:
    """The matrix with values added to its diagonal."""
    out = matrix.copy()
    out.flat[:: len(matrix) + 1] += values
    return out


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread.

    At the size of an ask several threads were seen to be seven times slower; and they round
    differently, so that a batch would depend on the machine's settings.
    """
    import scipy.linalg  # noqa: F401 - loads its own BLAS, for the limit to reach
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def first_largest(values: Array) -> int:
    """Index of the largest value; of values that agree to a billionth the first.

    Two ways to compute the same gains differ by rounding, and that must not decide.

    >>> first_largest(np.array([1.0, 3.0, 3.0 + 1e-12]))
    1
    """
    most = float(values.max())
    return int(np.argmax(values >= most - _TIE * abs(most)))


def solve_lower(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """Solve C x = b (or Cᵀ x = b) for a lower triangular C.

    LAPACK directly: in a fit the wrapper around it costs more than the solve. LAPACK reads by
    columns, so a C-ordered C goes in as the upper triangle Cᵀ and is not copied.
    """
    from scipy.linalg.lapack import dtrtrs

    if len(factor) == 0 or right.size == 0:
        return np.zeros_like(right)
    by_rows = not factor.flags.f_contiguous
    solution, info = dtrtrs(
        factor.T if by_rows else factor, right, lower=not by_rows, trans=transposed ^ by_rows
    )
    if info:
        raise NumericsError(
            f"a triangular {len(factor)} x {len(factor)} factor has a zero at place {info} of its "
            "diagonal; it is no Cholesky factor of a positive definite matrix."
        )
    return np.asarray(solution)


def log_normal_cdf(z: Array) -> Array:
    """log Φ(z), accurate far into the lower tail where Φ itself underflows (z < -38)."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(z))
