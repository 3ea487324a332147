from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm

from covey.gp import GP, Model, Success, condition, observe
from covey.gp import success as module
from covey.gp.success import Labels, informative_labels
from covey.kernels import Matern52

RNG = np.random.default_rng(0)
AT = RNG.random((40, 2))
BEYOND = AT[:, 0] > 0.5
THETA = np.array([-0.3, 0.2, 1.0, 0.3])  # log lengths, log variance, mean


def split(at, failed):
    return at[~failed], at[failed]


@pytest.fixture(scope="module")
def border():
    return Success.among(*split(AT, BEYOND), GP(), np.random.default_rng(0))


def test_the_gradient_of_the_evidence_is_that_of_finite_differences():
    noisy = AT[:, 0] + 0.3 * np.random.default_rng(1).standard_normal(40) > 0.5
    labels = Labels(AT, np.where(noisy, -1.0, 1.0), GP())
    _, gradient, _ = labels.value_and_gradient(THETA, None, 1e-10)
    wanted = approx_fprime(THETA, lambda t: labels.value_and_gradient(t, None, 1e-10)[0], 1e-6)
    assert np.allclose(gradient, wanted, rtol=1e-4, atol=1e-4)


def test_the_probability_is_that_of_brute_force():
    """The referee: draws of the latent function from its prior, weighed by the labels."""
    at, y = np.array([[0.1, 0.2], [0.4, 0.9], [0.6, 0.3], [0.9, 0.8]]), np.array([1, 1, -1, -1.0])
    where = np.array([[0.2, 0.5], [0.5, 0.5], [0.8, 0.1]])
    found = Labels(at, y, GP()).success(THETA).probability(where)
    kernel = Matern52(tuple(np.exp(THETA[:2])), float(np.exp(THETA[2])))
    both = np.vstack([at, where])
    factor = np.linalg.cholesky(kernel(both, both) + 1e-10 * np.eye(7))
    drawn = THETA[3] + np.random.default_rng(2).standard_normal((200_000, 7)) @ factor.T
    weights = norm.cdf(y * drawn[:, :4]).prod(axis=1)
    wanted = (weights @ norm.cdf(drawn[:, 4:])) / weights.sum()
    assert np.allclose(found, wanted, atol=0.01)
    assert np.ptp(wanted) > 0.3  # the control: they differ


def test_a_border_is_found(border):
    at = np.random.default_rng(3).random((500, 2))
    p = border.probability(at)
    assert p[at[:, 0] < 0.4].min() > 0.8
    assert p[at[:, 0] > 0.6].max() < 0.2
    assert border.where > 0.9  # and not by chance


def test_a_border_is_found_with_the_priors_of_the_paper():
    gp = GP("squared-exponential", mean="zero", samples=5, priors="paper", warp=False)
    found = Success.among(*split(AT, BEYOND), gp, np.random.default_rng(0))
    assert found.where > 0.9
    good, bad = found.probability(np.array([[0.2, 0.5], [0.8, 0.5]]))
    assert bad < 0.2
    assert good > 0.8


def test_failures_at_random_lower_the_probability_alike_everywhere():
    at = np.random.default_rng(4).random((100, 2))
    failed = np.random.default_rng(5).random(100) < 0.3
    success = Success.among(*split(at, failed), GP(), np.random.default_rng(0))
    assert success.where < 0.5
    p = success.probability(AT)
    assert abs(p.mean() - np.mean(~failed)) < 0.05
    assert p.std() < 0.1


def test_the_order_of_the_trials_does_not_matter(border):
    told, failed = split(AT, BEYOND)
    again = Success.among(told[::-1], failed[::-1], GP(), np.random.default_rng(0))
    assert np.allclose(again.probability(AT), border.probability(AT), atol=1e-3)


