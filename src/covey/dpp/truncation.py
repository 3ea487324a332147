"""The part of L - I that a few pivots explain, and what that leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from covey.arrays import Array, Indices, beside, host, namespace
from covey.chunks import each_chunk
from covey.dpp.factor import Factor
from covey.dpp.greedy import is_large
from covey.dpp.kernel import Blocks, Divisible
from covey.dpp.shortlist import spread
from covey.errors import NumericsError
from covey.whitening import Whitening

# All of these are our choice. L - I may miss semidefiniteness by this, beside the identity and
# beside the diagonal of L: a posterior covariance divided by a small noise carries that much
# rounding.
_SLACK, _ROUNDING = 1e-6, 1e-8
# Ranks at which a hurried factorisation asks whether to go on; columns looked at in the end, and
# rows of them.
_CHECKPOINTS = (16, 32, 64, 128, 256, 512)
_WITNESSES, _LOOKED_AT = 16, 65_536
# Items of a large kernel among which the pivots are sought, at least.
_FEW = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Truncation:
    r"""A ≈ F Fᵀ, and the most that log det(I + A_S) may exceed log det(I + F_S F_Sᵀ).

    With E_i the diagonal of A - F Fᵀ the excess lies between 0 and the sum of log(1 + E_i) over S
    (monotonicity, then Hadamard's inequality), at most ``excess``: the k largest of them.
    """

    rows: Array  # (rank, n), Fᵀ
    excess: float


class Goal(NamedTuple):
    """Sets of k items; the most pivots; the excess that is small enough, and that is too large."""

    k: int
    rank: int
    enough: float
    most: float


def truncate(kernel: Divisible, goal: Goal, *, hurry: bool) -> Truncation:
    """Pivoted Cholesky of L - I; with ``hurry`` it gives up when the decay so far is too slow.

    The pivots of a large kernel are sought among a few of its items, and one pass tells what they
    leave of all. Cost n·rank².
    """
    if is_large(kernel, goal.k):
        factor = _factor_by_few(kernel, goal, hurry=hurry)
        rows = factor.rows
    else:
        factor, _ = _factor(kernel, goal, hurry=hurry)
        rows = namespace(factor.rows).asarray(factor.rows, copy=True)  # and forget the rest
    _check_witnesses(kernel, factor)
    excess = _excess(factor.residual, goal.k)
    if excess > goal.most:
        raise _rank_error(factor.rank, excess)
    return Truncation(rows, excess)


def _factor(kernel: Blocks, goal: Goal, *, hurry: bool) -> tuple[Factor, Indices]:
    """The factor, by one column of L for each pivot; and the pivots."""
    diagonal = _excess_diagonal(kernel)
    rank = min(goal.rank, len(diagonal))
    factor = Factor(diagonal, rank)
    past = float(diagonal.sum())
    pivots: list[int] = []
    while len(pivots) < rank:
        pivot = int(namespace(diagonal).argmax(factor.residual))
        left = float(factor.residual[pivot])
        if goal.k * math.log1p(left) <= goal.enough or left <= float(factor.floor[pivot]):
            break
        if hurry and factor.rank in _CHECKPOINTS:
            past = _check_decay(factor, goal, past)
        at = np.array([pivot])
        factor.grow(pivot, _less_one(kernel.columns(at), at)[:, 0])
        pivots.append(pivot)
        _check_semidefinite(factor.residual, kernel.diagonal)
    return factor, np.array(pivots, dtype=np.intp)


def _factor_by_few(kernel: Divisible, goal: Goal, *, hurry: bool) -> Factor:
    """The factor of all items by the pivots of a few, in one pass."""
    items = spread(host(kernel.diagonal), max(_FEW, 4 * goal.k))
    few, places = _factor(kernel.on(items), goal, hurry=hurry)
    if (excess := _excess(few.residual, goal.k)) > goal.most:  # of all items it is no smaller
        raise _rank_error(few.rank, excess)
    diagonal = _excess_diagonal(kernel)
    factor = Factor(diagonal, few.rank)
    if few.rank == 0:
        return factor
    whiten = Whitening(np.tril(host(few.rows[:, beside(places, few.rows)]).T), diagonal)
    every, pivots = np.arange(len(diagonal)), items[places]

    def some(part: slice) -> tuple[slice, Array]:
        columns = kernel.block(every[part], pivots)
        return part, whiten(_less_one(columns, pivots - part.start).T)

    factor.take(pivots, each_chunk(some, diagonal, few.rank))
    _check_semidefinite(factor.residual, kernel.diagonal)
    return factor


def _less_one(columns: Array, places: Indices) -> Array:
    """Columns (m, p) of L - I from those of L, if column j has its one in row ``places[j]``."""
    out: Array = namespace(columns).asarray(columns, copy=True)
    inside = np.flatnonzero((places >= 0) & (places < len(out)))
    out[beside(places[inside], out), beside(inside, out)] -= 1.0
    return out


def _excess_diagonal(kernel: Blocks) -> Array:
    diagonal = kernel.diagonal - 1.0
    _check_semidefinite(diagonal, kernel.diagonal)
    clipped: Array = namespace(diagonal).clip(diagonal, 0.0, None)
    return clipped


def _excess(residual: Array, k: int) -> float:
    positive = host(residual).clip(min=0.0)
    largest = np.partition(positive, len(positive) - k)[len(positive) - k :]
    return float(np.log1p(largest).sum())


def _check_decay(factor: Factor, goal: Goal, past: float) -> float:
    """Give up when a decay as fast as since the last checkpoint would be too slow; else the trace.

    ``past`` is the trace of the residual at that checkpoint. The trace tells more than the largest
    entry, which does not move until the whole domain is covered.
    """
    since = factor.rank - (factor.rank // 2 if factor.rank > _CHECKPOINTS[0] else 0)
    now = float(factor.residual.sum())
    hoped = _excess(factor.residual * (now / past) ** ((goal.rank - factor.rank) / since), goal.k)
    if hoped > goal.most:
        raise _rank_error(goal.rank, hoped)
    return now


def _check_semidefinite(residual: Array, diagonal: Array) -> None:
    worst = int(namespace(residual).argmin(residual + _slack(diagonal)))
    if float(residual[worst]) < -float(_slack(diagonal)[worst]):
        raise not_psd_error(f"item {worst} is left with variance {float(residual[worst]):.3g}")


def _slack(diagonal: Array) -> Array:
    return _SLACK + _ROUNDING * diagonal


def _check_witnesses(kernel: Blocks, factor: Factor) -> None:
    """Whether some columns obey |R_ij| <= sqrt(R_ii R_jj), R = A - F Fᵀ, as a covariance must.

    The pivots cannot tell: a correlation matrix minus the identity has a diagonal of zeros, and
    nothing to factor. (Our choice; a miss costs time in ``draw``, not exactness.)
    """
    n = len(kernel.diagonal)
    at = np.unique(np.linspace(0, n - 1, min(n, _WITNESSES)).astype(np.intp))
    near = np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.intp))
    xp = namespace(factor.residual)
    rows, cols = (factor.rows[:, beside(some, factor.rows)] for some in (near, at))
    rest = _less_one(kernel.block(near, at) - rows.T @ cols, np.searchsorted(near, at))
    deviation = xp.sqrt(xp.clip(factor.residual, 0.0, None) + _slack(kernel.diagonal))
    bound = deviation[beside(near, deviation)][:, None] * deviation[beside(at, deviation)]
    if bool(xp.any(xp.abs(rest) > bound)):
        raise not_psd_error("an off-diagonal entry is larger than the diagonal allows")


def not_psd_error(what: str) -> NumericsError:
    """The error for a kernel that is not I plus a covariance."""
    return NumericsError(
        f'method "mixture" needs L - I to be positive semidefinite, and here {what}; '
        'use method="walk", or "spectral" for an exact sample'
    )


def _rank_error(rank: int, excess: float) -> NumericsError:
    return NumericsError(
        f'method "mixture" needs L - I of low rank: with rank {rank} one proposal in '
        f'{math.exp(min(excess, 700.0)):.2g} would be accepted; use method="walk", or "spectral" '
        "for an exact sample"
    )
