"""Where a posterior is put together from kernel and data, it is the model's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")

from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import Warp
from botorch.models.transforms.outcome import StratifiedStandardize

from covey.belief import Gaussian
from covey.integrations.botorch_belief import exact_members
from covey.integrations.botorch_covariance import View, as_array
from covey.large.lowrank import held_rows

# Some of these models are not standardised, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:Data :botorch.exceptions.warnings.InputDataWarning")

D = torch.double


def data(m=15, d=3):
    g = torch.Generator().manual_seed(3)
    X = torch.rand(m, d, generator=g, dtype=D)
    return X, 40.0 * torch.sin(4.0 * X).sum(-1, True), torch.rand(25, d, generator=g, dtype=D)


def models():
    X, Y, _ = data()
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
    model, X = models()[name], data()[2]
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
    X, Y, at = data()
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
    X, Y, at = data()
    view = View(SingleTaskGP(X, Y))
    (one,), (ten,) = exact_members(view, at, 1.0), exact_members(view, at, 10.0)
    np.testing.assert_allclose(ten.prior.diagonal * 100.0, one.prior.diagonal)
    np.testing.assert_allclose(ten.explained * 10.0, one.explained)


def test_it_steps_back_from_what_it_does_not_know(monkeypatch):
    X, Y, at = data()
    assert exact_members(View(SingleTaskVariationalGP(X, Y)), at, 1.0) is None
    weights = ScalarizedPosteriorTransform(torch.tensor([0.5, 0.5], dtype=D))
    two = SingleTaskGP(X, torch.cat([Y, -Y], -1))
    assert exact_members(View(two, weights), at, 1.0) is None
    monkeypatch.setattr("covey.integrations.botorch_belief._MOST_ENTRIES", 100)
    assert exact_members(View(SingleTaskGP(X, Y)), at, 1.0) is None


def test_it_steps_back_where_the_posterior_says_otherwise():
    """A scale that depends on the input is no single number: the comparison must notice."""
    X, Y, at = data()
    X = torch.cat([X[:, :2], (torch.arange(15, dtype=D) % 2)[:, None]], -1)
    at = torch.cat([at[:, :2], (torch.arange(25, dtype=D) % 2)[:, None]], -1)
    Y = torch.where(X[:, 2:] > 0.0, 10.0 * Y, Y)
    strata = StratifiedStandardize(stratification_idx=2, all_task_values=torch.tensor([0, 1]))
    assert exact_members(View(SingleTaskGP(X, Y, outcome_transform=strata)), at, 1.0) is None
    assert exact_members(View(SingleTaskGP(X, Y, outcome_transform=Standardize(1))), at, 1.0)
