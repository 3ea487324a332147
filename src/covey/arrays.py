"""Arrays of NumPy or torch: types, factorisations, order statistics, work chunk by chunk.

Also threads, devices, rows that are close, and the logarithm of the normal distribution
function. The only module that knows both array libraries. SciPy and torch are imported when
first needed.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from covey.errors import MissingExtraError, NumericsError

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

MOST = 1e100  # largest absolute value or error: squares must not overflow
TIE = 1e-9  # relative difference below which gains are equal, and the lowest index wins
MARGIN = 1e-8  # the same where a short list is made: wider than a tie
_LARGE = 2**20  # bytes above which a copy from a GPU goes through pinned memory
_JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)  # fractions tried until the factorisation succeeds


def cholesky(matrix: Array, scale: float | None = None) -> Array:
    """Lower Cholesky factor of a symmetric positive (semi)definite matrix (n, n). Cost n³/3.

    Where rounding has made it indefinite, jitter is added to the diagonal, in fractions of
    ``scale`` (None: of the mean diagonal).

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
    """A copy of the matrix with values added to its diagonal."""
    out = matrix.copy()
    out.flat[:: len(matrix) + 1] += values
    return out


def namespace(array: Any) -> Any:
    """The array API namespace of an array: NumPy, or that of the library that holds it.

    Arrays over n candidates may be torch tensors on any device (`Array` stands for both). Arrays
    the size of a batch or of the data are NumPy's, on the host.
    """
    if isinstance(array, np.ndarray):
        return np
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise MissingExtraError("array-api-compat", "torch") from error
    return array_namespace(array)


def is_numpy(array: Any) -> bool:
    """Whether an array is NumPy's."""
    return isinstance(array, np.ndarray)


def to_numpy(array: Any) -> Array:
    """The array as a NumPy array; copied only if it is not one."""
    if isinstance(array, np.ndarray):
        return array
    array = array.detach()
    if array.is_cuda and array.nbytes > _LARGE:
        import torch

        # Pinned memory, which the GPU writes to directly: ten times as fast for a million numbers.
        array = torch.empty(array.shape, dtype=array.dtype, pin_memory=True).copy_(array)
    moved: Array = array.cpu().numpy()
    return moved


def like(values: Any, array: Any) -> Any:
    """NumPy values (or a number) in the library, on the device and in the precision of ``array``.

    Integers and booleans keep their type.
    """
    if isinstance(array, np.ndarray):
        return values
    import torch

    if isinstance(values, torch.Tensor):
        return values
    values = np.asarray(values)
    kind = array.dtype if values.dtype.kind == "f" else None
    return torch.as_tensor(values, dtype=kind, device=array.device)


