"""Blocks of a BoTorch model's covariance are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import MixedSingleTaskGP, ModelListGP, SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.multitask import MultiTaskGP
from botorch.models.transforms import Log, Normalize, Standardize
from botorch.models.transforms.input import AppendFeatures
from botorch.models.transforms.outcome import ChainedOutcomeTransform, Power
from botorch.posteriors.transformed import TransformedPosterior

from covey.errors import StrategyError
from covey.integrations.botorch_covariance import (
    KernelPrior,
    PosteriorPrior,
    View,
    as_array,
    checked_noise,
)

D = torch.double


@pytest.fixture(scope="module")
def model():
    g = torch.Generator().manual_seed(1)
    X = 3.0 * torch.rand(10, 2, generator=g, dtype=D)
    gp = SingleTaskGP(X, torch.sin(2.0 * X).sum(-1, True), input_transform=Normalize(2))
    gp.covar_module.lengthscale = torch.tensor([0.4, 0.7], dtype=D)
    gp.posterior(X)
    return gp


@pytest.fixture(scope="module")
def points():
    return 3.0 * torch.rand(30, 2, generator=torch.Generator().manual_seed(2), dtype=D)


def priors(model, points):
    view = View(model)
    variance = 0.25 * as_array(view.moments(points)[1][0])
    posterior = as_array(view.covariance(points)[0])
    with torch.no_grad():
        kernel = as_array(model.covar_module(model.transform_inputs(points)).to_dense())
    return [
        (KernelPrior(model, model.covar_module, points, None, 2.0), 2.0 * kernel),
        (PosteriorPrior(view, points, variance, 0, 0.25), 0.25 * posterior),
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_blocks_columns_and_subsets_are_cut_from_one_matrix(model, points, which, monkeypatch):
    monkeypatch.setattr("covey.integrations.botorch_covariance._ROWS", 4)
    monkeypatch.setattr("covey.integrations.botorch_covariance._JOINT", 4)
    prior, whole = priors(model, points)[which]
    rows, cols = np.array([3, 17, 4, 29, 0, 8]), np.array([4, 21])
    np.testing.assert_allclose(prior.diagonal, whole.diagonal(), atol=1e-10)
    np.testing.assert_allclose(prior.block(rows, cols), whole[np.ix_(rows, cols)], atol=1e-10)
    np.testing.assert_allclose(prior.columns(cols), whole[:, cols], atol=1e-10)
    inner = prior.on(rows)
    np.testing.assert_allclose(inner.diagonal, whole.diagonal()[rows], atol=1e-10)
    part = inner.block(np.array([1, 5]), np.array([0, 5]))
    np.testing.assert_allclose(part, whole[np.ix_(rows[[1, 5]], rows[[0, 5]])], atol=1e-10)
    assert prior.block(rows[:0], cols).shape == (0, 2)


def test_a_gradient_goes_through_the_input_transform(model, points):
    prior, _ = priors(model, points)[0]
    elsewhere, weights = as_array(points[:3]) + 0.05, np.array([0.3, -1.0, 0.6])

    def value(at):
        placed = model.transform_inputs(torch.from_numpy(at))
        others = model.transform_inputs(torch.from_numpy(elsewhere))
        with torch.no_grad():
            return 2.0 * as_array(model.covar_module(placed, others).to_dense()) @ weights

    at, step = as_array(points), 1e-5
    for j in range(2):
        move = np.zeros(2)
        move[j] = step
        expected = (value(at + move) - value(at - move)) / (2.0 * step)
        np.testing.assert_allclose(prior.gradient(elsewhere, weights)[:, j], expected, atol=1e-7)


def test_paths_have_the_kernels_covariance_here_and_elsewhere(model, points):
    prior, whole = priors(model, points)[0]
    elsewhere = as_array(points[20:])
    here, there = prior.on(np.arange(20)).paths(np.random.default_rng(0), 4000, elsewhere)
    found = np.cov(np.hstack([here(slice(None)), there]).T)
    # Random features and 4000 draws: a few per cent of the variance.
    assert np.abs(found - whole).max() < 0.25 * whole.diagonal().max()
    assert np.abs(found - 0.5 * whole).max() > 0.25 * whole.diagonal().max()  # it can fail
    again, _ = prior.on(np.arange(20)).paths(np.random.default_rng(0), 4000, elsewhere)
    np.testing.assert_allclose(here(slice(10, 20)), again(slice(None))[10:20], atol=1e-12)


def test_paths_leave_the_global_generator_alone(model, points):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    priors(model, points)[0][0].paths(np.random.default_rng(0), 2, as_array(points[:1]))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_what_is_not_to_be_had_is_said(points):
    X = torch.cat([points, (torch.arange(30, dtype=D) % 3)[:, None]], -1)
    mixed = MixedSingleTaskGP(X, torch.randn(30, 1, dtype=D), cat_dims=[2])
    prior = KernelPrior(mixed, mixed.covar_module, X, None, 1.0)
    with pytest.raises(StrategyError, match="no random features in BoTorch"):
        prior.paths(np.random.default_rng(0), 2, as_array(X[:1]))
    view = View(mixed)
    only = PosteriorPrior(view, X, as_array(view.moments(X)[1][0]), 0, 1.0)
    with pytest.raises(StrategyError, match="at candidates only"):
        only.paths(np.random.default_rng(0), 2, as_array(X[:1]))
    with pytest.raises(StrategyError, match="by its posterior only"):
        only.gradient(as_array(X[:1]), np.ones(1))


# What is read off a BoTorch model agrees with the model


# Some of these models are not standardised, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:Data :botorch.exceptions.warnings.InputDataWarning")


def data(m=12, d=2, outputs=1):
    g = torch.Generator().manual_seed(0)
    X = torch.rand(m, d, generator=g, dtype=D)
    return X, torch.cat([10.0 + torch.sin(5.0 * X + i).sum(-1, True) for i in range(outputs)], -1)


def test_moments_in_blocks_are_those_of_the_posterior(monkeypatch):
    model = SingleTaskGP(*data())
    X = torch.rand(25, 2, dtype=D)
    monkeypatch.setattr("covey.integrations.botorch_covariance._TOGETHER", 7)
    mean, variance = View(model).moments(X)
    with torch.no_grad():
        posterior = model.posterior(X)
    torch.testing.assert_close(mean[0], posterior.mean[:, 0], rtol=0.0, atol=1e-10)
    torch.testing.assert_close(variance[0], posterior.variance[:, 0], rtol=0.0, atol=1e-10)


def test_the_noise_is_the_likelihoods_in_the_units_of_the_data():
    X, Y = data()
    model = SingleTaskGP(X, 50.0 * Y)  # standardised inside
    model.likelihood.noise = 0.02
    expected = model.likelihood.noise.item() * (50.0 * Y).var().item()
    assert View(model).noise().item() == pytest.approx(expected, rel=1e-9)
    fixed = SingleTaskGP(X, Y, torch.linspace(0.1, 0.3, len(Y), dtype=D)[:, None])
    assert View(fixed).noise().item() == pytest.approx(0.2, rel=1e-9)


def test_a_model_without_noise_is_told_to_bring_some():
    class Silent(SingleTaskGP):
        def posterior(self, X, observation_noise=False, **more):
            return super().posterior(X, observation_noise=False, **more)

    with pytest.raises(StrategyError, match=r"adds no noise.*Pass noise="):
        View(Silent(*data())).noise()


def test_training_inputs_come_untransformed():
    X, Y = data()
    model = SingleTaskGP(7.0 + 3.0 * X, Y, input_transform=Normalize(2))
    model.posterior(X)  # which transforms what the model keeps
    assert torch.equal(View(model).seen, 7.0 + 3.0 * X)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_a_task_of_several_keeps_its_training_inputs_to_itself():
    X, Y = data(d=1)
    tasks = torch.arange(len(X), dtype=D)[:, None] % 2
    model = MultiTaskGP(torch.cat([X, tasks], -1), Y, task_feature=-1, output_tasks=[0])
    view = View(model)
    assert len(view.seen) == 0
    assert view.noise(X).item() > 0.0
    with pytest.raises(StrategyError, match="keeps no training inputs"):
        view.noise()


@pytest.mark.parametrize(
    "transform", [Log(), Power(0.5), ChainedOutcomeTransform(log=Log(), std=Standardize(1))]
)
def test_behind_a_bent_outcome_the_view_stays_where_it_is_gaussian(transform):
    X, Y = data()
    model = SingleTaskGP(X, Y, outcome_transform=transform)
    assert isinstance(model.posterior(X), TransformedPosterior)
    view = View(model)
    bent = Log()(Y)[0] if not isinstance(transform, Power) else Y.sqrt()
    # The scale is that of the bent outcomes, not of what standardisation makes of those.
    assert view.moments(X)[0].mean().item() == pytest.approx(bent.mean().item(), rel=0.05)


def test_an_outcome_that_is_turned_over_is_refused():
    model = SingleTaskGP(*data(), outcome_transform=Power(-1.0))
    with pytest.raises(StrategyError, match="does not increase"):
        View(model).moments(data()[0])


def test_a_sign_is_turned_by_a_posterior_transform():
    X, Y = data()
    model = SingleTaskGP(X, Y)
    turned = View(model, ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=D)))
    torch.testing.assert_close(turned.moments(X)[0], -View(model).moments(X)[0])


def several():
    X, Y = data(outputs=2)
    three = SingleTaskGP(X.expand(3, -1, -1), Y[:, :1].expand(3, -1, -1))
    return [
        (SingleTaskGP(X, Y), r"predicts 2 outcomes.*subset_output.*posterior_transform"),
        (ModelListGP(SingleTaskGP(X, Y[:, :1]), SingleTaskGP(X, Y[:, 1:])), "by several models"),
        (ModelListGP(SingleTaskGP(X, Y[:, :1])), r"model\.models\[0\]"),
        (three, r"a batch of \(3,\) models"),
        ("a model", "needs a BoTorch model; got str"),
    ]


@pytest.mark.parametrize(("model", "reason"), several())
def test_what_is_not_one_outcome_is_refused_with_a_reason(model, reason):
    with pytest.raises(StrategyError, match=reason):
        View(model)


def test_what_is_not_gaussian_is_refused():
    model = GenericDeterministicModel(lambda X: X[..., :1])
    with pytest.raises(StrategyError, match="needs a Gaussian one"):
        View(model).moments(data()[0])


def test_a_transform_that_makes_several_points_of_one_is_refused():
    X, Y = data(d=3)
    extra = AppendFeatures(feature_set=torch.rand(2, 1, dtype=D))
    model = SingleTaskGP(torch.cat([X, X[:, :1]], -1), Y, input_transform=extra)
    with pytest.raises(StrategyError, match="several points of one"):
        View(model).moments(X)


@pytest.mark.parametrize("noise", [0.0, -1.0, float("nan"), float("inf")])
def test_a_noise_is_above_zero(noise):
    with pytest.raises(StrategyError, match="above 0"):
        checked_noise(noise)
