"""The paper's bounds on regret, and what they take the information to be.

Notation: σ² noise, s amplitude k(x, x) (1 in the paper), T batches of B points, γ the most
information that as many observations can gain, β the squared width, ζ the extra width of EST.
Bounds are in units of the belief (standardised outcomes) and assume its hyper-parameters.
"""

from __future__ import annotations

import math

from covey import dpp
from covey.belief import Belief
from covey.diagnostics import information_gain


def information_capacity(belief: Belief, looks: int) -> tuple[float, float]:
    """Lower and upper bound on γ, the most information in so many distinct observations.

    Greedy gives G ≤ γ ≤ G / (1 - 1/e), since the gain is monotone and submodular (MATH 8.1).
    """
    greedy = information_gain(belief, dpp.maximize(belief.information(), looks))
    return greedy, greedy / (1.0 - math.exp(-1.0))


def ucb_bound(looks: int, beta: float, gamma: float, noise: float, amplitude: float = 1.0) -> float:
    """Sequential UCB: R_T ≤ √(8 s T β γ / log(1 + s/σ²)) (Theorem 2.1 with MATH E6)."""
    return math.sqrt(8.0 * looks * beta * gamma * _per_nat(noise, amplitude))


def est_bound(looks: int, nu: float, gamma: float, noise: float, delta: float = 0.05) -> float:
    """Sequential EST: R_T ≤ (ν + √ζ_T) √(2 T γ / log(1 + 1/σ²)) (Theorem 2.1), amplitude 1."""
    zeta = 2.0 * math.log(math.pi**2 * looks**2 / (6.0 * delta))
    return (nu + math.sqrt(zeta)) * math.sqrt(2.0 * looks * gamma * _per_nat(noise, 1.0))


def batched_est_bound(sequential: float, widen: float, sup_norm: float, initial: int) -> float:
    """B-EST: R ≤ C' R_seq + 2 ‖f‖ T_init (Theorem 3.2)."""
    return widen * sequential + 2.0 * sup_norm * initial


def zeta_width(looks: int, delta: float = 0.05) -> float:
    """√ζ of EST in batches: √(2 log(π²T²/3δ)) (Theorem 3.3), T all observations (MATH E27)."""
    return math.sqrt(2.0 * math.log(math.pi**2 * looks**2 / (3.0 * delta)))


def dpp_max_bound(looks: int, width: float, gamma: float, noise: float) -> float:
    """DPP-MAX: R_TB ≤ width √(C₁ TB γ), C₁ = 36/log(1 + 1/σ²) (Theorem 3.3).

    ``width`` is √β_T for UCB and ν + √ζ for EST.
    """
    return width * math.sqrt(36.0 * looks * gamma * _per_nat(noise, 1.0))


def dpp_sample_bound(looks: int, width: float, gamma: float, noise: float, spread: float) -> float:
    """DPP-SAMPLE: the smaller of DPP-MAX's bound and the entropy bound (Theorem 3.4).

    R² ≤ 2 TB C₁ width² [γ + spread], spread = Σ_t (log C(n_t, B-1) - H_t) ≥ 0: the paper's B log n
    with its sum over t restored (MATH E17). Since spread ≥ 0 the entropy bound is never the
    smaller one (MATH E18); and the theorem rests on a lemma that fails for sampled points (E15).
    """
    entropy_bound = width * math.sqrt(72.0 * looks * (gamma + spread) * _per_nat(noise, 1.0))
    return min(dpp_max_bound(looks, width, gamma, noise), entropy_bound)


def _per_nat(noise: float, amplitude: float) -> float:
    """s / log(1 + s/σ²): variance per nat, so that Σ σ²(x) ≤ 2 · this · information."""
    return amplitude / math.log1p(amplitude / noise)
