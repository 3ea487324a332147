"""Exact k-DPP samples for L = I + A with A of low rank: j repulsive picks, the others uniform.

A is truncated to A ≈ F Fᵀ by pivoted Cholesky, and rejection makes the samples exact (MATH 6.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from covey.arrays import Array, Indices, Whitening, each_chunk, like, namespace, spread, to_numpy
from covey.covariance import Covariance, PivotedCholesky
from covey.dpp import spectral
from covey.dpp.greedy import LARGE, is_large
from covey.errors import NumericsError

# The low-rank factor of A = L - I.

# All of these are our choice. L - I may miss semidefiniteness by this much, absolutely and as a
# fraction of the diagonal of L: a posterior covariance divided by a small noise has such rounding.
_BOUND_SLACK, _ROUNDING = 1e-6, 1e-8
_WITNESSES, _CHECKED_ROWS = 16, 65_536  # columns checked at the end, and rows of each
_FEW = 4096  # least number of items of a large kernel among which the pivots are chosen


@dataclass(frozen=True, slots=True, eq=False)
class Truncation:
    r"""A ≈ F Fᵀ, and a bound on the excess log det(I + A_S) - log det(I + F_S F_Sᵀ).

    With E_i the diagonal of A - F Fᵀ the excess lies between 0 and the sum of log(1 + E_i) over S
    (monotonicity, then Hadamard's inequality); ``excess`` is the sum over the k largest (MATH 6.2).
    """

    rows: Array  # (rank, n), Fᵀ
    excess: float


class TruncationGoal(NamedTuple):
    """When a truncation stops, and when it fails."""

    k: int  # size of the sets
    rank: int  # the most pivots
    enough: float  # an excess that is small enough to stop
    most: float  # an excess above which the truncation is of no use


def truncated(
    kernel: Covariance, goal: TruncationGoal, *, large: int = LARGE, few: int = _FEW
) -> Truncation:
    """Pivoted Cholesky of L - I until the excess is small enough.

    Of more than ``large`` items the pivots are chosen among a ``few``, and one pass over all items
    gives their rows. Cost n·rank².
    """
    if is_large(kernel, goal.k, large):
        factor = _factor_by_few(kernel, goal, few)
        rows = factor.rows
    else:
        factor, _ = _factor(kernel, goal)
        rows = namespace(factor.rows).asarray(factor.rows, copy=True)  # frees the unused rows
    _check_witnesses(kernel, factor)
    excess = _excess(factor.residual, goal.k)
    if excess > goal.most:
        raise _rank_error(factor.rank, excess)
    return Truncation(rows, excess)


def _factor(kernel: Covariance, goal: TruncationGoal) -> tuple[PivotedCholesky, Indices]:
    """The factor, by one column of L for each pivot, and the pivots (rank,). Cost n·rank²."""
    diagonal = _excess_diagonal(kernel)
    rank = min(goal.rank, len(diagonal))
    factor = PivotedCholesky(diagonal, rank)
    pivots: list[int] = []
    while len(pivots) < rank:
        pivot = int(namespace(diagonal).argmax(factor.residual))
        left = float(factor.residual[pivot])
        if goal.k * math.log1p(left) <= goal.enough or left <= float(factor.floor[pivot]):
            break
        at = np.array([pivot])
        factor.grow(pivot, _less_one(kernel.columns(at), at)[:, 0])
        pivots.append(pivot)
        _check_semidefinite(factor.residual, kernel.diagonal)
    return factor, np.array(pivots, dtype=np.intp)


def _factor_by_few(kernel: Covariance, goal: TruncationGoal, few: int) -> PivotedCholesky:
    """The factor of all items by pivots chosen among a few, in one pass. Cost n·rank²."""
    items = spread(to_numpy(kernel.diagonal), max(few, 4 * goal.k))
    small, places = _factor(kernel.on(items), goal)
    if (excess := _excess(small.residual, goal.k)) > goal.most:  # over all items it is no smaller
        raise _rank_error(small.rank, excess)
    diagonal = _excess_diagonal(kernel)
    factor = PivotedCholesky(diagonal, small.rank)
    if small.rank == 0:
        return factor
    whiten = Whitening(np.tril(to_numpy(small.rows[:, like(places, small.rows)]).T), diagonal)
    every, pivots = np.arange(len(diagonal)), items[places]

    def some(part: slice) -> tuple[slice, Array]:
        columns = kernel.block(every[part], pivots)
        return part, whiten(_less_one(columns, pivots - part.start).T)

    factor.take(pivots, each_chunk(some, diagonal, small.rank))
    _check_semidefinite(factor.residual, kernel.diagonal)
    return factor


def _less_one(columns: Array, places: Indices) -> Array:
    """Columns (m, p) of L - I from those of L, where column j has its 1 in row ``places[j]``."""
    out: Array = namespace(columns).asarray(columns, copy=True)
    inside = np.flatnonzero((places >= 0) & (places < len(out)))
    out[like(places[inside], out), like(inside, out)] -= 1.0
    return out


def _excess_diagonal(kernel: Covariance) -> Array:
    """The diagonal of A = L - I, (n,), checked and clipped at zero."""
    diagonal = kernel.diagonal - 1.0
    _check_semidefinite(diagonal, kernel.diagonal)
    clipped: Array = namespace(diagonal).clip(diagonal, 0.0, None)
    return clipped


def _excess(residual: Array, k: int) -> float:
    """Σ log(1 + E_i) over the k largest E_i of the residual (n,) (Hadamard, MATH 6.2)."""
    positive = to_numpy(residual).clip(min=0.0)
    largest = np.partition(positive, len(positive) - k)[len(positive) - k :]
    return float(np.log1p(largest).sum())


def _check_semidefinite(residual: Array, diagonal: Array) -> None:
    """Raise if a residual variance of L - I is negative beyond `_slack`."""
    worst = int(namespace(residual).argmin(residual + _slack(diagonal)))
    if float(residual[worst]) < -float(_slack(diagonal)[worst]):
        raise _not_psd_error(f"item {worst} is left with variance {float(residual[worst]):.3g}")


def _slack(diagonal: Array) -> Array:
    return _BOUND_SLACK + _ROUNDING * diagonal


def _check_witnesses(kernel: Covariance, factor: PivotedCholesky) -> None:
    """Check |R_ij| <= sqrt(R_ii R_jj), R = A - F Fᵀ, on a few columns, as a covariance must obey.

    The pivots do not show it: a correlation matrix minus the identity has a zero diagonal, and no
    pivot. (Our choice; a violation that is missed costs time in ``draw``, not exactness.)
    """
    n = len(kernel.diagonal)
    at = np.unique(np.linspace(0, n - 1, min(n, _WITNESSES)).astype(np.intp))
    near = np.unique(np.linspace(0, n - 1, min(n, _CHECKED_ROWS)).astype(np.intp))
    xp = namespace(factor.residual)
    rows, cols = (factor.rows[:, like(some, factor.rows)] for some in (near, at))
    rest = _less_one(kernel.block(near, at) - rows.T @ cols, np.searchsorted(near, at))
    deviation = xp.sqrt(xp.clip(factor.residual, 0.0, None) + _slack(kernel.diagonal))
    bound = deviation[like(near, deviation)][:, None] * deviation[like(at, deviation)]
    if bool(xp.any(xp.abs(rest) > bound)):
        raise _not_psd_error("an off-diagonal entry is larger than the diagonal allows")


def _not_psd_error(what: str) -> NumericsError:
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


# The sampler. All of these constants are our choice.

# Largest rank on explicit request, and bytes for the factor and what is drawn with it.
MOST_RANK, _BYTES = 1024, 2**31
# The factorisation stops once proposals are accepted with probability exp(-0.1), and fails if at
# the largest rank that would be below exp(-5), one in 150.
_ENOUGH, _HOPELESS = 0.1, 5.0
_SLACK = 1e-6  # rounding by which log det of a sample may exceed its bound, per item


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    r"""k-DPP(I + A) as a mixture over the number j of picks that repel each other.

    Because det(I + A_S) is the sum of det A_T over all T ⊂ S,

    .. math:: e_k(1 + \lambda) = \sum_{j \le k} \binom{n - j}{k - j} e_j(\lambda),

    one draws j by these weights, T from the j-DPP of A, and fills up uniformly. A truncated factor
    is made exact again by accepting with probability det(L_S) / (det(I + F_S F_Sᵀ) e^excess).
    """

    kernel: Covariance
    truncation: Truncation
    rotation: Array  # (rank, rank); F @ rotation are the eigenvectors of F Fᵀ
    table: Array  # (j_max + 1, rank + 1), log e_j of its eigenvalues
    weights: Array  # (j_max + 1,), probability of j repulsive picks
    k: int

    method: ClassVar[str] = "mixture"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    @property
    def rank(self) -> int:
        """The rank of the factor F."""
        return len(self.truncation.rows)

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Propose from k-DPP(I + F Fᵀ) until accepted. Cost n·rank·k a proposal."""
        patience = 1000 * math.ceil(math.exp(self.truncation.excess))
        for _ in range(patience):
            items = self.propose(rng)
            if math.log1p(-rng.random()) <= self._log_acceptance(items):
                return sorted(items.tolist())
        raise _not_psd_error("its samples are almost never accepted")

    def propose(self, rng: np.random.Generator) -> Indices:
        """A draw (k,) from k-DPP(I + F Fᵀ), not yet corrected for the truncation."""
        # j ~ w_j, T ~ j-DPP(F Fᵀ), then k - j others uniformly (MATH 6.2).
        repulsive = int(spectral.draw_items(np.cumsum(self.weights), rng.random(1))[0])
        chosen = spectral.draw_subset(self.table, repulsive, rng)
        rows = self.truncation.rows
        kept = spectral.draw_projection(rows.T @ like(self.rotation[:, chosen], rows), rng)
        others = np.delete(np.arange(rows.shape[1]), kept)
        return np.concatenate([kept, rng.choice(others, self.k - repulsive, replace=False)])

    def _log_acceptance(self, items: Indices) -> float:
        """log of det(I + A_S) / (det(I + F_S F_Sᵀ) e^excess), MATH 6.2. Cost k² rank + k³."""
        excess = self.truncation.excess
        part = to_numpy(self.truncation.rows[:, like(items, self.truncation.rows)])
        sign, full = np.linalg.slogdet(to_numpy(self.kernel.block(items, items)))
        _, truncated = np.linalg.slogdet(np.eye(self.k) + part.T @ part)
        if full - truncated > excess + self.k * _SLACK:
            raise _not_psd_error("the determinant of a sample is above its bound")
        return float(full - truncated) - excess if sign > 0.0 else -math.inf  # MATH 6.2


def prepare_mixture(kernel: Covariance, k: int, *, rank: int = MOST_RANK) -> Mixture:
    """Truncate L - I to at most ``rank`` and diagonalise. Cost n·rank² once.

    Raises:
        NumericsError: L - I is not positive semidefinite, or not of so low a rank.
    """
    most = min(rank, _BYTES // (3 * 8 * len(kernel.diagonal)))  # the factor, and room for a draw
    return assemble(kernel, k, truncated(kernel, TruncationGoal(k, most, _ENOUGH, _HOPELESS)))


def assemble(kernel: Covariance, k: int, truncation: Truncation) -> Mixture:
    """The sampler with a given factor. Its eigenvalues come from a thin QR, without squaring F."""
    rotation, singular = _decompose(truncation.rows)
    table = spectral.log_elementary(singular**2, min(k, len(singular)))
    n = truncation.rows.shape[1]
    return Mixture(kernel, truncation, rotation, table, _weights(table, n, k), k)


def _decompose(rows: Array) -> tuple[Array, Array]:
    """M and s such that F M are the left singular vectors of F = rowsᵀ, and s its singular values.

    F = QR, with R from the R factors of its chunks, and R = U s Vᵀ; then QU = F V s⁻¹, and neither
    Q nor QU is held. A vector with s at the level of rounding is wrong, but is never drawn.
    """
    if len(rows) == 0:
        return np.empty((0, 0)), np.empty(0)
    xp = namespace(rows)
    parts = each_chunk(lambda part: to_numpy(xp.linalg.qr(rows[:, part].T)[1]), rows.T, len(rows))
    triangle = np.linalg.qr(np.concatenate(list(parts)))[1]
    _, singular, turned = np.linalg.svd(np.asarray(triangle, dtype=np.float64))
    return turned.T / singular, singular


def _weights(table: Array, n: int, k: int) -> Array:
    """w_j ∝ C(n - j, k - j) e_j(λ), the probability of j repulsive picks (MATH 6.2)."""
    logs = table[:, -1] + [spectral.log_binomial(n - j, k - j) for j in range(len(table))]
    scaled = np.exp(logs - logs.max())
    return np.asarray(scaled / scaled.sum())
