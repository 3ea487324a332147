"""Exact k-DPP samples for L = I + A with A of low rank: a few repulsive picks, the rest uniform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Indices, beside, host, namespace
from covey.chunks import each_chunk
from covey.dpp import categorical, projection, symmetric, truncation
from covey.dpp.kernel import Blocks, Divisible
from covey.dpp.truncation import Goal, Truncation, not_psd_error

# All of these are our choice. An explicit request may use a factor of this rank, if it and what is
# drawn with it take no more than so many bytes,
MOST_RANK, _BYTES = 1024, 2**31
# is content once a proposal is accepted with probability exp(-0.1), and gives up if at the last
# rank it could fall below exp(-5), one proposal in 150; in a hurry below exp(-1.5), one in 4.5.
_ENOUGH, _HOPELESS, _HURRIED = 0.1, 5.0, 1.5
# The determinant of a sample may be above its bound by this for each item, by rounding.
_SLACK = 1e-6


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
    rotation: Array  # (rank, rank); F @ rotation are the eigenvectors of F Fᵀ
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
        raise not_psd_error("its samples are almost never accepted")

    def propose(self, rng: np.random.Generator) -> Indices:
        """A draw from k-DPP(I + F Fᵀ), not yet corrected for the truncation."""
        repulsive = int(categorical.draw(np.cumsum(self.weights), rng.random(1))[0])
        chosen = symmetric.draw_subset(self.table, repulsive, rng)
        rows = self.truncation.rows
        kept = projection.draw(rows.T @ beside(self.rotation[:, chosen], rows), rng)
        others = np.delete(np.arange(rows.shape[1]), kept)
        return np.concatenate([kept, rng.choice(others, self.k - repulsive, replace=False)])

    def _log_acceptance(self, items: Indices) -> float:
        excess = self.truncation.excess
        part = host(self.truncation.rows[:, beside(items, self.truncation.rows)])
        sign, full = np.linalg.slogdet(host(self.kernel.block(items, items)))
        _, truncated = np.linalg.slogdet(np.eye(self.k) + part.T @ part)
        if full - truncated > excess + self.k * _SLACK:
            raise not_psd_error("the determinant of a sample is above its bound")
        return float(full - truncated) - excess if sign > 0.0 else -math.inf


def prepare(kernel: Divisible, k: int, *, rank: int = MOST_RANK) -> Mixture:
    """Factor L - I to at most ``rank`` and diagonalise. Cost n·rank² once."""
    most = room(len(kernel.diagonal), _BYTES)
    return assemble(kernel, k, truncate(kernel, k, rank=min(rank, most)))


def room(n: int, memory: int) -> int:
    """The largest rank with which a sampler and its draws keep within some bytes.

    >>> room(1_000_000, 2**29)
    22
    """
    return memory // (3 * 8 * n)


def assemble(kernel: Blocks, k: int, truncation: Truncation) -> Mixture:
    """The sampler of a given factor, through a thin QR: no eigenvalue is lost to squaring."""
    rotation, singular = _decompose(truncation.rows)
    table = symmetric.log_elementary(singular**2, min(k, len(singular)))
    n = truncation.rows.shape[1]
    return Mixture(kernel, truncation, rotation, table, _weights(table, n, k), k)


def _decompose(rows: Array) -> tuple[Array, Array]:
    """M and s such that F M are the left singular vectors of F = rowsᵀ, and s its singular values.

    F = QR with R from the triangles of its chunks, and R = U s Vᵀ: then QU = F V s⁻¹, and neither
    Q nor QU need be held. An s at the level of rounding makes a bad vector, but is never drawn.
    """
    if len(rows) == 0:
        return np.empty((0, 0)), np.empty(0)
    xp = namespace(rows)
    parts = each_chunk(lambda part: host(xp.linalg.qr(rows[:, part].T)[1]), rows.T, len(rows))
    triangle = np.linalg.qr(np.concatenate(list(parts)))[1]
    _, singular, turned = np.linalg.svd(np.asarray(triangle, dtype=np.float64))
    return turned.T / singular, singular


def _weights(table: Array, n: int, k: int) -> Array:
    logs = table[:, -1] + [symmetric.log_binomial(n - j, k - j) for j in range(len(table))]
    scaled = np.exp(logs - logs.max())
    return np.asarray(scaled / scaled.sum())


def truncate(kernel: Divisible, k: int, *, rank: int, hurry: bool = False) -> Truncation:
    """Pivoted Cholesky of L - I until the rest no longer matters, with at most ``rank`` pivots.

    With ``hurry`` it stops as soon as the decay so far cannot reach its goal in time.

    Raises:
        NumericsError: L - I is not positive semidefinite, or has not nearly so low a rank.
    """
    goal = Goal(k, rank, _ENOUGH, _HURRIED if hurry else _HOPELESS)
    return truncation.truncate(kernel, goal, hurry=hurry)
