"""Earlier studies in the prior mean: weights, gradients, and what a weight of zero leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal

from covey.gp import GP, Likelihood, Model, condition, observe
from covey.gp.prior_mean import EXPECTED, SPREAD, SourceMean, fitted_mean
from covey.kernels import Matern52

NAN = np.nan


def wave(x):
    return np.sin(5.0 * x[:, 0]) + x[:, 1]


@pytest.fixture
def source():
    """Of a study with one parameter more, which is held at its best, 0.25."""
    rng = np.random.default_rng(0)
    at = rng.random((25, 3))
    data = observe(at, wave(at) - (at[:, 2] - 0.25) ** 2, np.full(25, NAN))
    posterior = condition([Model(Matern52((0.5, 0.7, 0.9)), 1e-3)], data)
    return SourceMean(posterior, np.array([2, 0]), np.array([0.25]))


@pytest.fixture
def data(source):
    rng = np.random.default_rng(1)
    x = rng.random((18, 3))
    y = 0.7 * wave(x[:, [2, 0]]) + 0.2 * rng.standard_normal(18)
    seen = observe(x, y, np.full(18, NAN))
    other = np.cos(9.0 * seen.at[:, 1])
    return replace(seen, earlier=np.column_stack([source.mean(seen.at), other]))


def test_the_mean_is_that_of_the_earlier_study_at_its_best(source):
    at = np.random.default_rng(2).random((6, 3))
    theirs = np.column_stack([at[:, 2], at[:, 0], np.full(6, 0.25)])
    np.testing.assert_array_equal(source.mean(at), source.posterior.belief(theirs).mean)


def test_the_gradient_of_a_source_is_the_derivative(source):
    at = np.random.default_rng(3).random((4, 3))
    value, gradient = source.climbed(at)
    np.testing.assert_allclose(value, source.mean(at), atol=1e-12)
    for i, point in enumerate(at):
        numeric = approx_fprime(point, lambda x: source.mean(x[None])[0], 1e-7)
        np.testing.assert_allclose(gradient[i], numeric, atol=1e-4)


@pytest.mark.parametrize("mean", ["constant", "zero"])
def test_the_gradient_of_the_density_is_the_derivative(data, mean):
    likelihood = Likelihood(data, GP(mean=mean))
    theta = likelihood.start + 0.3 * np.random.default_rng(4).standard_normal(len(likelihood.start))
    value, gradient = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(likelihood.value(theta), abs=1e-9)
    numeric = approx_fprime(theta, likelihood.value, 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_weights_are_the_most_probable_that_are_not_negative(data, sign):
    """A referee maximises the density of data, constant and weights over a box."""
    gram = Matern52((0.6, 0.6, 0.6))(data.at, data.at) + 0.05 * np.eye(len(data))
    basis = sign * data.earlier
    found = fitted_mean(np.linalg.cholesky(gram), data.values, basis, 1.0)

    def loss(b):
        mean = b[0] + basis @ b[1:]
        prior = 0.5 * b[0] ** 2 + 0.5 * np.sum((b[1:] - EXPECTED) ** 2) / SPREAD**2
        return prior - multivariate_normal(mean, gram).logpdf(data.values)

    box = [(None, None), (0.0, None), (0.0, None)]
    referee = minimize(loss, np.full(3, 0.3), bounds=box, tol=1e-12).x
    np.testing.assert_allclose([found.constant, *found.weights], referee, atol=1e-4)
    assert (found.weights[0] > 0.2) if sign > 0 else (found.weights[0] == 0.0)


def test_integrating_the_weights_out_is_the_marginal_density(data):
    """Where none is cut off at zero: N(y | Hb, K + HVH')."""
    data = replace(data, earlier=data.earlier[:, :1])
    likelihood = Likelihood(data, GP())
    theta = likelihood.start
    model = likelihood.model_at(theta)
    assert all(weight > 0.0 for weight in model.earlier)
    h = np.column_stack([np.ones(len(data)), data.earlier])
    gram = model.kernel(data.at, data.at) + np.diag(data.noise(model.noise))
    spread = np.diag([1.0, SPREAD**2])
    expected = h @ [0.0, EXPECTED]
    referee = multivariate_normal(expected, gram + h @ spread @ h.T).logpdf(data.values)
    mine = likelihood.integrated(theta) - likelihood.log_prior(theta)[0]
    mine -= 0.5 * (EXPECTED / SPREAD) ** 2  # the log prior is less that of a weight of zero
    assert mine == pytest.approx(referee, abs=1e-6)


def test_the_posterior_mean_is_the_weighted_source_and_what_is_left(data, source):
    model = Model(Matern52((0.6, 0.6, 0.6)), 0.05, 0.1, earlier=(0.8,))
    seen = replace(data, earlier=data.earlier[:, :1])
    posterior = replace(condition([model], seen), sources=(source,))
    at = np.random.default_rng(5).random((5, 3))
    gram = model.kernel(seen.at, seen.at) + np.diag(seen.noise(model.noise))
    left = np.linalg.solve(gram, seen.values - 0.1 - 0.8 * source.mean(seen.at))
    expected = 0.1 + 0.8 * source.mean(at) + model.kernel(at, seen.at) @ left
    np.testing.assert_allclose(posterior.belief(at).mean, expected, atol=1e-9)
    value, gradient = posterior.upper(at, 1.5)
    belief = posterior.belief(at)
    np.testing.assert_allclose(value, belief.mean + 1.5 * belief.std, atol=1e-9)
    for i, point in enumerate(at):
        numeric = approx_fprime(point, lambda x: posterior.upper(x[None], 1.5)[0][0], 1e-7)
        np.testing.assert_allclose(gradient[i], numeric, atol=1e-3)


def test_a_source_of_weight_zero_changes_nothing(data, source):
    plain = Model(Matern52((0.6, 0.6, 0.6)), 0.05, 0.1)
    without = condition([plain], replace(data, earlier=None))
    with_it = condition([replace(plain, earlier=(0.0, 0.0))], data)
    with_it = replace(with_it, sources=(source, source))
    at = np.random.default_rng(6).random((5, 3))
    np.testing.assert_array_equal(with_it.belief(at).mean, without.belief(at).mean)
    np.testing.assert_array_equal(with_it.upper(at, 2.0)[1], without.upper(at, 2.0)[1])


def test_weights_survive_a_log():
    model = Model(Matern52((0.5,)), 0.1, 0.2, earlier=(0.25, 0.0))
    assert Model.from_description(model.describe()) == model
    assert "earlier" not in Model(Matern52((0.5,)), 0.1).describe()