def to_device(array: Array, device: str, precision: str) -> Array:
    """A NumPy array as a torch tensor of this precision on a device."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch") from error
    try:
        moved: Array = torch.as_tensor(array, dtype=getattr(torch, precision), device=device)
    except (RuntimeError, AssertionError) as error:
        raise NumericsError(
            f"cannot use device {device!r}: {str(error).splitlines()[0]}. "
            'Use device="cpu", or one that torch.device takes and that this machine has.'
        ) from error
    return moved


def free_memory(device: str) -> int:
    """Bytes free on a torch device; 4 GiB is assumed where it cannot be asked."""
    import torch

    if torch.device(device).type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return 4 * 2**30


def at_least(array: Any, least: float) -> Array:
    """The array with smaller entries raised to ``least``, in place."""
    if isinstance(array, np.ndarray):
        return np.maximum(array, least, out=array)
    raised: Array = array.clamp_(min=least)
    return raised


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the linear algebra inside on one thread.

    Several threads were measured seven times slower at the size of an ask, and they round
    differently, so that a batch would depend on the machine's settings.
    """
    with _libraries(with_torch="torch" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries(*, with_torch: bool) -> Any:
    """The BLAS libraries that are loaded, which take a millisecond to find; torch has its own."""
    import scipy.linalg  # noqa: F401 - loads its own BLAS, for the limit to reach
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def first_largest(values: Array) -> int:
    """Index of the largest of the values (n,); the first of those that agree to a billionth.

    Two ways to compute the same gains differ by rounding, which must not decide.

    >>> first_largest(np.array([1.0, 3.0, 3.0 + 1e-12]))
    1
    """
    most = float(values.max())
    close = values >= most - TIE * abs(most)
    if is_numpy(values):
        return int(np.argmax(close))
    return int(namespace(values).nonzero(close)[0][0])


def unit(array: Array, rank: int) -> float:
    """Rounding error, in the array's precision, of a residual that was 1 before ``rank`` pivots."""
    eps = float(namespace(array).finfo(array.dtype).eps)
    return (128.0 + 16.0 * rank) * eps


def spread(values: Array, count: int) -> Indices:
    """Indices of about ``count`` of the values, ascending: half the largest, half evenly spread.

    >>> spread(np.array([0.0, 1.0, 0.0, 7.0, 8.0, 0.0]), 4)
    array([0, 3, 4, 5])
    """
    even = np.linspace(0, len(values) - 1, min(len(values), count // 2)).astype(np.intp)
    return np.union1d(largest(values, count - count // 2), even)


def largest(values: Array, count: int) -> Indices:
    """Indices of the ``count`` largest values; of those equal to the least of them, the first.

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


def solve_lower(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """Solve C x = b (or Cᵀ x = b) for a lower triangular C (m, m), b (m,) or (m, p). Cost p m².

    Calls LAPACK directly: in a fit SciPy's wrapper costs more than the solve. LAPACK reads by
    columns, so a C-ordered factor is passed as the upper triangle Cᵀ and not copied.
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


def inverse_lower(factor: Array) -> Array:
    """C⁻¹ for a lower triangular C (m, m) with positive diagonal. Cost m³/3."""
    from scipy.linalg.lapack import dtrtri

    if len(factor) == 0:
        return factor
    inverse: Array = dtrtri(factor.T, lower=0)[0].T  # by columns, as LAPACK reads
    return inverse


def sum_of_squares(array: Any) -> Array:
    """The sum of squares of each column of an array (m, n): (n,)."""
    if isinstance(array, np.ndarray):
        return np.asarray(np.sum(array * array, axis=0))
    squares: Array = namespace(array).linalg.vector_norm(array, axis=0) ** 2  # one pass, not three
    return squares


def log_normal_cdf(z: Array) -> Array:
    """log Φ(z), accurate far into the lower tail where Φ itself underflows (z < -38)."""
    if not is_numpy(z):
        import torch

        logs: Array = torch.special.log_ndtr(z)
        return logs
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(z))


# The inverse of a Cholesky factor, applied to very many columns.

# Rows per diagonal block on the host; 16 or 64 took a fifth longer. (Our choice.)
_BLOCK = 32


class Whitening:
    """C⁻¹ of a lower triangular C (m, m), applied to arrays (m, p) on any device. Cost p m².

    It uses matrix products only: a triangular solve with very many right sides blocks other threads
    on the host, and on a GPU is slow and was seen to hang. On a GPU C⁻¹ is formed and multiplied.
    On the host it is forward substitution by blocks, where one step of refinement restores the
    accuracy that inverting a block loses.

    >>> Whitening(np.array([[2.0, 0.0], [1.0, 1.0]]), np.zeros(1))(np.array([[2.0], [3.0]]))
    array([[1.],
           [2.]])
    """

    __slots__ = ("_blocks", "_inverse")

    def __init__(self, factor: Array, where: Array) -> None:
        here = is_numpy(where)
        self._inverse = None if here else like(inverse_lower(factor), where)
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
    """The rows of C that belong to one diagonal block."""

    __slots__ = ("_corner", "_inverse", "_left", "rows")

    def __init__(self, factor: Array, low: int) -> None:
        self.rows = slice(low, low + _BLOCK)
        self._left = factor[self.rows, :low]
        self._corner = np.ascontiguousarray(factor[self.rows, self.rows])
        self._inverse = np.ascontiguousarray(inverse_lower(self._corner))

    def solve(self, right: Array, above: Array) -> Array:
        """The solution at these rows, from the right side there and the solution ``above``."""
        if self.rows.start:
            right = right - self._left @ above[: self.rows.start]
        first = self._inverse @ right
        left = right - self._corner @ first
        solved: Array = first + self._inverse @ left
        return solved


# Work on many rows, chunk by chunk, on all cores.
#
# Each chunk is one thread's, and chunks do not depend on the number of threads, so results do not
# either, to the last bit.

Made = TypeVar("Made")
Report = Callable[[int], None]
"""Called with the number of rows done since the last call."""

MEMORY = 2 * 2**30  # bytes beside the pool itself, unless the user says otherwise
_report: ContextVar[Report | None] = ContextVar("report", default=None)
# Entries of an (m, chunk) block that stay in a core's cache, and that keep a GPU busy. With four
# times as many on the host, kernels took three times as long.
CACHE, _CARD = 2**17, 2**27


def each_chunk(work: Callable[[slice], Made], rows: Array, per_row: int) -> Iterator[Made]:
    """``work(chunk)`` for each chunk of the rows, in order, where a row needs ``per_row`` entries.

    At most a few chunks are computed ahead of the one being read, so memory stays bounded.
    """
    size = max(64, (CACHE if is_numpy(rows) else _CARD) // max(1, per_row))
    starts = range(0, max(1, len(rows)), size)  # no rows are one empty chunk
    parts = [slice(low, min(low + size, len(rows))) for low in starts]
    made = side_by_side(work, parts) if is_numpy(rows) else map(work, parts)
    tell = _report.get()
    for part, one in zip(parts, made, strict=True):
        if tell is not None:
            tell(part.stop - part.start)
        yield one


def side_by_side(work: Callable[[slice], Made], parts: Sequence[slice]) -> Iterator[Made]:
    """``work(part)`` for each part, in order: one thread per part, on all cores."""
    workers = min(cores(), len(parts))
    if workers <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="covey") as pool:
        ahead = deque(pool.submit(work, part) for part in parts[: 2 * workers])
        try:
            for i in range(len(parts)):
                made = ahead.popleft().result()
                if i + 2 * workers < len(parts):
                    ahead.append(pool.submit(work, parts[i + 2 * workers]))
                yield made
        finally:  # an interrupt does not wait for what is queued
            for future in ahead:
                future.cancel()


# Rows that are close: nearer to each other than ``least`` (d,) in every column.

_FEW = 16  # points up to which a pass over the rows for each is quicker than a tree
_EDGE = 1e-9  # relative: a distance this near to the limit is looked at column by column


def close_to(at: Array, points: Array, least: Array) -> Mask:
    """Which of the rows (n, d) are close to one of the points (m, d): (n,)."""
    found = np.zeros(len(at), dtype=bool)
    if len(at) == 0 or not (least > 0.0).all():
        return found
    if len(points) <= _FEW:
        for point in points:
            found[_close_rows(at, point, least)] = True
        return found
    from scipy.spatial import cKDTree

    scaled = np.unique(points, axis=0) / least
    edge = _EDGE + 8.0 * np.finfo(float).eps * float(np.abs(scaled).max())
    tree = cKDTree(scaled)
    for start in range(0, len(at), CACHE):
        part = slice(start, start + CACHE)
        near = tree.query(at[part] / least, p=np.inf, distance_upper_bound=1.0 + edge)[0]
        found[part] = near < 1.0 - edge
        # What rounding could decide either way is compared as it stands.
        for i in start + np.flatnonzero((near >= 1.0 - edge) & (near <= 1.0 + edge)):
            found[i] = len(_close_rows(points, at[i], least)) > 0
    return found


def _close_rows(at: Array, point: Array, least: Array) -> Indices:
    """Indices of the rows close to a point; column by column, since few are left after each."""
    close = np.flatnonzero(np.abs(at[:, 0] - point[0]) < least[0])
    for j in range(1, len(least)):
        close = close[np.abs(at[close, j] - point[j]) < least[j]]
    return close


@contextmanager
def reporting_chunks(report: Report) -> Iterator[None]:
    """Report the chunks that are done inside."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def cores() -> int:
    """The number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def row_keys(at: Array) -> NDArray[np.void]:
    """Rows (n, d) as keys (n,) that compare equal up to the rounding of decode and encode.

    Keys are bytes and not records of numbers: records take four times as long to compare, and NumPy
    turns a Ctrl-C while it compares them into a TypeError.
    """
    rounded = np.ascontiguousarray(np.round(at, 13) + 0.0)  # + 0.0 turns -0.0 into 0.0
    return rounded.view(np.dtype((np.void, rounded.itemsize * at.shape[1]))).reshape(-1)


def among(at: Array, others: Array) -> Mask:
    """Which rows of ``at`` (n, d) are among the rows of ``others`` (m, d): (n,)."""
    if len(at) == 0 or len(others) == 0:
        return np.zeros(len(at), dtype=bool)
    return np.isin(row_keys(at), row_keys(others))
