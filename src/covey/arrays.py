"""Array types, where arrays are, and the few operations NumPy lacks.

The one room that knows two array libraries. SciPy and torch are imported when first needed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from covey.errors import MissingExtraError, NumericsError

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

TIE = 1e-9  # gains that agree so far are equal, and the lowest index wins
MARGIN = 1e-8  # values this close count as equal where a short list is made: wider than a tie
_LARGE = 2**20  # bytes from which on a copy off a GPU is worth memory of its own
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


def namespace(array: Any) -> Any:
    """The functions that go with an array: NumPy's, or those of the library that holds it.

    Arrays of n candidates may be torch tensors, on any device (`Array` stands for both); what is
    of the size of a batch or of the data stays with NumPy, on the host.
    """
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def is_numpy(array: Any) -> bool:
    """Whether an array is NumPy's."""
    return isinstance(array, np.ndarray)


def to_numpy(array: Any) -> Array:
    """The array as NumPy's, copied only if it is not."""
    if isinstance(array, np.ndarray):
        return array
    array = array.detach()
    if array.is_cuda and array.nbytes > _LARGE:
        import torch

        # Into memory that the card can write to directly: ten times as fast for a million numbers.
        array = torch.empty(array.shape, dtype=array.dtype, pin_memory=True).copy_(array)
    moved: Array = array.cpu().numpy()
    return moved


def like(values: Any, array: Any) -> Any:
    """NumPy's values (or a number) as an array of the library, device and precision of another.

    Whole numbers and booleans keep their kind.
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
    """NumPy's array as a torch tensor on a device."""
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
    """Bytes free on a device of torch's; of a device that does not tell, 4 GiB."""
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
    close = values >= most - TIE * abs(most)
    if is_numpy(values):
        return int(np.argmax(close))
    return int(namespace(values).nonzero(close)[0][0])


def unit(array: Array, rank: int) -> float:
    """What rounding may leave of one after so many pivots, in the precision of the array."""
    eps = float(namespace(array).finfo(array.dtype).eps)
    return (128.0 + 16.0 * rank) * eps


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


def inverse_lower(factor: Array) -> Array:
    """C⁻¹ of the Cholesky factor C of something positive."""
    from scipy.linalg.lapack import dtrtri

    if len(factor) == 0:
        return factor
    inverse: Array = dtrtri(factor.T, lower=0)[0].T  # by columns, as LAPACK reads
    return inverse


def sum_of_squares(array: Any) -> Array:
    """Of each column of an array (m, n): (n,)."""
    if isinstance(array, np.ndarray):
        return np.asarray(np.sum(array * array, axis=0))
    squares: Array = namespace(array).linalg.vector_norm(array, axis=0) ** 2  # one pass, not three
    return squares


def log_normal_cdf(z: Array) -> Array:
    """log Φ(z), accurate far into the lower tail where Φ itself underflows (z < -38)."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(z))


# Whitening: the inverse of a Cholesky factor, applied to very many columns.

# Rows taken together on the host: only blocks of this size on the diagonal are inverted. With 16
# or 64 it was seen to take a fifth more. (Our choice.)
_BLOCK = 32


class Whitening:
    """C⁻¹ of a lower triangular C (m, m), applied to arrays (m, p) wherever they are. Cost p m².

    All of it is products of matrices. A triangular solve with very many right sides keeps other
    threads waiting on the host, and on a GPU is slow and was seen to hang. So there the inverse
    multiplies them; here it is forward substitution by blocks, and what the inverse of a block
    loses in accuracy one step of refinement gets back.

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
    """Some rows of C."""

    __slots__ = ("_corner", "_inverse", "_left", "rows")

    def __init__(self, factor: Array, low: int) -> None:
        self.rows = slice(low, low + _BLOCK)
        self._left = factor[self.rows, :low]
        self._corner = np.ascontiguousarray(factor[self.rows, self.rows])
        self._inverse = np.ascontiguousarray(inverse_lower(self._corner))

    def solve(self, right: Array, above: Array) -> Array:
        """C⁻¹ times these rows, given what it came to above them."""
        if self.rows.start:
            right = right - self._left @ above[: self.rows.start]
        first = self._inverse @ right
        left = right - self._corner @ first
        solved: Array = first + self._inverse @ left
        return solved


# Work on many rows, chunk by chunk, on all cores.
#
# A chunk is worked on by one thread, and chunks do not depend on the number of threads; so
# neither do results, to the last bit.

Made = TypeVar("Made")
Report = Callable[[int], None]
"""Is told how many rows were worked on since it was told last."""

MEMORY = 2 * 2**30  # bytes over the pool itself, unless the user says otherwise
_report: ContextVar[Report | None] = ContextVar("report", default=None)
# Entries of an (m, chunk) block that stay in a core's cache, and that keep a GPU busy. With four
# times as many on the host, kernels were seen to take three times as long.
CACHE, _CARD = 2**17, 2**27


def each_chunk(work: Callable[[slice], Made], rows: Array, per_row: int) -> Iterator[Made]:
    """What the work makes of each chunk of the rows, in order, if a row takes so many entries.

    Only a few chunks are ahead of the one that is being read, so memory stays bounded.
    """
    size = max(64, (CACHE if is_numpy(rows) else _CARD) // max(1, per_row))
    starts = range(0, max(1, len(rows)), size)  # of no rows one chunk, so that nobody has to ask
    parts = [slice(low, min(low + size, len(rows))) for low in starts]
    made = side_by_side(work, parts) if is_numpy(rows) else map(work, parts)
    tell = _report.get()
    for part, one in zip(parts, made, strict=True):
        if tell is not None:
            tell(part.stop - part.start)
        yield one


def side_by_side(work: Callable[[slice], Made], parts: Sequence[slice]) -> Iterator[Made]:
    """What the work makes of each part, in order: each by one thread, on all cores."""
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


@contextmanager
def reporting_chunks(report: Report) -> Iterator[None]:
    """Have the chunks worked on inside reported."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
