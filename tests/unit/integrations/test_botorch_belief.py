"""A belief says what the BoTorch model says."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")
from dataclasses import replace

from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import MixedSingleTaskGP, ModelListGP, SingleTaskGP
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Log, Normalize, Standardize
from botorch.models.transforms.input import Warp
from botorch.models.transforms.outcome import StratifiedStandardize

from covey.belief import Gaussian
from covey.catalog import strategy_of
from covey.errors import StrategyError
from covey.integrations.botorch import belief_from_model, beliefs_from_models
from covey.integrations.botorch_belief import exact_members
from covey.integrations.botorch_covariance import KernelPrior, PosteriorPrior, View, as_array
from covey.large.lowrank import held_rows

D = torch.double
TWO = ScalarizedPosteriorTransform(torch.tensor([0.3, 0.7], dtype=D))


def data(m=15, d=3):
    g = torch.Generator().manual_seed(3)
    X = torch.rand(m, d, generator=g, dtype=D)
    return X, 2.0 + torch.sin(4.0 * X).sum(-1, True), torch.rand(25, d, generator=g, dtype=D)


def kinds(X):
    return torch.cat([X[:, :2], (torch.arange(len(X), dtype=D) % 3)[:, None]], -1)


def single():
    X, Y, at = data()
    other, raw = torch.cos(3.0 * Y), (Y - Y.mean()) / Y.std()
    return {
        "single task": (SingleTaskGP(X, Y), at, None),
        "raw outcomes": (
            SingleTaskGP(X, raw, outcome_transform=None),
            at,
            None,
        ),
        "scaled": (SingleTaskGP(X, 100.0 * Y, input_transform=Normalize(3)), at, None),
        "known noise": (SingleTaskGP(X, Y, torch.full_like(Y, 0.03)), at, None),
        "mixed": (MixedSingleTaskGP(kinds(X), Y, cat_dims=[2]), kinds(at), None),
        "two outcomes, weighed": (SingleTaskGP(X, torch.cat([Y, other], -1)), at, TWO),
        "a list, weighed": (ModelListGP(SingleTaskGP(X, Y), SingleTaskGP(X, other)), at, TWO),
    }


@pytest.mark.parametrize("name", single())
def test_mean_variance_and_columns_are_those_of_the_dense_posterior(name):
    model, X, transform = single()[name]
    belief = belief_from_model(model, X, posterior_transform=transform)
    with torch.no_grad():
        dense = model.posterior(X, posterior_transform=transform)
        noisy = model.posterior(X, posterior_transform=transform, observation_noise=True)
        whole = dense.distribution.covariance_matrix.numpy()
        noise = noisy.variance[:, 0] - dense.variance[:, 0]
    np.testing.assert_allclose(belief.mean, dense.mean[:, 0], atol=1e-8)
    np.testing.assert_allclose(belief.var, whole.diagonal(), atol=1e-8)
    np.testing.assert_allclose(belief.columns([3, 0, 24]), whole[:, [3, 0, 24]], atol=1e-8)
    np.testing.assert_allclose(belief.noise, noise, rtol=1e-6)
    weighed = transform is not None
    assert isinstance(belief.parts[0].prior, PosteriorPrior if weighed else KernelPrior)


@pytest.mark.parametrize("name", ["single task", "scaled", "mixed"])
def test_looking_at_candidates_is_conditioning_on_them(name):
    model, X, _ = single()[name]
    after = belief_from_model(model, X).after_looking_at([2, 9])
    with torch.no_grad():
        told = model.condition_on_observations(X[[2, 9]], torch.zeros(2, 1, dtype=D))
        whole = told.posterior(X).distribution.covariance_matrix.numpy()
    np.testing.assert_allclose(after.columns(np.arange(25)), whole, atol=1e-8)


@pytest.mark.parametrize("name", ["single task", "two outcomes, weighed"])
def test_pending_points_shrink_the_covariance_and_leave_the_mean(name):
    model, X, transform = single()[name]
    belief = belief_from_model(model, X, posterior_transform=transform)
    pending = belief_from_model(model, X[5:], X_pending=X[:5], posterior_transform=transform)
    expected = belief.after_looking_at(range(5)).on(np.arange(5, 25))
    np.testing.assert_allclose(pending.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(pending.var, expected.var, atol=1e-10)
    np.testing.assert_allclose(pending.columns([4]), expected.columns([4]), atol=1e-10)
    assert pending.looks == belief.looks + 5
    assert len(pending) == 20


@pytest.mark.parametrize("n", [25, 4500])
def test_draws_have_the_moments_of_the_posterior(n):
    """Exact below some thousand candidates, along random paths above."""
    X, Y, _ = data()
    at = torch.rand(n, 3, generator=torch.Generator().manual_seed(0), dtype=D)
    belief = belief_from_model(SingleTaskGP(X, Y), at)
    some = np.arange(0, n, n // 25)
    drawn = belief.draw(np.random.default_rng(0), 600)[:, some]
    scores = (drawn.mean(axis=0) - belief.mean[some]) / (belief.std[some] / np.sqrt(600.0))
    assert np.abs(scores).max() < 4.5
    assert np.abs(drawn.var(axis=0) / belief.var[some] - 1.0).max() < 0.35
    assert np.abs((drawn + belief.std[some]).mean(axis=0) - belief.mean[some]).min() > 0.5 * (
        belief.std[some].min()
    )  # a shift by one standard deviation would be seen


def test_the_slope_is_the_steepest_of_the_mean():
    model, X, _ = single()["scaled"]
    at = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model.posterior(at.unsqueeze(-2)).mean.sum(), at)
    expected = gradient.norm(dim=1).max().item()
    assert belief_from_model(model, X).slope == pytest.approx(expected, rel=1e-6)


def test_what_is_known_is_told():
    model, X, _ = single()["single task"]
    belief = belief_from_model(model, X)
    with torch.no_grad():
        seen = model.posterior(data()[0])
    np.testing.assert_allclose(belief.told[0], seen.mean[:, 0], atol=1e-8)
    np.testing.assert_allclose(belief.told[1] ** 2, seen.variance[:, 0], atol=1e-8)
    assert belief.best == pytest.approx(seen.mean.max().item())
    assert belief.looks == 15


def test_standardised_beliefs_do_not_depend_on_units():
    X, Y, at = data()
    small, large = (
        belief_from_model(SingleTaskGP(X, scale * Y + shift), at, standardize=True)
        for scale, shift in [(1e-6, 0.0), (1e5, 3e4)]
    )
    np.testing.assert_allclose(small.mean, large.mean, atol=1e-6)
    np.testing.assert_allclose(small.columns([1]), large.columns([1]), atol=1e-6)
    assert small.noise == pytest.approx(large.noise, rel=1e-4)
    assert small.best == pytest.approx(large.best, rel=1e-6)
    np.testing.assert_allclose(small.told[1], large.told[1], rtol=1e-4)
    assert small.told[0].std() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:Data :botorch.exceptions.warnings.InputDataWarning")
def test_constant_outcomes_have_units_too():
    X, _, at = data()
    belief = belief_from_model(SingleTaskGP(X, torch.ones(15, 1, dtype=D)), at, standardize=True)
    assert np.isfinite(belief.columns(np.arange(25))).all()
    assert 0.0 < belief.std.max() < 1e3


@pytest.mark.filterwarnings("ignore:Data :botorch.exceptions.warnings.InputDataWarning")
def test_a_log_outcome_is_believed_in_logs():
    X, Y, at = data()
    model = SingleTaskGP(X, Y + 2.0, outcome_transform=Log())
    belief = belief_from_model(model, at)
    with torch.no_grad():
        base = model.posterior(at)._posterior
    np.testing.assert_allclose(belief.mean, base.mean[:, 0], atol=1e-8)
    np.testing.assert_allclose(belief.var, base.variance[:, 0], atol=1e-8)
    assert belief.noise == pytest.approx(model.likelihood.noise.item(), rel=1e-6)
    assert belief.best < 2.0


def mixture(model, X):
    """The averaged posterior, by its definition."""
    with torch.no_grad():
        posterior = model.posterior(X)
    mean = posterior.mixture_mean[:, 0].numpy()
    return mean, posterior.mixture_variance[:, 0].numpy(), posterior.distribution.covariance_matrix


def test_an_ensemble_is_one_part_for_each_member():
    X, Y, at = data()
    model = EnsembleMapSaasSingleTaskGP(X, Y, taus=torch.tensor([0.1, 0.3, 1.0, 2.0]))
    model.covar_module.base_kernel.lengthscale = torch.linspace(0.2, 2.0, 12).reshape(4, 1, 3)
    belief = belief_from_model(model, at)
    mean, variance, each = mixture(model, at)
    assert len(belief.parts) == 4
    np.testing.assert_allclose(belief.mean, mean, atol=1e-8)
    np.testing.assert_allclose(belief.var, variance, atol=1e-8)
    for part, whole in zip(belief.parts, each, strict=True):
        np.testing.assert_allclose(part.columns(np.arange(25)), whole, atol=1e-8)


@pytest.mark.parametrize("warped", [False, True])
def test_a_fully_bayesian_model_is_averaged_over_its_samples(warped):
    pytest.importorskip("numpyro", reason="pip install 'botorch[fully_bayesian]'")
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

    X, Y, at = data()
    model = SaasFullyBayesianSingleTaskGP(
        X, Y, outcome_transform=Standardize(1), use_input_warping=warped
    )
    g = torch.Generator().manual_seed(0)
    samples = {
        "lengthscale": 0.2 + torch.rand(5, 1, 3, generator=g, dtype=D),
        "outputscale": 0.5 + torch.rand(5, generator=g, dtype=D),
        "mean": 0.1 * torch.randn(5, generator=g, dtype=D),
        "noise": 0.01 + 0.02 * torch.rand(5, generator=g, dtype=D),
    }
    if warped:
        samples |= {c: 1.0 + 0.3 * torch.rand(5, 3, generator=g, dtype=D) for c in ("c0", "c1")}
    model.load_mcmc_samples(samples)
    belief = belief_from_model(model, at)
    mean, variance, each = mixture(model, at)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-8)
    np.testing.assert_allclose(belief.var, variance, atol=1e-8)
    for part, whole, noise in zip(belief.parts, each, samples["noise"], strict=True):
        np.testing.assert_allclose(part.columns(np.arange(25)), whole, atol=1e-8)
        assert part.noise == pytest.approx(noise.item() * Y.var().item(), rel=1e-6)


def test_many_candidates_need_no_square_matrix():
    X, Y, _ = data()
    at = torch.rand(100_000, 3, dtype=D)
    belief = belief_from_model(SingleTaskGP(X, Y), at)
    with torch.no_grad():
        pair = SingleTaskGP(X, Y).posterior(at[[7, 99_999]]).distribution.covariance_matrix
    assert belief.columns([7])[99_999, 0] == pytest.approx(pair[0, 1].item(), abs=1e-8)


def test_a_noise_of_ones_own():
    model, X, _ = single()["single task"]
    assert belief_from_model(model, X, noise=0.5).noise == 0.5
    with pytest.raises(StrategyError, match="above 0"):
        belief_from_model(model, X, noise=-1.0)


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (torch.rand(3), r"n x d; got \(3,\)"),
        (torch.rand(0, 3), r"n x d; got \(0, 3\)"),
        ([[0.0, 0.0, 0.0]], "n x d; got list"),
        (torch.rand(4, 2), "3 inputs, and X has 2 columns"),
        (torch.full((2, 3), torch.nan), "nan or infinity"),
    ],
)
def test_malformed_candidates_are_refused(X, reason):
    with pytest.raises(StrategyError, match=reason):
        belief_from_model(single()["single task"][0], X)


def test_single_precision_is_taken_as_it_comes():
    model, X, _ = single()["single task"]
    assert belief_from_model(model, X.float()).at.dtype == np.float64


# Where a posterior is put together from kernel and data, it is the model's own


# Some of these models are not standardised, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:Data :botorch.exceptions.warnings.InputDataWarning")


def large_data(m=15, d=3):
    g = torch.Generator().manual_seed(3)
    X = torch.rand(m, d, generator=g, dtype=D)
    return X, 40.0 * torch.sin(4.0 * X).sum(-1, True), torch.rand(25, d, generator=g, dtype=D)


def models():
    X, Y, _ = large_data()
    kinds = torch.cat([X[:, :2], (torch.arange(15, dtype=D) % 3)[:, None]], -1)
    return {
        "plain": SingleTaskGP(X, Y),
        "scaled inputs": SingleTaskGP(X, Y, input_transform=Normalize(3)),
        "warped inputs": SingleTaskGP(X, Y, input_transform=Warp(d=3, indices=[0, 2])),
        "known noise": SingleTaskGP(X, Y, torch.linspace(1.0, 9.0, 15, dtype=D)[:, None]),
        "mixed": MixedSingleTaskGP(kinds, Y, cat_dims=[2]),
        "ensemble": EnsembleMapSaasSingleTaskGP(X, Y, taus=torch.tensor([0.1, 0.3, 1.0, 2.0])),
    }


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("sign", [1.0, -2.0])
def test_members_have_the_posteriors_covariance(name, sign):
    model, X = models()[name], large_data()[2]
    if name == "mixed":
        X = torch.cat([X[:, :2], (torch.arange(25, dtype=D) % 3)[:, None]], -1)
    view = View(model, ScalarizedPosteriorTransform(torch.tensor([sign], dtype=D)))
    members = exact_members(view, X, unit=1.0)
    truth = as_array(view.covariance(X))
    assert len(members) == len(truth)
    every = np.arange(len(X))
    for member, whole in zip(members, truth, strict=True):
        part = Gaussian(
            member.prior, np.zeros(25), held_rows(member.explained), 1.0, member.evidence
        )
        np.testing.assert_allclose(part.block(every, every), whole, atol=1e-8)


def test_the_evidence_explains_the_mean():
    X, Y, at = large_data()
    view = View(SingleTaskGP(X, Y))
    (member,) = exact_members(view, at, unit=7.0)
    assert np.array_equal(member.evidence.at, as_array(X))
    prior = replace(member.prior, points=torch.cat([at, X]))
    weighed = prior.block(np.arange(25), 25 + np.arange(15)) @ member.evidence.weights
    mean = as_array(view.moments(at)[0][0]) / 7.0
    # The mean is a constant and a sum over the evidence.
    np.testing.assert_allclose(np.diff(mean - weighed), 0.0, atol=1e-9)
    gram = prior.block(25 + np.arange(15), 25 + np.arange(15)) + np.diag(member.evidence.noise)
    np.testing.assert_allclose(member.evidence.factor @ member.evidence.factor.T, gram, atol=1e-9)


def test_units_divide_everything():
    X, Y, at = large_data()
    view = View(SingleTaskGP(X, Y))
    (one,), (ten,) = exact_members(view, at, 1.0), exact_members(view, at, 10.0)
    np.testing.assert_allclose(ten.prior.diagonal * 100.0, one.prior.diagonal)
    np.testing.assert_allclose(ten.explained * 10.0, one.explained)


def test_it_steps_back_from_what_it_does_not_know(monkeypatch):
    X, Y, at = large_data()
    assert exact_members(View(SingleTaskVariationalGP(X, Y)), at, 1.0) is None
    weights = ScalarizedPosteriorTransform(torch.tensor([0.5, 0.5], dtype=D))
    two = SingleTaskGP(X, torch.cat([Y, -Y], -1))
    assert exact_members(View(two, weights), at, 1.0) is None
    monkeypatch.setattr("covey.integrations.botorch_belief._MOST_ENTRIES", 100)
    assert exact_members(View(SingleTaskGP(X, Y)), at, 1.0) is None


def test_it_steps_back_where_the_posterior_says_otherwise():
    """A scale that depends on the input is no single number: the comparison must notice."""
    X, Y, at = large_data()
    X = torch.cat([X[:, :2], (torch.arange(15, dtype=D) % 2)[:, None]], -1)
    at = torch.cat([at[:, :2], (torch.arange(25, dtype=D) % 2)[:, None]], -1)
    Y = torch.where(X[:, 2:] > 0.0, 10.0 * Y, Y)
    strata = StratifiedStandardize(stratification_idx=2, all_task_values=torch.tensor([0, 1]))
    assert exact_members(View(SingleTaskGP(X, Y, outcome_transform=strata)), at, 1.0) is None
    assert exact_members(View(SingleTaskGP(X, Y, outcome_transform=Standardize(1))), at, 1.0)


def test_several_models_are_beliefs_about_several_goals():
    X, Y, at = data()
    models = ModelListGP(SingleTaskGP(X, Y), SingleTaskGP(X, torch.cos(3.0 * Y))).models
    beliefs = beliefs_from_models(models, at, ref_point=[1.0, -2.0])
    alone = [belief_from_model(model, at) for model in models]
    for one, other in zip(beliefs.each, alone, strict=True):
        assert np.allclose(one.mean, other.mean)
    batch = strategy_of("auto")[1].choose(beliefs, 4, np.random.default_rng(0)).indices
    assert len(set(batch)) == 4
    picked = strategy_of("ucb-dpp-sample")[1].choose(beliefs, 4, np.random.default_rng(0))
    assert len(set(picked.indices)) == 4


def test_a_front_needs_shared_inputs_and_a_reference_point_for_each():
    X, Y, at = data()
    with pytest.raises(StrategyError, match="one value of ref_point for each goal; got 1 and 2"):
        beliefs_from_models([SingleTaskGP(X, Y)], at, ref_point=[0.0, 0.0])
    unlike = [SingleTaskGP(X, Y), SingleTaskGP(X[:9], Y[:9])]
    with pytest.raises(StrategyError, match="share their training inputs"):
        beliefs_from_models(unlike, at, ref_point=[0.0, 0.0])


def test_what_is_pending_is_awaited():
    """The default's second point of a batch is the first of an ask with the first one pending."""
    X, Y, at = data()
    model, pending = SingleTaskGP(X, Y), at[:2]
    belief = belief_from_model(model, at[2:], X_pending=pending)
    np.testing.assert_array_equal(belief.under_way, as_array(pending))
    whole = belief_from_model(model, at)
    np.testing.assert_allclose(belief.awaited, whole.mean[:2], rtol=1e-9)
    both = beliefs_from_models([model, model], at[2:], [0.0, 0.0], X_pending=pending)
    np.testing.assert_array_equal(both.under_way, as_array(pending))
