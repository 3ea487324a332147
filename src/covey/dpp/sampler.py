"""Samplers by method: `prepare` takes the one that suits the kernel, `sample` draws once.

`hurried` cuts a Markov chain to a time limit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from covey.arrays import Array, to_numpy
from covey.covariance import Covariance, rank_error
from covey.dpp import greedy, mixture, spectral, swap, walk
from covey.dpp.kernel import KernelLike, adapt, check_count
from covey.dpp.swap import Swap
from covey.dpp.walk import Walk
from covey.errors import NumericsError, StrategyError, did_you_mean


class Sampler(Protocol):
    """A k-DPP prepared for drawing; immutable, so draws depend on ``rng`` alone."""

    @property
    def method(self) -> str:
        """The method used: direct, spectral, mixture, walk or swap."""
        ...

    @property
    def steps(self) -> int:
        """Steps of the Markov chain per draw; 0 for an exact method."""
        ...

    @property
    def error(self) -> float:
        """Bound on the total variation distance to the k-DPP; 0.0 for an exact method."""
        ...

    def draw(self, rng: np.random.Generator) -> list[int]:
        """One set of k distinct indices, ascending."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """k = 1: one item with probability proportional to its diagonal entry."""

    cumulative: Array  # (n,), running sum of the diagonal

    method: ClassVar[str] = "direct"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    def draw(self, rng: np.random.Generator) -> list[int]:
        """One index. Cost log n."""
        return [int(i) for i in spectral.draw_items(self.cumulative, rng.random(1))]


@dataclass(frozen=True, slots=True)
class Everything:
    """k = n: all items, always."""

    n: int

    method: ClassVar[str] = "direct"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    def draw(self, rng: np.random.Generator) -> list[int]:
        """All indices; ``rng`` is not touched."""
        return list(range(self.n))


METHODS = ("auto", "spectral", "mixture", "walk", "swap")

# All of these are our choice. Up to this n the eigendecomposition takes well under a second.
_SMALL = 500
# Above it n³ competes with the walk, whose cost grows with k; measured, they cross near here.
_CROSSING, _GROWTH = 1.7e7, 1.2
_CLOSE = 1e-6  # total variation of a chain that nobody asked to be less accurate


def prepare(
    L: KernelLike,
    k: int,
    method: str = "auto",
    *,
    epsilon: float = _CLOSE,
    max_steps: int | None = None,
) -> Sampler:
    """Prepare a sampler of the k-DPP, P(S) proportional to det L_S.

    Args:
        L: the kernel, an (n, n) array or an object with ``diagonal`` and ``columns(indices)``;
            it is kept by reference, not copied. With ``block(rows, cols)`` and ``on(indices)``,
            the kernel of a subset, n may be a million. Its arrays may be tensors on any device.
        k: the size of the sets, 1 <= k <= rank of L.
        method: ``"spectral"`` (exact, n³ once), ``"walk"`` (nearly exact, hardly depends on n),
            ``"mixture"`` (exact, for L = I + A with A of low rank), ``"swap"`` (the paper's chain),
            or ``"auto"``: spectral for small n, else walk.
        epsilon: total variation allowed to ``"walk"`` and ``"swap"``.
        max_steps: a cap on their steps; the sampler's ``error`` is then the bound at that number.

    Raises:
        NumericsError: the kernel cannot be that of a k-DPP, or not with this method.
        StrategyError: there is no such method.

    >>> sampler = prepare(np.eye(1000) + 1.0, 5)
    >>> sampler.method, sampler.error
    ('walk', 1e-06)
    """
    if method not in METHODS:
        raise StrategyError(
            f"unknown method {method!r}; there are {', '.join(METHODS)}."
            f"{did_you_mean(method, METHODS)}"
        )
    _check_accuracy(epsilon, max_steps)
    kernel = adapt(L)
    n = len(kernel.diagonal)
    k = check_count(k, n)
    if k in (1, n):
        return _direct(kernel, k)
    if method == "auto":
        spectrum = n <= _SMALL or n**3 <= _CROSSING * k**_GROWTH
        method = "spectral" if spectrum else "walk"
    if method == "spectral":
        return spectral.prepare_spectral(kernel, k)
    if method == "mixture":
        return mixture.prepare_mixture(kernel, k)
    chain = walk.prepare_walk if method == "walk" else swap.prepare_swap
    return chain(kernel, k, epsilon=epsilon, max_steps=max_steps)


def sample(L: KernelLike, k: int, rng: np.random.Generator, method: str = "auto") -> list[int]:
    """Draw S with |S| = k and P(S) proportional to det L_S: ``prepare`` and one ``draw``.

    >>> sample(np.diag([0.0, 1.0, 1.0]), 2, np.random.default_rng(0))
    [1, 2]
    """
    if not isinstance(rng, np.random.Generator):
        raise NumericsError(f"rng is a generator, such as np.random.default_rng(0); got {rng!r}.")
    return prepare(L, k, method).draw(rng)


def _direct(kernel: Covariance, k: int) -> Sampler:
    """The sampler for k = 1 or k = n; an error if the rank is below k."""
    if k == 1:
        cumulative = np.cumsum(to_numpy(kernel.diagonal))
        if cumulative[-1] <= 0.0:
            raise rank_error(k, 0)
        return Single(cumulative)
    try:
        factor = np.linalg.cholesky(to_numpy(kernel.block(np.arange(k), np.arange(k))))
        singular = bool((factor.diagonal() ** 2 <= 1e-6 * to_numpy(kernel.diagonal)).any())
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        greedy.greedy_picks(kernel, k)  # pivoting tells the rank, and raises if it is below k
    return Everything(k)


def _check_accuracy(epsilon: float, max_steps: int | None) -> None:
    if not 0.0 < epsilon < 1.0:
        raise NumericsError(f"epsilon is a total variation, 0 < epsilon < 1; got {epsilon}")
    if max_steps is not None and max_steps < 1:
        raise NumericsError(f"max_steps must be at least 1, got {max_steps}; or None for no cap")


# Chains cut to a time limit.

# Steps that are timed first, and the seconds they must take to be a measurement.
_REHEARSAL, _MOMENT = 64, 0.01


def hurried(sampler: Sampler, seconds: float) -> Sampler:
    """The sampler with its chain cut so that a draw takes about ``seconds``, if it would take more.

    Its ``error`` is then the bound at that number of steps. The speed is measured with random
    numbers of its own, so the number of steps depends on the clock and not on the draw.
    """
    if not isinstance(sampler, Walk | Swap) or sampler.steps <= _REHEARSAL:
        return sampler
    began, tried, pace = time.perf_counter(), _REHEARSAL, 0.0
    while pace == 0.0:
        start = time.perf_counter()
        sampler.cut(tried).draw(np.random.default_rng(0))
        spent = time.perf_counter() - start
        if spent >= _MOMENT or 8 * tried > sampler.steps:
            pace = tried / spent
        tried *= 8
    steps = int(pace * (seconds - (time.perf_counter() - began)))
    return sampler if steps >= sampler.steps else sampler.cut(max(_REHEARSAL, steps))
