"""Exact k-DPP samples through the eigendecomposition (Kulesza & Taskar 2012, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Mask
from covey.dpp import projection, symmetric
from covey.dpp.kernel import TOLERANCE, Blocks, densify, not_psd_error, rank_error

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Spectral:
    """A k-DPP as a mixture of projection DPPs, one for every k eigenvectors."""

    vectors: Array  # (n, rank)
    table: Array  # (k + 1, rank + 1), log e_j of the leading eigenvalues

    method: ClassVar[str] = "spectral"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    @property
    def rank(self) -> int:
        """Number of eigenvalues that are not rounding."""
        return self.vectors.shape[1]

    @property
    def log_normalizer(self) -> float:
        """log e_k(λ)."""
        return float(self.table[-1, -1])

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Pick k eigenvectors by weight, then draw from the projection on them. Cost n k²."""
        chosen = symmetric.draw_subset(self.table, len(self.table) - 1, rng)
        return sorted(projection.draw(self.vectors[:, chosen], rng).tolist())


def prepare(kernel: Blocks, k: int) -> Spectral:
    """Decompose the kernel. Cost n³ once, memory n²."""
    values, vectors = np.linalg.eigh(densify(kernel))
    positive = _positive(values)
    if np.count_nonzero(positive) < k:
        raise rank_error(k, int(np.count_nonzero(positive)))
    return Spectral(vectors[:, positive], symmetric.log_elementary(values[positive], k))


def eigenvalues(kernel: Blocks) -> Array:
    """The eigenvalues that are not rounding, ascending, (rank,). Cost n³."""
    values = np.asarray(np.linalg.eigvalsh(densify(kernel)), dtype=np.float64)
    return values[_positive(values)]


def _positive(values: Array) -> Mask:
    largest = float(np.abs(values).max())
    if values[0] < -TOLERANCE * largest:
        raise not_psd_error(f"its smallest eigenvalue is {values[0]:.3g}")
    return np.asarray(values > 4.0 * len(values) * _EPS * largest)
