"""Evidence: where observations were made and what they weigh, for pathwise draws and gradients."""

from __future__ import annotations

from dataclasses import dataclass

from covey.arrays import Array


@dataclass(frozen=True)
class Evidence:
    """Observations of one Gaussian process."""

    at: Array  # (m, d)
    factor: Array  # (m, m), lower Cholesky factor of K + noise at these points
    weights: Array  # (m,), so that μ(x) = constant + Σ_i w_i k(x, x_i)
    noise: Array  # (m,) variance of each observation
