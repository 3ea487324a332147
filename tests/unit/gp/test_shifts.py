"""Shifts of plates: exact against brute force, gradients by differences, and no leak into f."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from covey.gp import GP, Likelihood, Sharing, condition, fit, observe, without_shifts
from covey.gp.model import Model
from covey.kernels import Matern52

TAU = 0.8


def some_data(seed=0, plates=3, each=8, controls=2, tau=TAU):
    """Points, values, groups with controls, and the shifts behind them."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(plates), each)
    at = rng.random((len(of), 2))
    at[-1] = at[0]  # one point on two plates
    at[1] = at[0]  # ... and twice on one
    shift = tau * rng.standard_normal(plates)
    f = np.sin(4.0 * at[:, 0]) + at[:, 1]
    values = f + shift[of] + 0.05 * rng.standard_normal(len(of))
    kinds = np.tile(np.repeat([0, 1], controls), plates)
    c_of = np.repeat(np.arange(plates), 2 * controls)
    read = np.where(kinds, 3.0, -9.0) + shift[c_of] + 0.05 * rng.standard_normal(len(c_of))
    if not controls:
        read, kinds, c_of = np.zeros(0), np.zeros(0, dtype=int), np.zeros(0, dtype=int)
    labels = (tuple(f"p{i + 1}" for i in range(plates)),)
    groups = Sharing(("plate",), labels, of[:, None], read, kinds, c_of[:, None])
    return at, values, groups, shift


def observed(at, values, groups=None, **options):
    return observe(at, values, np.full(len(at), np.nan), groups, **options)


@pytest.mark.parametrize("controls", [0, 2])
@pytest.mark.parametrize("gp", [GP(), GP(noise=0.1), GP(mean="zero")])
def test_the_gradient_agrees_with_differences(controls, gp):
    at, values, groups, _ = some_data(controls=controls)
    likelihood = Likelihood(observed(at, values, groups), gp)
    theta = likelihood.start + 0.3
    value, slope = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(likelihood.value(theta), rel=1e-12)
    differences = approx_fprime(theta, likelihood.value, 1e-6)
    np.testing.assert_allclose(slope, differences, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("controls", [0, 2])
def test_shifts_and_their_doubt_are_those_of_the_joint_gaussian(controls):
    """Brute force: b, f at the rows and what controls measure are one Gaussian vector."""
    at, values, groups, _ = some_data(controls=controls)
    data = observed(at, values, groups)
    model = Model(Matern52((0.5, 0.7), 1.3), noise=0.02, mean=0.1, shifts=(("plate", 0.6),))
    shifts, n = data.shifts, len(data)
    gram = model.kernel(data.at, data.at) + np.diag(data.noise(model.noise))
    every, m = shifts.every, len(shifts.controls)
    cov = every @ (0.6 * np.eye(3)) @ every.T
    cov[:n, :n] += gram
    cov[n:, n:] += 4.0 * (shifts.kinds[:, None] == shifts.kinds) if m else 0.0
    cov[n:, n:] += np.diag(model.noise / shifts.counts)
    residual = np.append(data.values - model.mean, shifts.controls)
    gain = 0.6 * every.T @ np.linalg.inv(cov)
    np.testing.assert_allclose(
        shifts.estimated(model, gram, data.residual(model.mean, model.earlier)),
        gain @ residual,
        atol=1e-9,
    )
    left = 0.6 * np.eye(3) - gain @ every * 0.6
    np.testing.assert_allclose(shifts.doubt(model, gram), np.sqrt(np.diag(left)), atol=1e-9)


def test_pooling_is_exact():
    """The likelihood of pooled readings is that of all readings, one by one."""
    at, values, groups, _ = some_data()
    data = observed(at, values, groups)
    assert len(data) == len(at) - 1, "only the two copies on one plate are pooled"
    likelihood = Likelihood(data, GP(mean="zero"))
    theta = likelihood.start
    kernel = Matern52(tuple(np.exp(theta[:2])), float(np.exp(theta[2])))
    noise, tau2 = np.exp(theta[3:])
    z = (values - data.shift) / data.scale
    c = (groups.controls - data.shift) / data.scale
    for kind in (0, 1):
        c = np.where(groups.kinds == kind, c - c[groups.kinds == kind].mean(), c)
    every = np.concatenate([groups.codes[:, 0], groups.control_codes[:, 0]])
    cov = tau2 * (every[:, None] == every) + noise * np.eye(len(every))
    n = len(at)
    cov[:n, :n] += kernel(at, at)
    cov[n:, n:] += 4.0 * (groups.kinds[:, None] == groups.kinds)
    brute = multivariate_normal.logpdf(np.append(z, c), cov=cov, allow_singular=False)
    ours = likelihood.value(theta) - likelihood.log_prior(theta)[0]
    assert ours == pytest.approx(brute, rel=1e-9)


@pytest.mark.parametrize("controls", [0, 2])
def test_the_posterior_is_that_of_the_joint_gaussian(controls):
    at, values, groups, _ = some_data(controls=controls)
    data = observed(at, values, groups)
    model = Model(Matern52((0.4, 0.7), 1.3), 0.01, 0.2, shifts=(("plate", 0.5),))
    new = np.random.default_rng(9).random((5, 2))
    belief = condition([model], data).belief(new)
    shifts = data.shifts
    joint = shifts.joint(model.kernel(data.at, data.at), data.noise(0.01), 0.01, [0.5])
    cross = np.zeros((len(joint), 5))
    cross[: len(data)] = model.kernel(data.at, new)
    residual = np.append(data.values - 0.2, shifts.controls)
    mean = 0.2 + cross.T @ np.linalg.solve(joint, residual)
    cov = model.kernel(new, new) - cross.T @ np.linalg.solve(joint, cross)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(belief.var, np.diagonal(cov), rtol=1e-7)


def test_with_no_variance_of_shifts_the_posterior_is_the_plain_one():
    at, values, groups, _ = some_data()
    data, plain = observed(at, values, groups), observed(at, values)
    model = Model(Matern52((0.4, 0.7), 1.0), 0.01, shifts=(("plate", 1e-14),))
    new = np.random.default_rng(9).random((5, 2))
    one, other = condition([model], data).belief(new), condition([model], plain).belief(new)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-8)
    np.testing.assert_allclose(one.var, other.var, atol=1e-8)


