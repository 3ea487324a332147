"""Local penalisation: a probability, one far away, and made of standard deviations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from covey.baselines import LocalPenalization, log_penalty
from covey.policies import UCB

seeds = st.integers(0, 10_000)


@given(seed=seeds, j=st.integers(0, 39))
def test_penalty_is_a_probability_that_grows_with_distance(make_belief, seed, j):
    belief = make_belief(seed)
    penalty = np.exp(log_penalty(belief, j, slope=2.0))
    distance = np.linalg.norm(belief.at - belief.at[j], axis=1)
    assert np.all((penalty >= 0.0) & (penalty <= 1.0))
    assert np.all(np.diff(penalty[np.argsort(distance)]) >= -1e-12)
    assert np.all(np.exp(log_penalty(belief, j, slope=1e9))[distance > 0] > 1.0 - 1e-9)


@given(seed=seeds, j=st.integers(0, 39))
def test_penalty_is_gonzalez_formula_with_the_standard_deviation(make_belief, seed, j):
    """González et al. 2016; one public code takes the square root of the sd (MATH section 7)."""
    belief = make_belief(seed)
    top = max(belief.best, belief.mean.max())
    distance = np.linalg.norm(belief.at - belief.at[j], axis=1)
    z = (3.0 * distance - top + belief.mean[j]) / belief.std[j]
    np.testing.assert_allclose(np.exp(log_penalty(belief, j, 3.0)), norm.cdf(z), atol=1e-12)
    wrong = norm.cdf((3.0 * distance - top + belief.mean[j]) / np.sqrt(belief.std[j]))
    assert not np.allclose(norm.cdf(z), wrong, atol=1e-6)


def test_slope_is_the_largest_gradient_of_the_mean(make_belief):
    belief = make_belief(4)
    seen = belief.parts[0].evidence
    kernel, step = belief.parts[0].prior.kernel, 1e-6
    gradients = []
    for axis in range(2):
        shift = np.zeros(2)
        shift[axis] = step
        up = kernel(belief.at + shift, seen.at) @ seen.weights
        down = kernel(belief.at - shift, seen.at) @ seen.weights
        gradients.append((up - down) / (2 * step))
    assert np.isclose(belief.slope, np.linalg.norm(gradients, axis=0).max(), rtol=1e-5)


def test_a_batch_by_local_penalisation_spreads(make_belief):
    belief = make_belief(8, n=400)
    batch = LocalPenalization(UCB(beta=4.0)).choose(belief, 5, np.random.default_rng(0)).indices
    apart = np.linalg.norm(belief.at[list(batch)][:, None] - belief.at[list(batch)], axis=2)
    top = np.argsort(-UCB(beta=4.0).judge(belief).scores)[:5]
    crowd = np.linalg.norm(belief.at[top][:, None] - belief.at[top], axis=2)
    assert len(set(batch)) == 5
    assert apart[np.triu_indices(5, 1)].min() > crowd[np.triu_indices(5, 1)].min()
