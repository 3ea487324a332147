"""The set score as an acquisition function."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")

from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.optim import optimize_acqf, optimize_acqf_discrete

from covey import dpp
from covey.errors import StrategyError
from covey.integrations.botorch import belief_from_model, qDPPScore

D = torch.double
BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=D)


def make(kind=SingleTaskGP, **more):
    g = torch.Generator().manual_seed(0)
    X = torch.rand(8, 2, generator=g, dtype=D)
    return kind(X, 10.0 * torch.sin(5.0 * X).sum(-1, True), **more)


def points(*shape):
    return torch.rand(*shape, 2, generator=torch.Generator().manual_seed(9), dtype=D)


TAUS = torch.tensor([0.1, 0.3, 1.0])


@pytest.mark.parametrize(
    "model",
    [make(), make(EnsembleMapSaasSingleTaskGP, num_taus=3, taus=TAUS)],
    ids=["one", "ensemble"],
)
def test_the_score_is_the_log_determinant_covey_chooses_by(model):
    X = points(5, 4)
    kernel = belief_from_model(model, X.reshape(-1, 2)).information()
    score = qDPPScore(model)(X)
    assert score.shape == (5,)
    for b in range(5):
        expected = dpp.log_determinant(kernel, list(range(4 * b, 4 * b + 4)))
        assert score[b].item() == pytest.approx(expected, rel=1e-8)


def test_quality_is_added_point_by_point():
    model, X = make(), points(3, 4)
    quality = UpperConfidenceBound(model, beta=4.0)
    plain, scored = qDPPScore(model)(X), qDPPScore(model, quality, weight=0.3)(X)
    each = torch.stack([quality(X[:, i : i + 1]) for i in range(4)]).sum(dim=0)
    torch.testing.assert_close(scored, plain + 0.3 * each)


def test_scores_of_points_one_by_one_add_up_to_the_batchs():
    model, X = make(), points(4)
    score = qDPPScore(model, LogExpectedImprovement(model, best_f=8.0))
    whole, total = score(X).item(), 0.0
    for i in range(4):
        score.set_X_pending(X[:i] if i else None)
        total += score(X[i : i + 1]).item()
    assert total == pytest.approx(whole, rel=1e-9)


def test_a_pending_point_repels():
    model, X = make(), points(1)
    free, near = qDPPScore(model), qDPPScore(model, X_pending=X + 0.01)
    assert near(X).item() < 0.5 * free(X).item()
    assert near(points(6, 2)).shape == (6,)


@pytest.mark.parametrize("pending", [None, points(2) * 0.5])
@pytest.mark.parametrize("kind", ["plain", "logei", "ensemble"])
def test_gradients_are_right(kind, pending):
    if kind == "ensemble":
        model = make(EnsembleMapSaasSingleTaskGP, num_taus=3, taus=TAUS)
    else:
        model = make()
    quality = LogExpectedImprovement(model, best_f=8.0) if kind == "logei" else None
    score = qDPPScore(model, quality, X_pending=pending)
    assert torch.autograd.gradcheck(score, points(2, 3).requires_grad_(), atol=1e-5)


@pytest.mark.parametrize("sequential", [False, True])
def test_it_can_be_optimised_jointly_and_one_by_one(sequential):
    model = make()
    score = qDPPScore(model, LogExpectedImprovement(model, best_f=8.0), weight=0.5)
    torch.manual_seed(0)
    found, value = optimize_acqf(
        score, BOX, q=3, num_restarts=3, raw_samples=32, sequential=sequential
    )
    assert found.shape == (3, 2)
    assert torch.pdist(found).min() > 0.05
    assert value.sum().item() > score(points(256, 3)).max().item()
    assert score.X_pending is None  # as it was


def test_over_choices_it_is_the_greedy_maximum():
    model, X = make(), points(60)
    found, value = optimize_acqf_discrete(qDPPScore(model), q=5, choices=X)
    order = dpp.maximize(belief_from_model(model, X).information(), 5)
    torch.testing.assert_close(found, X[order])
    assert value.sum().item() == pytest.approx(qDPPScore(model)(found).item(), rel=1e-9)


def test_the_sign_of_the_outcome_does_not_matter_to_diversity():
    model, X = make(), points(3)
    turned = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=D))
    plain = qDPPScore(model)(X)
    torch.testing.assert_close(qDPPScore(model, posterior_transform=turned)(X), plain)


def test_a_noise_of_ones_own():
    model, X = make(), points(3)
    with torch.no_grad():
        whole = model.posterior(X).distribution.covariance_matrix
    expected = np.linalg.slogdet(np.eye(3) + whole.numpy() / 2.5)[1]
    assert qDPPScore(model, noise=2.5)(X).item() == pytest.approx(expected)


def test_what_does_not_fit_is_refused():
    model = make()
    with pytest.raises(StrategyError, match="acquisition function of one point"):
        qDPPScore(model, "log-ei")
    with pytest.raises(StrategyError, match="by several models"):
        qDPPScore(ModelListGP(model, model))
    with pytest.raises(StrategyError, match="above 0"):
        qDPPScore(model, noise=0.0)
