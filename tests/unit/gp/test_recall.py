import numpy as np
import pytest

from covey.gp import Model, Recall, condition, observe
from covey.gp import posterior as recall
from covey.kernels import Matern52
from covey.large import growing as factor

MODEL = Model(Matern52((0.4, 0.9), 1.3), 0.02, 0.1)
OTHER = Model(Matern52((0.6, 0.5), 0.9), 0.03, -0.2)


@pytest.fixture(autouse=True)
def many_is_little(monkeypatch):
    monkeypatch.setattr(recall, "MANY", 20)
    monkeypatch.setattr(factor, "BLOCK", 8)


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
    same(Recall().condition(models, data, pending), condition(models, data, pending))


@pytest.mark.parametrize("pending", [None, PENDING])
def test_what_it_remembers_changes_no_bit(pending):
    """A batch pending, then told, with a replicate among it, then a model fitted anew."""
    kept = Recall()
    kept.told(kept.condition([MODEL], looks(30), AT[:5]))
    for model, n in ((MODEL, 45), (MODEL, 45), (OTHER, 45), (MODEL, 50)):
        data = looks(n)
        one, fresh = kept.condition([model], data, pending), Recall()
        other = fresh.condition([model], data, pending)
        assert np.array_equal(one.evidence[0].factor, other.evidence[0].factor)
        assert np.array_equal(one.evidence[0].weights, other.evidence[0].weights)
        for ours, theirs in zip(kept.told(one), fresh.told(other), strict=True):
            assert np.array_equal(ours, theirs)


def test_it_grows_what_it_has(monkeypatch):
    made = []
    fill = factor.Factor._fill
    monkeypatch.setattr(
        factor.Factor, "_fill", lambda self, head: (made.append(head), fill(self, head))
    )
    kept = Recall()
    kept.condition([MODEL], looks(41), AT[:5])
    kept.condition([MODEL], looks(50))
    assert made == [0, 5]  # 40 distinct points are five blocks of eight
    kept.condition([OTHER], looks(50))
    assert made[-1] == 0


@pytest.mark.parametrize("n", [10, 45])
@pytest.mark.parametrize("pending", [None, PENDING])
@pytest.mark.parametrize("models", [[MODEL], [MODEL, OTHER]])
def test_what_is_believed_where_values_are_known(n, pending, models):
    data, kept = looks(n), Recall()
    posterior = kept.condition(models, data, pending)
    belief = posterior.belief(data.at)
    mean, std = kept.told(posterior)
    np.testing.assert_allclose(mean, belief.mean, atol=1e-9)
    np.testing.assert_allclose(std, belief.std, rtol=1e-7)
    again = Recall().told(posterior)  # of another's posterior
    assert np.array_equal(again[1], std)


def test_looks_that_tell_next_to_nothing_are_no_trouble():
    sems = np.where(np.arange(60) % 3 == 0, 1e9, 0.1)
    data, kept = looks(45, sems=sems), Recall()
    posterior = kept.condition([MODEL], data)
    assert posterior.evidence[0].noise.max() > 1e15
    belief = posterior.belief(data.at)
    np.testing.assert_allclose(kept.told(posterior)[1], belief.std, rtol=1e-6)