def test_a_point_that_was_told_and_failed_is_no_trouble():
    at = np.vstack([AT, AT[:3], AT[:3]])
    failed = np.concatenate([BEYOND, [True] * 3, [True] * 3])
    p = Success.among(*split(at, failed), GP(), np.random.default_rng(0)).probability(at)
    assert np.isfinite(p).all()
    assert ((p >= 0.0) & (p <= 1.0)).all()


def test_what_is_climbed_has_the_gradient_of_finite_differences(border):
    data = observe(AT, np.sin(5.0 * AT[:, 0]), np.full(40, np.nan))
    posterior = condition([Model(Matern52((0.5, 0.7)), 0.01)], data)

    def height(x):
        upper, slope = posterior.upper(x[None, :], 2.0)
        return border.climbed(upper + 3.0, slope, x[None, :])

    for x in np.random.default_rng(6).random((5, 2)):
        wanted = approx_fprime(x, lambda t: float(height(t)[0][0]), 1e-7)
        assert np.allclose(height(x)[1][0], wanted, rtol=1e-3, atol=1e-4)
        p = border.probability(x[None, :])[0]
        assert height(x)[0][0] == pytest.approx(p * (posterior.upper(x[None, :], 2.0)[0][0] + 3.0))


def test_a_belief_carries_the_probability_as_its_weight(border):
    data = observe(AT, AT[:, 0], np.full(40, np.nan))
    plain = condition([Model(Matern52((0.5, 0.7)), 0.01)], data)
    belief = replace(plain, success=border).belief(AT)
    assert np.array_equal(belief.weight, border.probability(AT))
    assert np.array_equal(belief.mean, plain.belief(AT).mean)
    assert plain.belief(AT).weight is None


def test_of_many_trials_some_of_both_kinds_are_learnt_from():
    rng = np.random.default_rng(7)
    at = rng.random((3000, 2))
    rare = (at > 0.9).all(axis=1)
    told, failed = informative_labels(*split(at, rare), rng)
    assert len(told) + len(failed) == module.MOST
    assert len(failed) == min(rare.sum(), module.MOST // 4)
    kept = {tuple(row) for row in at}
    assert all(tuple(row) in kept for row in (*told, *failed))
    found = Success.among(*split(at, rare), GP(), rng)
    assert found.probability(np.array([[0.95, 0.95], [0.5, 0.5]])).round().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(("told", "failed"), [(1000, 1000), (150, 450), (100, 900), (5000, 10)])
def test_of_many_trials_the_share_that_succeeds_is_kept(told, failed):
    rng = np.random.default_rng(0)
    found = Success.among(rng.random((told, 2)), rng.random((failed, 2)), GP(), rng)
    p = found.probability(rng.random((200, 2)))
    assert np.abs(p.mean() - told / (told + failed)) < 0.05


def test_propagation_ends_at_a_fixed_point_for_repeated_labels():
    """Sixty labels at three options: parallel updates with long steps would go to and fro."""
    at = np.eye(3)[np.arange(60) % 3]
    y = np.where(at[:, 0] > 0.0, -1.0, 1.0)
    labels = Labels(at, y, GP())
    theta = labels.most_probable()
    gradient = labels.value_and_gradient(theta)[1]
    for i in range(len(theta)):
        step = np.eye(len(theta))[i] * 1e-4
        ends = [labels.value_and_gradient(theta + s * step)[0] for s in (1.0, -1.0)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=0.02)


def test_labels_at_columns_that_share_a_length_scale():
    rng = np.random.default_rng(3)
    at = rng.random((14, 3))
    labels = Labels(at, np.where(at[:, 0] > 0.5, -1.0, 1.0), GP(), groups=(0, 1, 1))
    theta = np.array([-0.3, 0.4, 1.0, 0.2])
    gradient = labels.value_and_gradient(theta, close=1e-12)[1]
    for i, step in enumerate(1e-5 * np.eye(4)):
        ends = [labels.value_and_gradient(theta + s * step, close=1e-12)[0] for s in (1.0, -1.0)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-4)
    assert len(labels.most_probable()) == 4
