import numpy as np
import pytest
from scipy.optimize import approx_fprime

from covey.gp import Model, condition, observe
from covey.kernels import Matern52, SquaredExponential


@pytest.fixture
def setting():
    rng = np.random.default_rng(0)
    data = observe(rng.random((8, 2)), 5.0 + 3.0 * rng.standard_normal(8), np.full(8, np.nan))
    models = [
        Model(Matern52((0.4, 0.6), 1.2), 0.05, 0.1),
        Model(SquaredExponential((0.5, 0.3)), 0.1),
    ]
    return models, data, rng.random((10, 2))


def test_pending_points_move_the_covariance_and_not_the_mean(setting):
    models, data, at = setting
    pending = np.array([[0.2, 0.2], [0.7, 0.9]])
    plain = condition(models[:1], data).belief(np.vstack([at, pending]))
    waiting = condition(models[:1], data, pending).belief(at)
    np.testing.assert_allclose(waiting.mean, plain.mean[:10], atol=1e-12)
    looked = plain.after_looking_at([10, 11])
    np.testing.assert_allclose(waiting.var, looked.var[:10], atol=1e-10)


def test_predictions_are_in_units_of_the_outcome(setting):
    models, data, at = setting
    posterior = condition(models, data)
    mean, std = posterior.predict(at)
    belief = posterior.belief(at)
    np.testing.assert_allclose(mean, data.shift + data.scale * belief.mean)
    np.testing.assert_allclose(std, data.scale * belief.std)


@pytest.mark.parametrize("width", [0.0, 2.0])
def test_upper_bound_and_its_gradient(setting, width):
    models, data, at = setting
    posterior = condition(models, data, np.array([[0.5, 0.5]]))
    value, gradient = posterior.upper(at, width)
    parts = posterior.belief(at).members
    expected = np.mean([p.mean + width * p.std for p in parts], axis=0)
    np.testing.assert_allclose(value, expected, atol=1e-10)
    for i, point in enumerate(at):
        numeric = approx_fprime(point, lambda x: posterior.upper(x[None], width)[0][0], 1e-7)
        np.testing.assert_allclose(gradient[i], numeric, rtol=1e-3, atol=1e-4)


def test_a_belief_knows_its_round_and_looks(setting):
    models, data, at = setting
    belief = condition(models, data).belief(at, round=7)
    assert (belief.round, belief.looks, belief.best) == (7, 8, data.values.max())