def test_one_plate_is_no_group():
    groups = some_data(plates=1, each=24)[2]
    assert groups.telling() is None
    assert some_data()[2].telling() is not None


def test_the_shift_of_a_plate_does_not_leak_into_predictions():
    """The mutant: without groups, a plate that reads 3 more makes f look higher there."""
    at, values, groups, shift = some_data(plates=4, each=14, tau=0.0)
    shift = np.array([0.0, 0.0, 0.0, 3.0])
    values = values + shift[groups.codes[:, 0]]
    read = groups.controls + shift[groups.control_codes[:, 0]]
    groups = Sharing(
        groups.names, groups.labels, groups.codes, read, groups.kinds, groups.control_codes
    )
    new = np.random.default_rng(9).random((200, 2))
    true = np.sin(4.0 * new[:, 0]) + new[:, 1]
    errors = []
    for given in (groups, None):
        data = observed(at, values, given)
        models = fit(data, GP(), np.random.default_rng(0))
        errors.append(float(np.std(condition(models, data).predict(new)[0] - true)))
    assert errors[0] < 0.1
    assert errors[1] > 0.3


def test_predictions_are_of_f_and_not_of_the_last_plate():
    """The mutant: a prediction that has the shift of some plate in it is off by three."""
    at, values, groups, _ = some_data(plates=2, each=20, tau=0.0)
    shift = np.array([-3.0, 3.0])
    read = groups.controls + shift[groups.control_codes[:, 0]]
    groups = replace(groups, controls=read)
    data = observed(at, values + shift[groups.codes[:, 0]], groups)
    models = fit(data, GP(), np.random.default_rng(0))
    new = np.random.default_rng(9).random((100, 2))
    mean, std = condition(models, data).predict(new)
    off = mean - np.sin(4.0 * new[:, 0]) - new[:, 1]
    assert abs(off).max() < 1.0
    assert np.all(std > 1.0)  # the level is unknown by the size of a shift over the root of two


def test_without_shifts_the_values_are_those_of_one_plate():
    at, values, groups, shift = some_data(plates=4, each=14, controls=4)
    data = observed(at, values, groups)
    models = fit(data, GP(), np.random.default_rng(0))
    plain = without_shifts(models, data)
    assert plain.shifts is None
    moved = (data.values - plain.values) * data.scale
    place = [int(np.flatnonzero(row)[0]) for row in data.shifts.design]
    gap = moved - shift[place]
    assert np.std(gap) < 0.1 * np.std(shift)


def test_controls_far_from_all_samples_change_little():
    at, values, groups, _ = some_data(plates=4, each=14)
    far = replace(groups, controls=groups.controls - 1e4 * (groups.kinds == 0))
    new = np.random.default_rng(9).random((50, 2))
    means = []
    for given in (groups, far):
        data = observed(at, values, given)
        models = fit(data, GP(), np.random.default_rng(0))
        means.append(condition(models, data).predict(new)[0])
    np.testing.assert_allclose(means[0], means[1], atol=0.02)


def test_a_model_with_shifts_is_written_down_and_read_back():
    model = Model(Matern52((0.4, 0.7), 1.0), 0.01, shifts=(("plate", 0.5), ("day", 0.1)))
    assert Model.from_description(model.describe()) == model
    assert "shifts" not in Model(Matern52((0.4,), 1.0), 0.01).describe()
    assert model.taus(("day", "row")).tolist() == [0.1, 0.0]


def test_many_rows_are_fitted_on_a_subset_that_keeps_its_groups():
    at, values, groups, _ = some_data()
    some = observed(at, values, groups).rows(np.array([0, 9, 20]))
    assert some.shifts.design.shape == (3, 3)
    assert some.shifts.design.sum() == 3
