from importlib import import_module

import numpy as np
import pytest

from covey.gp import GP, condition, fit, informative, observe
from covey.kernels import Matern52

subset = import_module("covey.gp.fit")  # of the same name as the function


@pytest.fixture
def many_is_little(monkeypatch):
    monkeypatch.setattr(subset, "MANY", 150)


def test_picks_are_distinct_and_a_function_of_the_generator(many_is_little):
    at = np.random.default_rng(0).random((700, 3))
    picks = [informative(at, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert len(set(picks[0].tolist())) == 150
    assert np.array_equal(picks[0], picks[1])
    assert not np.array_equal(picks[0], picks[2])


@pytest.mark.parametrize("n", [1, 149, 150])
def test_few_are_all_taken_and_no_randomness_is_used(many_is_little, n):
    rng = np.random.default_rng(0)
    assert informative(np.zeros((n, 2)), rng).tolist() == list(range(n))
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("n", [151, 152, 299])
def test_hardly_more_than_enough(many_is_little, n):
    picks = informative(np.random.default_rng(0).random((n, 2)), np.random.default_rng(1))
    assert len(set(picks.tolist())) == 150
    assert 0 <= picks.min() <= picks.max() < n


def test_picks_have_a_neighbour_and_lie_everywhere(many_is_little):
    at = np.random.default_rng(0).random((2000, 3))
    picks = at[informative(at, np.random.default_rng(0))]
    scattered = at[:150]

    def nearest(points):
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        np.fill_diagonal(apart, np.inf)
        return np.median(apart.min(axis=1))

    assert nearest(picks) < 0.6 * nearest(scattered)
    for half in (picks < 0.5).T:
        assert 0.35 < half.mean() < 0.65


def drawn(n, noise, seed):
    """Half of the results lie close together, as those of a search do."""
    rng = np.random.default_rng(seed)
    x = rng.random((n + 200, 2))
    x[n // 2 : n] = 0.3 + 0.01 * x[n // 2 : n]
    gram = Matern52((0.15, 0.5), 1.0)(x, x) + 1e-9 * np.eye(n + 200)
    y = np.linalg.cholesky(gram) @ rng.standard_normal(n + 200)
    y += np.sqrt(noise) * rng.standard_normal(n + 200)
    data = observe(x[:n], y[:n], np.full(n, np.nan))
    return data, x[n:], (y[n:] - data.shift) / data.scale


def score(model, data, at, values):
    """Mean log density of held-out values, given all the data."""
    belief = condition([model], data).belief(at)
    variance = belief.var + model.noise
    return np.mean(-0.5 * np.log(variance) - 0.5 * np.square(values - belief.mean) / variance)


def loss(pick, noise, seed):
    """What hyper-parameters of a subset cost, in nats per held-out value."""
    data, at, values = drawn(400, noise, seed)
    rng = np.random.default_rng(seed)
    (full,), (some,) = fit(data, GP(), rng), fit(data.rows(pick(data.at, rng)), GP(), rng)
    return score(full, data, at, values) - score(some, data, at, values)


@pytest.mark.parametrize("noise", [1e-4, 0.1])
def test_a_fit_to_the_subset_predicts_nearly_as_well_as_one_to_all(many_is_little, noise):
    assert np.mean([loss(informative, noise, seed) for seed in range(3)]) < 0.05


def test_a_clumped_subset_would_be_caught(many_is_little):
    """The control: results that lie close together say nothing about the reach of f."""

    def clump(at, rng):
        del rng
        return np.argsort(np.linalg.norm(at - 0.305, axis=1))[:150]

    assert np.mean([loss(clump, 0.1, seed) for seed in range(3)]) > 0.05
