"""Blocks of a BoTorch model's covariance are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")

from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.transforms import Normalize

from covey.errors import StrategyError
from covey.integrations.botorch_covariance import KernelPrior, PosteriorPrior, View, as_array

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
