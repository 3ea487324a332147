from importlib import import_module

import numpy as np
import pytest
from scipy.stats import kstest, norm

from covey.gp import (
    GP,
    Likelihood,
    Model,
    Warp,
    condition,
    fit,
    fit_best,
    informative,
    observe,
    outgrown,
    views_of,
)
from covey.gp.fit import most_probable, plausibility, slice_step
from covey.kernels import Matern52

fitting = import_module("covey.gp.fit")  # of the same name as the function


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


def test_sampling_draws_from_the_posterior_of_the_hyper_parameters():
    """One input, noise given: draws of (ℓ, s) against the posterior on a grid."""
    rng = np.random.default_rng(0)
    x = rng.random((6, 1))
    data = observe(x, np.sin(6 * x[:, 0]), np.full(6, np.nan))
    gp = GP(samples=400, noise=0.1, kernel="squared-exponential")
    likelihood = Likelihood(data, gp)
    axes = [np.linspace(low, high, 161) for low, high in ((-4.0, 4.0), (-4.0, 5.0))]
    grid = np.array([[a, b] for a in axes[0] for b in axes[1]])
    logs = np.array([likelihood.integrated(theta) for theta in grid])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    draws = fit(data, gp, rng)
    for axis, found in enumerate(
        ([np.log(m.kernel.lengths[0]) for m in draws], [np.log(m.kernel.variance) for m in draws])
    ):
        mean = weights @ grid[:, axis]
        spread = np.sqrt(weights @ (grid[:, axis] - mean) ** 2)
        assert np.mean(found) == pytest.approx(mean, abs=0.3 * spread)
        assert np.std(found) == pytest.approx(spread, rel=0.25)
        # The control: the prior alone is plainly another law.
        prior = likelihood.start[axis]
        assert abs(prior - mean) > 0.3 * spread or abs(spread - 1.0) > 0.25


def test_a_chain_goes_on_from_the_last_draw():
    data, gp = draw(15, 0.05), GP(samples=4, priors="paper", kernel="squared-exponential")
    first = fit(data, gp, np.random.default_rng(0))
    assert len(set(first)) == 4
    again = fit(data, gp, np.random.default_rng(1), first)
    elsewhere = fit(data, gp, np.random.default_rng(1), first[:1])
    assert len(set(again)) == 4
    assert again != elsewhere


@pytest.mark.parametrize(("n", "noise"), [(40, 0.36), (80, 0.09)])
def test_noise_is_not_read_as_signal(n, noise):
    """A smooth function under heavy noise: the fit finds most of the noise."""
    found, errors = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.random((n, 2))
        truth = np.sin(5 * x[:, 0]) + x[:, 1]
        data = observe(x, truth + np.sqrt(noise) * rng.standard_normal(n), np.full(n, np.nan))
        models = fit(data, GP(), rng)
        found.append(models[0].noise * data.scale**2 / noise)
        mean, _ = condition(models, data).predict(x)
        errors.append(np.sqrt(np.mean((mean - truth) ** 2)) / truth.std())
    assert 0.4 < np.median(found) < 1.6
    assert np.median(errors) < 0.5


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


def _views(values):
    at = np.linspace(0.0, 1.0, len(values))[:, None]
    unknown = np.full(len(values), np.nan)
    return [observe(at, values, unknown, view=view) for view in ("warped", "straight")]


def test_of_two_views_the_likelier_is_kept():
    """A smooth function seen through exp is straightened; the same with even noise is not bent."""
    rng = np.random.default_rng(0)
    smooth = np.sin(5.0 * np.linspace(0.0, 1.0, 40))
    bent, straight = _views(np.exp(2.5 * smooth))
    assert fit_best([bent, straight], GP(), rng)[0] is bent
    noisy = np.where(smooth > 0.0, smooth, 3.0 * smooth) + 0.5 * rng.standard_normal(40)
    bent, straight = _views(noisy)
    assert bent.warp != Warp()
    assert fit_best([bent, straight], GP(), rng)[0] is straight


