import numpy as np
import pytest
from scipy.stats import kstest, norm

from covey.gp import GP, Model, condition, fit, observe
from covey.gp.fit import most_probable, slice_step
from covey.gp.likelihood import Likelihood
from covey.kernels import Matern52


def draw(n, noise, seed=0, lengths=(0.2, 0.8)):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))
    gram = Matern52(lengths, 1.0)(x, x) + noise * np.eye(n)
    return observe(x, np.linalg.cholesky(gram) @ rng.standard_normal(n), np.full(n, np.nan))


def test_map_recovers_hyper_parameters():
    data = draw(250, 0.01)
    (model,) = fit(data, GP(), np.random.default_rng(0))
    assert model.kernel.lengths[0] == pytest.approx(0.2, rel=0.5)
    assert model.kernel.lengths[1] > model.kernel.lengths[0]
    assert model.noise * data.scale**2 == pytest.approx(0.01, rel=0.5)


def test_map_is_a_maximum():
    likelihood = Likelihood(draw(40, 0.05), GP())
    theta = likelihood.theta_of(most_probable(likelihood))
    best = likelihood.value(theta)
    for step in np.random.default_rng(0).standard_normal((20, len(theta))):
        assert likelihood.value(likelihood.clip(theta + 0.05 * step)) <= best + 1e-6


def test_a_start_from_the_log_is_used_and_never_worse():
    data = draw(30, 0.05)
    likelihood = Likelihood(data, GP())
    elsewhere = Model(Matern52((5.0, 5.0), 1.0), 0.5)
    plain = likelihood.value(likelihood.theta_of(most_probable(likelihood)))
    warm = likelihood.value(likelihood.theta_of(most_probable(likelihood, elsewhere)))
    assert warm >= plain - 1e-9


def test_one_observation_stays_at_the_priors():
    data = observe(np.array([[0.3, 0.4]]), np.array([5.0]), np.array([np.nan]))
    (model,) = fit(data, GP(), np.random.default_rng(0))
    start = np.exp(Likelihood(data, GP()).start)
    assert model.kernel.lengths == pytest.approx(tuple(start[:2]), rel=0.2)
    belief = condition([model], data).belief(np.array([[0.3, 0.4], [0.9, 0.9]]))
    assert belief.std[1] > belief.std[0]


def test_models_of_another_shape_in_the_log_are_passed_over():
    data = draw(10, 0.1)
    old = Model(Matern52((0.5,)), 0.1)
    assert fit(data, GP(), np.random.default_rng(0), [old]) == fit(
        data, GP(), np.random.default_rng(0)
    )


def test_sampling_draws_models_and_continues():
    data, gp = draw(15, 0.05), GP(samples=4, priors="paper", kernel="squared-exponential")
    first = fit(data, gp, np.random.default_rng(0))
    assert len(first) == 4
    assert len(set(first)) == 4
    again = fit(data, gp, np.random.default_rng(1), first)
    assert len(again) == 4


def test_slice_sampling_has_its_target_as_law():
    """A correlated Gaussian; thinned draws against the normal law by Kolmogorov-Smirnov."""
    cov = np.array([[1.0, 0.6], [0.6, 0.5]])
    precision = np.linalg.inv(cov)
    rng = np.random.default_rng(0)
    theta, box, kept = np.zeros(2), np.array([[-50.0, 50.0]] * 2), []
    for step in range(8000):
        theta = slice_step(lambda t: float(-0.5 * t @ precision @ t), theta, box, rng)
        if step % 16 == 0:
            kept.append(theta)
    kept = np.array(kept)
    assert kstest(kept[:, 0], norm(scale=1.0).cdf).pvalue > 1e-3
    assert kstest(kept[:, 1], norm(scale=np.sqrt(0.5)).cdf).pvalue > 1e-3
    # The control: a wrong width is caught.
    assert kstest(kept[:, 0], norm(scale=1.5).cdf).pvalue < 1e-3


def test_slice_sampling_stays_in_its_box():
    rng = np.random.default_rng(0)
    theta, box = np.zeros(1), np.array([[-1.0, 1.0]])
    seen = []
    for _ in range(500):
        theta = slice_step(lambda t: 0.0, theta, box, rng)
        seen.append(theta[0])
    assert min(seen) >= -1.0
    assert max(seen) <= 1.0
    assert np.std(seen) == pytest.approx(2 / np.sqrt(12), rel=0.1)
