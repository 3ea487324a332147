"""Exact k-DPP samples for L = I + A with A of low rank: a few repulsive picks, the rest uniform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Indices
from covey.dpp import categorical, projection, symmetric
from covey.dpp.factor import Factor
from covey.dpp.kernel import Blocks
from covey.errors import NumericsError

# All of these are our choice. An explicit request may use a factor of this rank,
MOST_RANK = 1024
# is content once a proposal is accepted with probability exp(-0.1), and gives up if at the last
# rank it could fall below exp(-5), one proposal in 150; in a hurry below exp(-1.5), one in 4.5.
_ENOUGH, _HOPELESS, _HURRIED = 0.1, 5.0, 1.5
# L - I may miss semidefiniteness by this, beside the identity and beside the diagonal of L: a
# posterior covariance divided by a small noise carries that much rounding.
_SLACK, _ROUNDING = 1e-6, 1e-8
# Ranks at which a hurried factorisation asks whether to go on, and columns looked at in the end.
_CHECKPOINTS = (16, 32, 64, 128, 256, 512)
_WITNESSES = 16


@dataclass(frozen=True, slots=True, eq=False)
class Truncation:
    r"""A ≈ F Fᵀ, and the most that log det(I + A_S) may exceed log det(I + F_S F_Sᵀ).

    With E_i the diagonal of A - F Fᵀ the excess lies between 0 and the sum of log(1 + E_i) over S
    (monotonicity, then Hadamard's inequality), at most ``excess``: the k largest of them.
    """

    rows: Array  # (rank, n), Fᵀ
    excess: float


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    r"""k-DPP(I + A) as a mixture over the number j of picks that repel each other.

    Because det(I + A_S) is the sum of det A_T over all T ⊂ S,

    .. math:: e_k(1 + \lambda) = \sum_{j \le k} \binom{n - j}{k - j} e_j(\lambda),

    one draws j by these weights, T from the j-DPP of A, and fills up uniformly. A truncated factor
    is made exact again by accepting with probability det(L_S) / (det(I + F_S F_Sᵀ) e^excess).
    """

    kernel: Blocks
    truncation: Truncation
    basis: Array  # (n, rank), orthonormal columns
    rotation: Array  # (rank, rank); basis @ rotation are the eigenvectors of F Fᵀ
    table: Array  # (j_max + 1, rank + 1), log e_j of its eigenvalues
    weights: Array  # (j_max + 1,), probability of j repulsive picks
    k: int

    method: ClassVar[str] = "mixture"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    @property
    def rank(self) -> int:
        """Rank of the factor."""
        return len(self.truncation.rows)

    @property
    def repulsion(self) -> float:
        """Expected share of the picks that repel; near 0 the k-DPP is a uniform sample."""
        return float(self.weights @ np.arange(len(self.table))) / self.k

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Propose from the truncated factor until accepted. Cost n·rank·k a proposal."""
        patience = 1000 * math.ceil(math.exp(self.truncation.excess))
        for _ in range(patience):
            items = self.propose(rng)
            if math.log1p(-rng.random()) <= self._log_acceptance(items):
                return sorted(items.tolist())
        raise _not_psd_error("its samples are almost never accepted")

    def propose(self, rng: np.random.Generator) -> Indices:
        """A draw from k-DPP(I + F Fᵀ), not yet corrected for the truncation."""
        repulsive = int(categorical.draw(np.cumsum(self.weights), rng.random(1))[0])
        chosen = symmetric.draw_subset(self.table, repulsive, rng)
        kept = projection.draw(self.basis @ self.rotation[:, chosen], rng)
        others = np.delete(np.arange(len(self.basis)), kept)
        return np.concatenate([kept, rng.choice(others, self.k - repulsive, replace=False)])

    def _log_acceptance(self, items: Indices) -> float:
        excess = self.truncation.excess
        part = self.truncation.rows[:, items]
        sign, full = np.linalg.slogdet(self.kernel.block(items, items))
        _, truncated = np.linalg.slogdet(np.eye(self.k) + part.T @ part)
        if full - truncated > excess + self.k * _SLACK:
            raise _not_psd_error("the determinant of a sample is above its bound")
        return float(full - truncated) - excess if sign > 0.0 else -math.inf


def prepare(kernel: Blocks, k: int, *, rank: int = MOST_RANK) -> Mixture:
    """Factor L - I to at most ``rank`` and diagonalise. Cost n·rank² once."""
    return assemble(kernel, k, truncate(kernel, k, rank=rank))


def assemble(kernel: Blocks, k: int, truncation: Truncation) -> Mixture:
    """The sampler of a given factor, through a thin QR: no eigenvalue is lost to squaring."""
    basis, triangle = np.linalg.qr(truncation.rows.T)
    rotation, singular, _ = np.linalg.svd(triangle)
    table = symmetric.log_elementary(singular**2, min(k, len(singular)))
    return Mixture(kernel, truncation, basis, rotation, table, _weights(table, len(basis), k), k)


def _weights(table: Array, n: int, k: int) -> Array:
    logs = table[:, -1] + [symmetric.log_binomial(n - j, k - j) for j in range(len(table))]
    scaled = np.exp(logs - logs.max())
    return np.asarray(scaled / scaled.sum())


def truncate(kernel: Blocks, k: int, *, rank: int, hurry: bool = False) -> Truncation:
    """Pivoted Cholesky of L - I until the rest no longer matters, with at most ``rank`` pivots.

    With ``hurry`` it stops as soon as the decay so far cannot reach its goal in time.

    Raises:
        NumericsError: L - I is not positive semidefinite, or has not nearly so low a rank.
    """
    diagonal = _excess_diagonal(kernel)
    n = len(diagonal)
    factor = Factor(diagonal, min(rank, n))
    past = float(diagonal.sum())
    while factor.rank < min(rank, n):
        pivot = int(np.argmax(factor.residual))
        left = float(factor.residual[pivot])
        if k * math.log1p(left) <= _ENOUGH or left <= float(factor.floor[pivot]):
            break
        if hurry and factor.rank in _CHECKPOINTS:
            past = _check_decay(factor, k, past, rank)
        column = kernel.columns(np.array([pivot]))[:, 0].copy()
        column[pivot] -= 1.0
        factor.grow(pivot, column)
        _check_semidefinite(factor.residual, kernel.diagonal)
    _check_witnesses(kernel, factor)
    excess = _excess(factor.residual, k)
    if excess > (_HURRIED if hurry else _HOPELESS):
        raise _rank_error(factor.rank, excess)
    return Truncation(factor.rows.copy(), excess)


def _excess_diagonal(kernel: Blocks) -> Array:
    diagonal = kernel.diagonal - 1.0
    _check_semidefinite(diagonal, kernel.diagonal)
    return diagonal.clip(min=0.0)


def _excess(residual: Array, k: int) -> float:
    largest = np.partition(residual.clip(min=0.0), len(residual) - k)[len(residual) - k :]
    return float(np.log1p(largest).sum())


def _check_decay(factor: Factor, k: int, past: float, rank: int) -> float:
    """Give up when a decay as fast as since the last checkpoint would be too slow; else the trace.

    ``past`` is the trace of the residual at that checkpoint. The trace tells more than the largest
    entry, which does not move until the whole domain is covered.
    """
    since = factor.rank - (factor.rank // 2 if factor.rank > _CHECKPOINTS[0] else 0)
    now = float(factor.residual.sum())
    hoped = _excess(factor.residual * (now / past) ** ((rank - factor.rank) / since), k)
    if hoped > _HURRIED:
        raise _rank_error(rank, hoped)
    return now


def _check_semidefinite(residual: Array, diagonal: Array) -> None:
    worst = int(np.argmin(residual + _slack(diagonal)))
    if residual[worst] < -_slack(diagonal)[worst]:
        raise _not_psd_error(f"item {worst} is left with variance {residual[worst]:.3g}")


def _slack(diagonal: Array) -> Array:
    return _SLACK + _ROUNDING * diagonal


def _check_witnesses(kernel: Blocks, factor: Factor) -> None:
    """Whether some columns obey |R_ij| <= sqrt(R_ii R_jj), R = A - F Fᵀ, as a covariance must.

    The pivots cannot tell: a correlation matrix minus the identity has a diagonal of zeros, and
    nothing to factor. (Our choice; a miss costs time in ``draw``, not exactness.)
    """
    n = len(kernel.diagonal)
    at = np.unique(np.linspace(0, n - 1, min(n, _WITNESSES)).astype(np.intp))
    rest = kernel.columns(at) - factor.rows.T @ factor.rows[:, at]
    rest[at, np.arange(len(at))] -= 1.0
    spread = np.sqrt(factor.residual.clip(min=0.0) + _slack(kernel.diagonal))
    if (np.abs(rest) > np.outer(spread, spread[at])).any():
        raise _not_psd_error("an off-diagonal entry is larger than the diagonal allows")


def _not_psd_error(what: str) -> NumericsError:
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