def test_a_frame_of_its_own_has_to_earn_its_place():
    """A smooth loss over decades is seen in it; a margin keeps the usual views elsewhere."""
    rng = np.random.default_rng(0)
    at = rng.random((40, 2))
    loss = 10.0 ** (8.0 * np.abs(at - 0.4).max(axis=1))
    views = views_of(at, -loss, np.full(40, np.nan), warp=True)
    assert [view.view for view in views] == ["warped", "straight", "framed"]
    assert fit_best(views, GP(), rng)[0].view == "framed"
    odds = {view.view: plausibility(view, fit(view, GP(), rng), GP()) for view in views}
    others = max(odds["warped"], odds["straight"])
    assert odds["framed"] > others + 8.0
    for margin, chosen in ((-0.01, True), (0.01, False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fitting, "_MARGINS", {"framed": odds["framed"] - others + margin})
            assert (fit_best(views, GP(), rng)[0].view == "framed") is chosen


def test_views_that_do_not_differ_are_not_fitted():
    at, ordinary = AT[:30], np.random.default_rng(0).standard_normal(30)
    for values, sems, warp, expected in (
        (ordinary, np.full(30, np.nan), True, ["warped", "straight"]),
        (ordinary, np.full(30, np.nan), False, ["straight"]),
        (ordinary, np.full(30, 0.1), True, ["straight"]),
        (np.ones(30), np.full(30, np.nan), True, ["straight"]),
    ):
        assert [view.view for view in views_of(at, values, sems, warp=warp)] == expected


def test_of_many_rows_a_few_are_fitted_and_compared(monkeypatch):
    """Both views on the same few, in the units of all; and the whole of the better one returned."""
    monkeypatch.setattr(fitting, "MANY", 40)
    seen = []
    monkeypatch.setattr(
        fitting, "fit", lambda data, *rest: (seen.append(data), fit(data, *rest))[1]
    )
    smooth = np.sin(5.0 * np.linspace(0.0, 1.0, 90))
    views = _views(np.exp(2.5 * smooth))
    best, (model,) = fit_best(views, GP(), np.random.default_rng(0))
    assert best is views[0]
    assert len(model.kernel.lengths) == 1
    assert [len(data) for data in seen] == [40, 40]
    assert np.array_equal(seen[0].at, seen[1].at)
    assert [data.scale for data in seen] == [data.scale for data in views]


def test_a_first_fit_to_many_rows_reads_all_of_them_in_one_view_only(monkeypatch):
    """A likelihood of all rows is what it costs; the view is chosen by a few, and as by all."""
    monkeypatch.setattr(fitting, "_ONE_START", 60)
    monkeypatch.setattr(fitting, "_DECIDING", 30)
    read = []
    value_and_gradient = Likelihood.value_and_gradient

    def counted(self, theta):
        read.append(len(self.data))
        return value_and_gradient(self, theta)

    monkeypatch.setattr(Likelihood, "value_and_gradient", counted)
    rng = np.random.default_rng(0)
    at = rng.random((90, 8))
    smooth = np.sin(at @ np.linspace(4.0, 1.0, 8)) + 0.1 * rng.standard_normal(90)
    for values in (np.exp(2.5 * smooth), smooth):
        views = [
            observe(at, values, np.full(90, np.nan), view=view) for view in ("warped", "straight")
        ]
        by_all = [plausibility(view, fit(view, GP(), rng), GP()) for view in views]
        read.clear()
        best, models = fit_best(views, GP(), rng)
        assert by_all[views.index(best)] > max(by_all) - 1.0
        assert set(read) == {30, 90}
        assert read.count(90) <= 40
        read.clear()
        fit_best(views, GP(), rng, models)  # from hyper-parameters in the log both are fitted
        assert set(read) == {90}


def test_bent_and_straight_compare_on_a_subset_as_on_all():
    """By the density of the told outcomes, for each of them."""
    rng = np.random.default_rng(0)
    smooth = np.sin(5.0 * np.linspace(0.0, 1.0, 120))
    few = np.sort(rng.permutation(120)[:60])
    for values, sign in ((np.exp(2.5 * smooth), 1.0), (smooth + 0.3 * rng.random(120), -1.0)):
        views = _views(values)
        gains = []
        for rows in (np.arange(120), few):
            parts = [view.rows(rows) for view in views]
            bent, straight = (
                fitting.plausibility(part, fit(part, GP(), rng), GP()) for part in parts
            )
            gains.append(sign * (bent - straight) / len(rows))
        assert min(gains) > 0.0
        assert gains[1] == pytest.approx(gains[0], abs=0.5 * gains[0] + 0.05)


# When to fit again


AT = np.random.default_rng(0).random((60, 2))
VALUES = np.sin(5.0 * AT[:, 0]) + AT[:, 1]
NAN = np.full(60, np.nan)


def looks(n, values=VALUES, **options):
    return observe(AT[:n], values[:n], NAN[:n], **options)


@pytest.mark.parametrize(("n", "stale"), [(50, False), (55, False), (56, True)])
def test_a_tenth_more_results_outgrow_a_fit(n, stale):
    assert outgrown(looks(n), looks(50)) is stale


def test_so_do_results_that_move_the_units():
    values = VALUES.copy()
    values[50] += 20.0
    assert outgrown(looks(51, values), looks(50, values))
    values[50] = VALUES[50]
    assert not outgrown(looks(51, values), looks(50, values))


def test_so_does_another_bend():
    values = np.exp(3.0 * VALUES)
    assert outgrown(looks(50, values, view="warped"), looks(50, values))
    values = -(10.0 ** (4.0 * VALUES))
    warped, framed = (looks(50, values, view=view) for view in ("warped", "framed"))
    assert outgrown(framed, warped)
    assert outgrown(warped, framed)
    assert not outgrown(framed, framed)


def test_so_do_amended_values():
    values = VALUES.copy()
    values[:10] *= -1.0
    assert outgrown(looks(50, values), looks(50))
    values[1:10] *= -1.0  # one of fifty is not enough
    assert not outgrown(looks(50, values), looks(50))


def test_so_does_a_standard_error_that_came_to_be_known():
    sems = NAN.copy()
    sems[3] = 0.1
    assert outgrown(observe(AT[:50], VALUES[:50], sems[:50]), looks(50))


def test_results_between_the_old_ones_are_no_matter():
    """As when an old trial is told late."""
    some = np.delete(np.arange(50), [3, 17])
    then = observe(AT[some], VALUES[some], NAN[some])
    assert not outgrown(looks(50), then)


# A fit on an informative subset


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
