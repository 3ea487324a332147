import numpy as np
import pytest
from scipy.optimize import approx_fprime

from covey.gp import Model, Recall, condition, observe
from covey.kernels import Matern52, SquaredExponential
from covey.large.growing import Factor


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


# Recall: factors kept from one conditioning to the next


MODEL = Model(Matern52((0.4, 0.9), 1.3), 0.02, 0.1)
OTHER = Model(Matern52((0.6, 0.5), 0.9), 0.03, -0.2)


def small_recall():
    """More than 20 rows are many, in blocks of 8."""
    return Recall(many=20, block=8)


def looks(n, seed=0, sems=None):
    rng = np.random.default_rng(seed)
    at, values = rng.random((60, 2)), rng.standard_normal(60)
    at[5] = at[3]
    return observe(at[:n], values[:n], np.full(n, np.nan) if sems is None else sems[:n])


AT = np.random.default_rng(1).random((30, 2))
PENDING = np.random.default_rng(2).random((7, 2))


def same(one, other, rtol=1e-9):
    a, b = one.belief(AT), other.belief(AT)
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.var, b.var, rtol=rtol, atol=rtol)
    assert (a.looks, a.best) == (b.looks, b.best)


@pytest.mark.parametrize("n", [10, 45])
@pytest.mark.parametrize("pending", [None, PENDING])
@pytest.mark.parametrize("models", [[MODEL], [MODEL, OTHER]])
def test_it_conditions_as_the_plain_way_does(n, pending, models):
    data = looks(n)
    same(small_recall().condition(models, data, pending), condition(models, data, pending))


@pytest.mark.parametrize("pending", [None, PENDING])
def test_what_it_remembers_changes_no_bit(pending):
    """A batch pending, then told, with a replicate among it, then a model fitted anew."""
    kept = small_recall()
    kept.told(kept.condition([MODEL], looks(30), AT[:5]))
    for model, n in ((MODEL, 45), (MODEL, 45), (OTHER, 45), (MODEL, 50)):
        data = looks(n)
        one, fresh = kept.condition([model], data, pending), small_recall()
        other = fresh.condition([model], data, pending)
        assert np.array_equal(one.evidence[0].factor, other.evidence[0].factor)
        assert np.array_equal(one.evidence[0].weights, other.evidence[0].weights)
        for ours, theirs in zip(kept.told(one), fresh.told(other), strict=True):
            assert np.array_equal(ours, theirs)


def test_it_grows_what_it_has(monkeypatch):
    made = []
    fill = Factor._fill
    monkeypatch.setattr(Factor, "_fill", lambda self, head: (made.append(head), fill(self, head)))
    kept = small_recall()
    kept.condition([MODEL], looks(41), AT[:5])
    kept.condition([MODEL], looks(50))
    assert made == [0, 5]  # 40 distinct points are five blocks of eight
    kept.condition([OTHER], looks(50))
    assert made[-1] == 0


@pytest.mark.parametrize("n", [10, 45])
@pytest.mark.parametrize("pending", [None, PENDING])
@pytest.mark.parametrize("models", [[MODEL], [MODEL, OTHER]])
def test_what_is_believed_where_values_are_known(n, pending, models):
    data, kept = looks(n), small_recall()
    posterior = kept.condition(models, data, pending)
    belief = posterior.belief(data.at)
    mean, std = kept.told(posterior)
    np.testing.assert_allclose(mean, belief.mean, atol=1e-9)
    np.testing.assert_allclose(std, belief.std, rtol=1e-7)
    again = small_recall().told(posterior)  # of another's posterior
    assert np.array_equal(again[1], std)


def test_looks_that_tell_next_to_nothing_are_no_trouble():
    sems = np.where(np.arange(60) % 3 == 0, 1e9, 0.1)
    data, kept = looks(45, sems=sems), small_recall()
    posterior = kept.condition([MODEL], data)
    assert posterior.evidence[0].noise.max() > 1e15
    belief = posterior.belief(data.at)
    np.testing.assert_allclose(kept.told(posterior)[1], belief.std, rtol=1e-6)
