"""The paper's bounds, by hand."""

import math

import numpy as np
import pytest
from papers.kathuria2016.bounds import (
    batched_est_bound,
    dpp_max_bound,
    dpp_sample_bound,
    est_bound,
    ucb_bound,
    zeta_width,
)

from covey import dpp


def test_bounds_by_hand():
    per_nat = 1.0 / math.log1p(1.0 / 0.01)
    assert ucb_bound(100, 4.0, 30.0, 0.01) == pytest.approx(math.sqrt(8 * 100 * 4 * 30 * per_nat))
    zeta = 2 * math.log(math.pi**2 * 100**2 / 0.3)
    assert est_bound(100, 2.0, 30.0, 0.01) == pytest.approx(
        (2 + math.sqrt(zeta)) * math.sqrt(2 * 100 * 30 * per_nat)
    )
    assert batched_est_bound(10.0, 2.0, 3.0, 5) == 50.0
    assert zeta_width(100) == pytest.approx(math.sqrt(2 * math.log(math.pi**2 * 1e4 / 0.15)))
    assert dpp_max_bound(100, 2.0, 30.0, 0.01) == pytest.approx(
        math.sqrt(36 * per_nat * 100 * 4 * 30)
    )


def test_the_size_of_the_papers_bound():
    """MATH 8.2: n = 1000, T = 20, B = 5, σ² = 0.01, γ = 30 gives 876, a vacuous 8.8 per query."""
    beta = 2 * math.log(1000 * math.pi**2 * 20**2 / (6 * 0.05))
    assert dpp_max_bound(100, math.sqrt(beta), 30.0, 0.01) == pytest.approx(876, rel=0.01)


def test_the_entropy_bound_is_never_the_smaller():
    """MATH E18: log C(n, k) ≥ H, so DPP-SAMPLE's bound is DPP-MAX's."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        a = rng.standard_normal((8, 8))
        kernel = np.eye(8) + a @ a.T
        spread = math.log(math.comb(8, 3)) - dpp.entropy(kernel, 3)
        assert spread >= -1e-9
        assert dpp_sample_bound(50, 2.0, 10.0, 0.1, spread) == dpp_max_bound(50, 2.0, 10.0, 0.1)
    # The control: with the sum over t dropped, as printed, the minimum can be the entropy bound.
    assert dpp_sample_bound(50, 2.0, 10.0, 0.1, -8.0) < dpp_max_bound(50, 2.0, 10.0, 0.1)
