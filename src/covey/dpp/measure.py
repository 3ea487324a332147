"""The k-DPP as a probability measure: log det L_S, the normaliser e_k(λ), and the entropy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from covey.arrays import Array, Indices, to_numpy
from covey.covariance import Covariance
from covey.dpp import greedy, spectral
from covey.dpp.kernel import KernelLike, adapt, check_count, densify
from covey.errors import NumericsError

# Enumeration is used up to this many subsets and matrix entries; above, this many draws. (Our
# choice.)
_SUBSETS, _ENTRIES = 100_000, 50_000_000
_DRAWS = 1000
_CHUNK = 1 << 20  # matrix entries gathered at a time


def log_determinant(L: KernelLike, indices: Sequence[int] | Indices) -> float:
    """log det L_S, -inf where it vanishes. Cost k³.

    >>> log_determinant(np.eye(3), [0, 2]), log_determinant(np.ones((3, 3)), [0, 2])
    (0.0, -inf)
    """
    at = np.asarray(indices, dtype=np.intp)
    return float(_log_determinants(to_numpy(adapt(L).block(at, at))[None])[0])


def log_normalizer(L: KernelLike, k: int) -> float:
    r"""log of the sum of det L_S over |S| = k, which is log e_k(λ(L)). Cost n³.

    An error if the rank is below k, or if eigenvalues lost to rounding could change it by more than
    a millionth.

    >>> round(math.exp(log_normalizer(np.diag([1.0, 2.0, 3.0]), 2)), 9)
    11.0
    """
    kernel = adapt(L)
    k = check_count(k, len(kernel.diagonal))
    return spectral.spectral_log_normalizer(kernel, k)


def entropy(L: KernelLike, k: int, rng: np.random.Generator | None = None) -> float:
    r"""Shannon entropy of the k-DPP, in nats.

    .. math:: H = \log e_k(\lambda) - \mathbb{E} \log\det L_S, \qquad 0 \le H \le \log\tbinom{n}{k}

    (Theorem 3.4 of the paper, MATH 6.6.) By enumeration up to about 10⁵ subsets; above that the
    expectation is the mean over 1000 exact samples, unbiased, and needs ``rng``.

    >>> round(entropy(np.eye(4), 2) / math.log(6), 9)
    1.0
    """
    kernel = adapt(L)
    n = len(kernel.diagonal)
    k = check_count(k, n)
    greedy.greedy_picks(kernel, k)  # a rank below k is an error, not an entropy of rounding noise
    if k == 1:
        diagonal = to_numpy(kernel.diagonal)
        return _entropy_of(np.log(diagonal[diagonal > 0.0]))
    count = math.comb(n, k)
    if count <= _SUBSETS and count * k * k <= _ENTRIES:
        return _entropy_of(np.concatenate(list(_enumerated(densify(kernel), k))))
    if rng is None:
        raise NumericsError(
            f"{k} of {n} points make {count:.3g} subsets, too many to enumerate; pass "
            "rng=np.random.default_rng(...) and the entropy is estimated from samples"
        )
    return _sampled(kernel, k, rng)


def _entropy_of(weights: Array) -> float:
    """Entropy of the distribution with these unnormalised log-probabilities (m,)."""
    weights = weights[weights > -np.inf]
    total = float(np.logaddexp.reduce(weights))
    return total - float(np.exp(weights - total) @ weights)


def _enumerated(matrix: Array, k: int) -> Iterator[Array]:
    """log det of every subset of size k, in chunks."""
    subsets = combinations(range(len(matrix)), k)
    size = max(1, _CHUNK // (k * k))
    while chunk := list(islice(subsets, size)):
        at = np.array(chunk, dtype=np.intp)
        yield _log_determinants(matrix[at[:, :, None], at[:, None, :]])


def _sampled(kernel: Covariance, k: int, rng: np.random.Generator) -> float:
    """log e_k(λ) less the mean of log det L_S over `_DRAWS` exact draws."""
    sampler = spectral.prepare_spectral(kernel, k)
    draws = np.array([sampler.draw(rng) for _ in range(_DRAWS)])
    blocks = np.stack([to_numpy(kernel.block(at, at)) for at in draws])
    return sampler.log_normalizer - float(_log_determinants(blocks).mean())


def _log_determinants(blocks: Array) -> Array:
    """log det of a stack of symmetric matrices, (m, k, k) -> (m,); -inf unless positive."""
    signs, logs = np.linalg.slogdet(blocks)
    return np.where(signs > 0.0, logs, -np.inf)
