"""Greedy maximisation of the determinant (Chen, Zhang & Zhou 2018)."""

from __future__ import annotations

import numpy as np

from covey.dpp import lazy
from covey.dpp.choice import Choice, check_semidefinite
from covey.dpp.factor import Factor
from covey.dpp.kernel import (
    Blocks,
    ByBlocks,
    Divisible,
    Kernel,
    adapt,
    check_count,
    gathered,
    rank_error,
)

# Above so many items, or bytes of a factor, columns are read for many picks at once. (Our choice.)
LARGE = 50_000
_MEMORY = 2**28


def maximize(L: Kernel, k: int) -> list[int]:
    r"""Greedy approximation of argmax det L_S over |S| = k, in order of choice.

    Each pick multiplies the determinant by its conditional variance given the earlier picks,

    .. math:: \det L_{S+j} / \det L_S = L_{jj} - L_{jS} L_{SS}^{-1} L_{Sj},

    so for L = I + Σ/σ² this is pure exploration (Kathuria et al. 2016, section 3). Ties go to the
    lowest index. Reads the diagonal and k - 1 columns; cost n k², memory n k; or, of a kernel on a
    device that takes less than 4 GiB, all of it. A large kernel that can tell ``block(rows, cols)``
    is read in a few passes over chunks of its items instead, in bounded memory, and the picks are
    the same.

    >>> maximize(np.diag([1.0, 3.0, 2.0]), 2)
    [1, 2]
    """
    kernel = adapt(L)
    return choose(kernel, check_count(k, len(kernel.diagonal))).picks.tolist()


def choose(kernel: Divisible, k: int) -> Choice:
    """The greedy picks and their gains, for 1 <= k <= n."""
    return lazy.choose(kernel, k) if is_large(kernel, k) else plain(kernel, k)


def is_large(kernel: Blocks, k: int) -> bool:
    """Whether a kernel is better read by blocks, and can be; by n and k alone."""
    n = len(kernel.diagonal)
    return isinstance(kernel, ByBlocks) and (n > LARGE or 8 * n * k > _MEMORY)


def plain(kernel: Blocks, k: int) -> Choice:
    """Greedy with the whole factor in memory. Cost n k², memory n k."""
    kernel = gathered(kernel)
    factor = Factor(kernel.diagonal, k)
    picks, gains = np.empty(k, dtype=np.intp), np.empty(k)
    for step in range(k):
        gains[step], picks[step] = factor.largest()
        if gains[step] == -np.inf:
            raise rank_error(k, step)
        if step + 1 < k:
            factor.grow(int(picks[step]), kernel.columns(picks[step : step + 1])[:, 0])
            check_semidefinite(factor.residual, kernel.diagonal)
    return Choice(picks, gains, k - 1)
