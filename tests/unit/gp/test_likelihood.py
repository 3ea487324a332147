from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from covey.gp import GP, Likelihood, observe


@pytest.fixture
def data():
    """Replicates, known errors and plain looks together."""
    rng = np.random.default_rng(0)
    x = rng.random((20, 3))
    x[5] = x[6] = x[4]
    y = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(20)
    sems = np.full(20, np.nan)
    sems[10:12] = 0.2
    return observe(x, y, sems)


@pytest.mark.parametrize("mean", ["constant", "zero"])
@pytest.mark.parametrize("kernel", ["matern52", "squared-exponential"])
@pytest.mark.parametrize("noise", [None, 0.1])
@pytest.mark.parametrize("priors", ["scaled", "paper"])
def test_gradient_is_the_derivative(data, mean, kernel, noise, priors):
    likelihood = Likelihood(data, GP(kernel=kernel, mean=mean, noise=noise, priors=priors))
    theta = likelihood.start + 0.3 * np.random.default_rng(1).standard_normal(len(likelihood.start))
    value, gradient = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(likelihood.value(theta), abs=1e-9)
    numeric = approx_fprime(theta, likelihood.value, 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


def test_noise_is_given_by_the_user_or_by_the_errors(data):
    assert Likelihood(data, GP()).given_noise is None
    stated = Likelihood(data, GP(noise=0.3)).given_noise
    assert stated == pytest.approx((0.3 / data.scale) ** 2)
    rng = np.random.default_rng(0)
    certain = observe(rng.random((6, 2)), rng.standard_normal(6), np.full(6, 0.1))
    inferred = Likelihood(certain, GP()).given_noise
    assert inferred == pytest.approx((0.1 / certain.scale) ** 2)


def test_theta_and_model_are_inverse(data):
    likelihood = Likelihood(data, GP())
    theta = likelihood.start + 0.1
    np.testing.assert_allclose(likelihood.theta_of(likelihood.model_at(theta)), theta)


def test_the_constant_mean_is_at_its_optimum(data):
    """Shifting it either way lowers the joint density of data and mean."""
    from scipy.stats import multivariate_normal, norm

    likelihood = Likelihood(data, GP())
    model = likelihood.model_at(likelihood.start)
    gram = model.kernel(data.at, data.at) + np.diag(data.noise(model.noise))

    def joint(mean):
        return multivariate_normal(np.full(len(gram), mean), gram).logpdf(
            data.values
        ) + norm.logpdf(mean)

    assert joint(model.mean) > max(joint(model.mean + 0.01), joint(model.mean - 0.01))


def test_the_integrated_mean_is_a_constant_added_to_the_kernel():
    """∫ N(y; m1, K) N(m; 0, 1) dm = N(y; 0, K + 11')."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    data = observe(rng.random((7, 2)), rng.standard_normal(7), np.full(7, np.nan))
    likelihood = Likelihood(data, GP())
    model = likelihood.model_at(likelihood.start)
    gram = model.kernel(data.at, data.at) + model.noise * np.eye(7)
    expected = multivariate_normal(np.zeros(7), gram + 1.0).logpdf(data.values)
    ours = likelihood.integrated(likelihood.start) - likelihood.log_prior(likelihood.start)[0]
    assert ours == pytest.approx(expected, abs=1e-9)
    zero = Likelihood(data, GP(mean="zero"))
    assert zero.integrated(zero.start) == zero.value(zero.start)


@pytest.mark.parametrize("kernel", ["matern52", "squared-exponential"])
def test_columns_that_share_a_length_scale(data, kernel):
    """One entry of θ for all of them; the density is that of equal lengths, less their priors."""
    gp = GP(kernel=kernel)
    shared, single = Likelihood(replace(data, groups=(0, 1, 1)), gp), Likelihood(data, gp)
    theta = shared.start + np.array([0.4, -0.3, 0.2, 0.1])
    value, gradient = shared.value_and_gradient(theta)
    assert value == pytest.approx(shared.value(theta), abs=1e-9)
    np.testing.assert_allclose(
        gradient, approx_fprime(theta, shared.value, 1e-6), rtol=1e-4, atol=1e-4
    )
    each = theta[[0, 1, 1, 2, 3]]
    without_priors = [
        one.value(at) - one.log_prior(at)[0] for one, at in ((shared, theta), (single, each))
    ]
    assert without_priors[0] == pytest.approx(without_priors[1], abs=1e-9)
    model = shared.model_at(theta)
    assert model.kernel.lengths[1] == model.kernel.lengths[2]
    np.testing.assert_allclose(shared.theta_of(model), theta)


def test_groups_of_one_are_no_groups(data):
    alone, none = Likelihood(replace(data, groups=(0, 1, 2)), GP()), Likelihood(data, GP())
    theta = none.start + 0.1
    (value, slopes), (other, others) = (each.value_and_gradient(theta) for each in (alone, none))
    assert value == other
    np.testing.assert_array_equal(slopes, others)
