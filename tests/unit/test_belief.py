from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import covey.belief
from covey.belief import Belief
from covey.errors import NumericsError
from covey.gp import Model, condition, observe
from covey.kernels import Matern52


@pytest.fixture
def mixed(make_belief):
    """A belief with two members."""
    rng = np.random.default_rng(0)
    data = observe(rng.random((6, 2)), rng.standard_normal(6), np.full(6, np.nan))
    models = [Model(Matern52((0.3, 0.3)), 0.05), Model(Matern52((0.9, 0.4), 2.0), 0.2)]
    return condition(models, data).belief(rng.random((30, 2)))


def test_a_plain_belief_has_one_member_itself(make_belief):
    belief = make_belief(0)
    assert belief.members == (belief,)
    assert len(belief) == 40


def test_moments_of_several_members(mixed):
    first, second = mixed.members
    np.testing.assert_allclose(mixed.mean, (first.mean + second.mean) / 2)
    draws = (first.var + second.var) / 2 + (first.mean - second.mean) ** 2 / 4
    np.testing.assert_allclose(mixed.var, draws)
    np.testing.assert_allclose(np.diagonal(mixed.columns(np.arange(30))), mixed.var, atol=1e-9)
    assert mixed.noise == pytest.approx(0.125)


def test_information_averages_members_in_units_of_their_noise(mixed):
    every = np.arange(30)
    expected = np.eye(30) + np.mean([m.columns(every) / m.noise for m in mixed.members], axis=0)
    kernel = mixed.information()
    np.testing.assert_allclose(kernel.columns(every), expected, atol=1e-9)
    np.testing.assert_allclose(kernel.diagonal, np.diagonal(expected), atol=1e-9)
    rows, cols = np.array([4, 1, 9]), np.array([1, 2])
    np.testing.assert_allclose(kernel.block(rows, cols), expected[np.ix_(rows, cols)], atol=1e-9)
    assert np.linalg.eigvalsh(kernel.columns(every)).min() >= 1.0 - 1e-9


def test_a_subset_keeps_its_belief(make_belief):
    belief = make_belief(1)
    keep = [3, 8, 21]
    part = belief.on(keep)
    np.testing.assert_array_equal(part.at, belief.at[keep])
    np.testing.assert_allclose(part.columns([1]), belief.columns([8])[keep], atol=1e-12)
    looked = belief.after_looking_at([8]).on(keep)
    np.testing.assert_allclose(looked.var, part.after_looking_at([1]).var, atol=1e-12)


def test_draws_are_shared_among_members(mixed):
    rng = np.random.default_rng(0)
    draws = mixed.draw(rng, 4001)
    assert draws.shape == (4001, 30)
    np.testing.assert_allclose(draws.var(axis=0), mixed.var, rtol=0.25)


def test_a_dense_belief(make_belief):
    source = make_belief(3, n=8)
    every = np.arange(8)
    dense = Belief.dense(source.at, source.mean, source.columns(every), source.noise, source.best)
    look = [2, 5]
    np.testing.assert_allclose(
        dense.after_looking_at(look).columns(every), source.after_looking_at(look).columns(every)
    )
    np.testing.assert_allclose(dense.on([1, 4]).var, source.var[[1, 4]])
    assert dense.draw(np.random.default_rng(0), 3).shape == (3, 8)
    with pytest.raises(NumericsError, match="has no gradient"):
        _ = dense.slope


def test_few_draws_come_from_any_member(mixed):
    """With fewer draws than members no member is favoured, nor a place in the order."""
    far = replace(mixed.parts[1], mean=mixed.parts[1].mean + 100.0)
    belief = replace(mixed, parts=(mixed.parts[0], far))
    rng = np.random.default_rng(0)
    high = sum(belief.draw(rng, 1)[0, 0] > 50.0 for _ in range(200))
    assert 70 <= high <= 130
    first = sum(belief.draw(rng, 2)[0, 0] > 50.0 for _ in range(200))
    assert 70 <= first <= 130


@pytest.mark.parametrize("seed", range(20))
def test_a_block_of_the_kernel_has_ones_where_items_meet_however_often(seed):
    rng = np.random.default_rng(seed)
    rows, cols = (rng.integers(0, 6, rng.integers(0, 9)) for _ in range(2))
    belief = Belief.dense(np.zeros((6, 1)), np.zeros(6), np.zeros((6, 6)), noise=1.0)
    np.testing.assert_array_equal(belief.information().block(rows, cols), rows[:, None] == cols)


# One Gaussian of a belief


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


# What observations weigh


KERNEL, NOISE, MEAN = Matern52((0.4, 0.5), 1.3), 0.05, 0.2


def test_evidence_explains_the_mean_and_factors_the_covariance():
    rng = np.random.default_rng(0)
    at, new = rng.random((8, 2)), rng.random((5, 2))
    data = observe(at, np.sin(5.0 * at).sum(axis=1), np.full(8, np.nan))
    belief = condition([Model(KERNEL, NOISE, MEAN)], data).belief(new)
    seen = belief.parts[0].evidence
    np.testing.assert_allclose(MEAN + KERNEL(new, seen.at) @ seen.weights, belief.mean)
    gram = KERNEL(seen.at, seen.at) + np.diag(seen.noise)
    np.testing.assert_allclose(seen.factor @ seen.factor.T, gram, atol=1e-12)
