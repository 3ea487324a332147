from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from covey.gp import Failures, Model, Recall, condition, observe
from covey.kernels import Matern52, SquaredExponential

TOLD = np.array([[0.1, 0.1], [0.2, 0.8], [0.3, 0.4], [0.45, 0.6]])
FAILED = np.array([[0.8, 0.2], [0.9, 0.7], [0.75, 0.5]])


@pytest.fixture
def posterior():
    data = observe(TOLD, np.array([1.0, 2.0, 4.0, 3.0]), np.full(4, np.nan))
    models = [
        Model(Matern52((0.4, 0.6), 1.2), 0.05, 0.1),
        Model(SquaredExponential((0.5, 0.3)), 0.1),
    ]
    plain = condition(models, data, FAILED)
    return replace(plain, failures=Failures.among(TOLD, FAILED, float(data.values.min())))


def test_the_share_is_near_one_among_failures_and_near_nought_among_results():
    failures = Failures.among(TOLD, FAILED, -1.0)
    assert np.all(failures.share(FAILED) > 0.7)
    assert np.all(failures.share(TOLD) < 0.3)
    assert failures.share(np.array([[50.0, 50.0]]))[0] == 0.0  # where nobody was


def test_a_failure_in_good_company_speaks_for_hardly_more_than_itself():
    rng = np.random.default_rng(0)
    failures = Failures.among(rng.random((200, 2)), np.array([[0.5, 0.5]]), -1.0)
    assert failures.share(np.array([[0.5, 0.5]]))[0] > 0.5
    assert failures.share(np.array([[0.6, 0.5]]))[0] < 0.01


def test_the_same_point_told_and_failed_is_no_trouble():
    failures = Failures.among(TOLD, TOLD[:1], -1.0)
    assert np.all(np.isfinite(failures.share(TOLD)))
    assert failures.share(TOLD[1:]).max() < 1e-6


def test_the_mean_goes_no_lower_than_the_worst_and_never_up():
    failures = Failures.among(TOLD, FAILED, -1.0)
    at = np.random.default_rng(1).random((50, 2))
    mean = np.linspace(-3.0, 3.0, 50)
    lowered = failures.lowered(mean, at)
    assert np.all(lowered <= mean)
    assert np.all(lowered[mean > -1.0] >= -1.0)
    assert np.array_equal(lowered[mean <= -1.0], mean[mean <= -1.0])


def test_only_the_mean_is_lowered(posterior):
    at = np.random.default_rng(2).random((30, 2))
    plain = replace(posterior, failures=None).belief(at)
    belief = posterior.belief(at)
    for lowered, part in zip(belief.parts, plain.parts, strict=True):
        assert np.array_equal(lowered.var, part.var)
    assert (belief.best, belief.looks) == (plain.best, plain.looks)
    assert np.any(belief.mean < plain.mean - 0.1)


@pytest.mark.parametrize("width", [0.0, 2.0])
def test_the_upper_bound_and_its_gradient_know_of_failures(posterior, width):
    at = np.random.default_rng(3).random((10, 2))
    value, gradient = posterior.upper(at, width)
    parts = posterior.belief(at).members
    expected = np.mean([p.mean + width * p.std for p in parts], axis=0)
    np.testing.assert_allclose(value, expected, atol=1e-10)
    for i, point in enumerate(at):
        numeric = approx_fprime(point, lambda x: posterior.upper(x[None], width)[0][0], 1e-7)
        np.testing.assert_allclose(gradient[i], numeric, rtol=1e-3, atol=1e-4)


def test_where_values_are_known_many_results_are_believed_as_few_are(posterior):
    few = Recall().told(posterior)
    many = Recall(many=2).told(posterior)
    np.testing.assert_allclose(many[0], few[0], atol=1e-9)
    np.testing.assert_allclose(many[1], few[1], rtol=1e-7)
