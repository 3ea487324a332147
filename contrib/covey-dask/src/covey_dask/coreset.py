r"""Core-sets: the few candidates of a part that stand for all of it, and a check that they do.

L = I + Σ/σ² is the kernel of the batch; v(x|S) = L_xx - L_xS L_SS⁻¹ L_Sx is the factor by which x
would multiply det L_S, and greedy takes the largest.

Parts are with different workers. Their beliefs come from one posterior, Σ = K - VᵀV with the same
rows of V in the same order, so the covariance of x here with z there is k(x, z) - V_xᵀV_z: of z
only its column of V has to travel.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from covey import dpp
from covey.arrays import TIE, Array, Indices, Mask, Whitening, cholesky, plus_diagonal
from covey.belief import Belief, Gaussian
from covey.kernels import Kernel

_ENTRIES = 2**20  # of the block of gains looked at together

_log = logging.getLogger("covey")

Kernels = Sequence[Kernel]
"""The prior covariance of each member of a belief."""


def covariance(kernel: Kernel, here: Belief, there: Belief, member: int, rows: slice) -> Array:
    """Posterior covariances (len(rows), len(there)) of one member. Cost rows · there · (m + d)."""
    mine, theirs = here.parts[member], there.parts[member]
    inner = mine.explained.product(rows, theirs.explained.of(np.arange(len(there))))
    return kernel(here.at[rows], there.at) - inner


def information(kernels: Kernels, here: Belief, there: Belief, rows: slice) -> Array:
    """Entries of I + Σ/σ² between candidates here and others there, (len(rows), len(there)).

    No candidate may be in both: the identity is left out.
    """
    each = [
        covariance(kernel, here, there, member, rows) / here.parts[member].noise
        for member, kernel in enumerate(kernels)
    ]
    return each[0] if len(each) == 1 else np.asarray(np.mean(each, axis=0))


def after_looking_elsewhere(kernels: Kernels, here: Belief, there: Belief) -> Belief:
    r"""The belief here once the candidates there will have been observed, their values unknown.

    .. math:: V' = \begin{pmatrix} V \\ C^{-1}\Sigma_{J\cdot} \end{pmatrix}, \qquad
              CC^\top = \Sigma_{JJ} + \sigma^2 I

    which is `Belief.after_looking_at` for candidates J that are not here.
    """

    def seen(member: int, kernel: Kernel) -> Gaussian:
        part, other = here.parts[member], there.parts[member]
        every = np.arange(len(there))
        corner = cholesky(plus_diagonal(other.block(every, every), part.noise))
        cross = covariance(kernel, here, there, member, slice(0, len(here)))
        rows = Whitening(corner, cross)(cross.T)
        return replace(part, explained=part.explained.also(rows), evidence=None)

    return replace(here, parts=tuple(seen(i, kernel) for i, kernel in enumerate(kernels)))


def stripped(belief: Belief) -> Belief:
    """The belief without what is large and not needed elsewhere."""
    parts = tuple(replace(part, evidence=None, imagined=()) for part in belief.parts)
    return replace(belief, parts=parts, told=None)


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


class Shards(Protocol):
    """Those who have the candidates, each a part of them."""

    def core_sets(self, size: int) -> Indices:
        """The core-sets of all parts together, ascending."""
        ...

    def check(self, picks: Indices, chosen: Chosen) -> Sequence[Check]:
        """A batch compared with everybody else, part by part."""
        ...


class Merged(NamedTuple):
    """A batch, and how far it is known to be greedy's on all candidates."""

    picks: Indices  # (k,), in order of choice
    proven: int  # the first so many are
    checks: int  # passes that took


def merge(belief: Belief, k: int, shards: Shards, checks: int) -> Merged:
    """Greedy's k picks from the union of core-sets, checked against all, at most ``checks`` times.

    What a check finds better than a pick joins the union, and greedy chooses again. The pick that
    the first difference concerns is then right, so that a check proves one pick more at the least;
    with none left, the batch is the one greedy would choose on one machine.
    """
    union, done, proven = shards.core_sets(k), 0, 0
    while True:
        picks = union[dpp.maximize(belief.on(union).information(), k)]
        if done == checks:
            return Merged(picks, proven, done)
        some = belief.on(picks)
        every = np.arange(k)
        factor = cholesky(some.information().block(every, every))
        found = shards.check(union, Chosen(stripped(some), factor))
        done += 1
        ahead = [_ahead(one, picks, np.square(np.diagonal(factor))) for one in found]
        missed = [one.where[mask] for one, mask in zip(found, ahead, strict=True)]
        fresh = np.setdiff1d(np.concatenate(missed), union)
        wrong = np.flatnonzero(np.any(ahead, axis=0))
        # What is in the union already was passed over by greedy itself, by a hair.
        proven = int(wrong[0]) if len(fresh) else k
        _log.debug("core-sets: %d rows, %d picks proven, %d new", len(union), proven, len(fresh))
        if not len(fresh):
            return Merged(picks, k, done)
        union = np.union1d(union, fresh)


def _ahead(found: Check, picks: Indices, gains: Array) -> Mask:
    """Where greedy would have taken another: of a larger gain, or as large and listed before."""
    width = TIE * gains
    equal = (found.gains >= gains - width) & (found.where < picks)
    return (found.where >= 0) & ((found.gains > gains + width) | equal)
