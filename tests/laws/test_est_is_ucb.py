"""Lemma 2.1: EST is UCB with the width ν = min (m̂ - μ)/σ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from covey.belief import Belief
from covey.policies import EST, UCB, estimated_maximum

seeds = st.integers(0, 10_000)


@pytest.mark.parametrize("estimate", ["n", "a"])
@given(seed=seeds)
def test_est_is_ucb_with_its_own_width(make_belief, estimate, seed):
    belief = make_belief(seed)
    judged = EST(estimate=estimate).judge(belief)
    upper = belief.mean + judged.width * belief.std
    target = EST(estimate=estimate).maximum(belief)
    assert np.argmax(upper) == np.argmax(judged.scores)
    assert upper.max() == pytest.approx(target, abs=1e-9)


@given(seed=seeds)
def test_another_width_need_not_agree(make_belief, seed):
    """The control: over all seeds a much smaller width picks another point at least once."""
    disagreements = 0
    for offset in range(10):
        belief = make_belief(seed + offset)
        narrow = UCB(beta=1e-6).judge(belief)
        disagreements += np.argmax(narrow.scores) != np.argmax(EST().judge(belief).scores)
    assert disagreements > 0


@pytest.mark.parametrize("estimate", ["n", "a"])
@given(seed=seeds)
def test_the_guard_keeps_the_width_from_turning_negative(make_belief, estimate, seed):
    belief = make_belief(seed, observations=25)
    policy = EST(estimate=estimate, start="observed")
    assert policy.maximum(belief) > belief.mean.max()
    assert policy.judge(belief).width > 0.0


def test_without_the_guard_the_closed_form_falls_below_the_largest_mean():
    """Why there is a guard (MATH section 3): a mean well above the best value, little doubt."""
    belief = Belief.dense(np.zeros((2, 1)), [0.0, 0.8], 0.05**2 * np.eye(2), noise=0.01, best=0.0)
    # By hand: g(0) = 1 and g(1) = 1 - Φ(20) Φ(4), so ESTa says about 0.28, below the mean 0.8.
    width = np.sqrt(-0.5 / np.log(norm.sf(4.0)))
    assert np.sqrt(np.pi / 2) * width < 0.3
    assert estimated_maximum(belief, "a", "observed") == pytest.approx(0.8 + 1e-6)
    assert EST(estimate="a", start="observed").judge(belief).width > 0.0


def test_estn_is_the_expected_maximum_of_independent_gaussians(make_belief):
    """Referee: Monte Carlo over the marginals, above the best value."""
    belief = make_belief(3)
    rng = np.random.default_rng(0)
    draws = belief.mean + belief.std * rng.standard_normal((200_000, len(belief)))
    start = max(belief.best, belief.mean.max())
    expected = np.maximum(draws.max(axis=1), start).mean()
    assert estimated_maximum(belief, "n") == pytest.approx(expected, abs=5e-3)


def test_esta_reads_the_half_gaussian_off_one_point(make_belief):
    """MATH section 3: m̂ = m0 + sqrt(π/2) c g(m0), exp(-1/2c²) = g(m0 + 1)."""
    belief = make_belief(5, observations=3)

    def g(level):
        return 1.0 - np.prod(norm.cdf((level - belief.mean) / belief.std))

    m0 = max(belief.best, belief.mean.max())
    c = np.sqrt(-0.5 / np.log(g(m0 + 1.0)))
    assert estimated_maximum(belief, "a") == pytest.approx(m0 + np.sqrt(np.pi / 2) * c * g(m0))
