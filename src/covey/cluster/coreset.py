r"""Core-sets: the few candidates of a part that stand for all of it, and a check that they do.

L = I + Σ/σ² is the kernel of the batch; v(x|S) = L_xx - L_xS L_SS⁻¹ L_Sx is the factor by which x
would multiply det L_S, and greedy takes the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from covey import dpp
from covey.arrays import TIE, Array, Indices, Whitening
from covey.belief import Belief
from covey.cluster.apart import Kernels, information

_ENTRIES = 2**20  # of the block of gains looked at together


def core_set(belief: Belief, size: int) -> Indices:
    """Greedy's own picks among these candidates, ascending; all of them if they are not more.

    Greedy core-sets of k items lose at most a factor kᴼ⁽ᵏ⁾ of the largest determinant (Gollapudi,
    Mahabadi & Sivashankar 2023); of log det, which here is monotone and submodular, parts dealt
    out at random lose at most about two thirds in expectation (Barbosa et al. 2015).
    """
    if size >= len(belief):
        return np.arange(len(belief))
    return np.sort(np.array(dpp.maximize(belief.information(), size), dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Chosen:
    """A batch to be checked against candidates elsewhere."""

    belief: Belief  # about its k points, in order of choice
    factor: Array  # (k, k), lower Cholesky factor of L on them


class Check(NamedTuple):
    """For each pick the best that was to be had among some candidates in its place."""

    gains: Array  # (k,), v(x | the picks before); -inf where there is no other candidate
    where: Indices  # (k,), index of x


def check(kernels: Kernels, here: Belief, chosen: Chosen, mine: Indices) -> Check:
    """Compare a batch with the candidates here, but for ``mine``, which are in the batch.

    One pass. Cost n k (m + k); memory is bounded.
    """
    k = len(chosen.factor)
    gains, where = np.full(k, -np.inf), np.full(k, -1, dtype=np.intp)
    diagonal = here.information().diagonal.copy()
    diagonal[mine] = -np.inf
    size, whiten = max(64, _ENTRIES // max(k, 1)), Whitening(chosen.factor, diagonal)
    for low in range(0, len(here), size):
        rows = slice(low, min(low + size, len(here)))
        cross = information(kernels, here, chosen.belief, rows)
        white = whiten(cross.T)
        white *= white
        # Before the first pick nothing is explained, before the last all but its own row.
        left = np.empty_like(white)
        left[0] = diagonal[rows]
        left[1:] = diagonal[rows] - np.cumsum(white[:-1], axis=0)
        most = left.max(axis=1)
        first = np.argmax(left >= most[:, None] * (1.0 - TIE), axis=1)
        better = most > gains * (1.0 + TIE)  # a candidate is displaced by what is larger only
        gains, where = np.where(better, most, gains), np.where(better, low + first, where)
    return Check(gains, where)
