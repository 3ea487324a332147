from dataclasses import replace

import numpy as np
import pytest

import covey.belief


@pytest.mark.parametrize("pathwise", [False, True])
def test_draws_have_the_posterior_mean_and_covariance(make_belief, monkeypatch, pathwise):
    if pathwise:
        monkeypatch.setattr(covey.belief, "_EXACT_DRAW", 0)
    belief = make_belief(2, n=6).after_looking_at([1])
    rng = np.random.default_rng(0)
    draws = np.vstack([belief.draw(rng, 500) for _ in range(20)])
    cov = belief.columns(np.arange(6))
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.06)
    # The control: without what was looked at the covariance is plainly another.
    assert not np.allclose(np.cov(draws.T), make_belief(2, n=6).columns(np.arange(6)), atol=0.06)


def test_variance_stays_positive_after_many_looks(make_belief):
    belief = replace(make_belief(4, noise=1e-9))
    for _ in range(5):
        belief = belief.after_looking_at([0])
    assert belief.std[0] > 0.0


@pytest.mark.parametrize("observations", [10, 40])
def test_a_smooth_noiseless_belief_can_be_drawn_from(observations):
    """What is left of the variance is rounding; jitter is measured by the prior."""
    from covey.gp import Model, condition, observe
    from covey.kernels import SquaredExponential

    x = np.linspace(0.0, 1.0, observations)[:, None]
    data = observe(x, x[:, 0], np.full(observations, np.nan))
    posterior = condition([Model(SquaredExponential((1.0,), 5.0), 1e-6)], data)
    belief = posterior.belief(np.linspace(0.0, 1.0, 300)[:, None])
    draws = belief.draw(np.random.default_rng(0), 50)
    assert np.abs(draws - belief.mean).max() < 0.05


def test_pathwise_draws_at_low_noise_for_a_smooth_kernel(monkeypatch):
    """Where Fourier features are good: squared exponential, standard deviations within a fifth."""
    from covey.gp import Model, condition, observe
    from covey.kernels import SquaredExponential

    rng = np.random.default_rng(0)
    x = rng.random((30, 2))
    data = observe(x, np.sin(5 * x[:, 0]), np.full(30, np.nan))
    posterior = condition([Model(SquaredExponential((0.3, 0.3)), 1e-2)], data)
    belief = posterior.belief(rng.random((20, 2)))
    monkeypatch.setattr(covey.belief, "_EXACT_DRAW", 0)
    draws = np.vstack([belief.draw(rng, 100) for _ in range(20)])
    np.testing.assert_allclose(draws.std(axis=0), belief.std, rtol=0.2)
    # The control: leaving the noise out of Matheron's rule would give less.
    assert draws.std(axis=0).mean() > 0.9 * belief.std.mean()


def test_the_memory_does_not_decide_what_is_drawn(make_belief, monkeypatch):
    monkeypatch.setattr("covey.belief._EXACT_DRAW", 10)
    part = make_belief(3).parts[0]
    tight = replace(part, explained=replace(part.explained, memory=64 * 40 * 3))
    groups = list(tight.each_draw(np.random.default_rng(0), 8))
    assert [len(some) for some in groups] == [3, 3, 2]
    whole = part.draw(np.random.default_rng(0), 8)
    np.testing.assert_allclose(np.concatenate(groups), whole, atol=1e-12)
