"""Batches for BoTorch users: exactly q, distinct, never pending."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import MixedSingleTaskGP, ModelListGP, SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.multitask import MultiTaskGP
from botorch.optim import optimize_acqf, optimize_acqf_discrete

from covey import dpp
from covey.catalog import STRATEGIES
from covey.errors import ExhaustedError, StrategyError
from covey.integrations.botorch import belief_from_model, optimize_dpp, qDPPScore
from covey.policies import UCB
from covey.strategies import DPP

ROOT = Path(__file__).parents[3]
D = torch.double
BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=D)


def data():
    X = torch.rand(10, 2, generator=torch.Generator().manual_seed(0), dtype=D)
    return X, -(X - 0.3).square().sum(-1, True)


@pytest.fixture(scope="module")
def model():
    return SingleTaskGP(*data())


def pool(n=80):
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(1), dtype=D)


def rows(X):
    return {tuple(row) for row in X.tolist()}


@pytest.mark.parametrize("strategy", [*STRATEGIES, DPP(UCB(beta=4.0), then="max")], ids=str)
def test_every_strategy_gives_q_distinct_points_within_bounds(model, strategy):
    found, scores = optimize_dpp(model, BOX, 5, strategy=strategy, seed=0)
    assert found.shape == (5, 2)
    assert found.dtype == D
    assert len(rows(found)) == 5
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert scores.sum().item() == pytest.approx(qDPPScore(model)(found).item(), rel=1e-6)


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "sobol"])
def test_every_strategy_chooses_rows_that_are_not_pending(model, strategy):
    X = pool()
    found, _ = optimize_dpp(
        model, choices=X, q=6, strategy=strategy, seed=0, X_pending=X[:30], X_avoid=X[30:60]
    )
    assert rows(found) <= rows(X[60:])
    assert len(rows(found)) == 6


def test_a_pending_point_is_not_returned_and_repels(model):
    first, _ = optimize_dpp(model, BOX, 1, seed=0, strategy="auto")
    second, score = optimize_dpp(model, BOX, 1, seed=0, strategy="auto", X_pending=first)
    assert rows(first).isdisjoint(rows(second))
    again = qDPPScore(model, X_pending=first)(second).item()
    assert score.item() == pytest.approx(again, rel=1e-6)


def test_the_last_rows_of_a_pool_can_be_had_but_no_more(model):
    X = torch.cat([pool(6), pool(6)])  # six, each twice
    found, _ = optimize_dpp(model, choices=X, q=4, seed=0, X_pending=X[:2])
    assert rows(found) == rows(X[2:6])
    with pytest.raises(ExhaustedError, match="neither pending nor to be avoided: 4") as error:
        optimize_dpp(model, choices=X, q=5, seed=0, X_pending=X[:2])
    assert error.value.left == 4


def test_a_seed_decides_everything(model):
    def batch(seed):
        return optimize_dpp(model, BOX, 4, seed=seed)[0]

    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    assert torch.equal(batch(7), batch(7))
    assert not torch.equal(batch(7), batch(8))
    assert torch.equal(torch.random.get_rng_state(), state)  # ours, not torch's
    torch.manual_seed(3)
    one = batch(None)
    torch.manual_seed(3)
    assert torch.equal(one, batch(None))
    assert not torch.equal(one, batch(None))


def test_it_goes_where_the_model_expects_much(model):
    """The mean peaks near 0.3, 0.3; a batch of random points would not be so near."""
    best, _ = optimize_dpp(model, BOX, 1, seed=0, strategy=DPP(UCB(beta=0.01)))
    assert (best - 0.3).abs().max() < 0.15
    turned = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=D))
    worst, _ = optimize_dpp(
        model, BOX, 1, seed=0, strategy=DPP(UCB(beta=0.01)), posterior_transform=turned
    )
    assert (worst - 0.3).abs().max() > 0.5


@pytest.mark.parametrize("strategy", ["est-dpp-sample", "lp-ucb", "auto"])
def test_units_of_the_outcome_do_not_matter(strategy):
    X, Y = data()
    small, large = (
        optimize_dpp(SingleTaskGP(X, c * Y), choices=pool(), q=5, seed=0, strategy=strategy)[0]
        for c in (1e-7, 1e5)
    )
    assert torch.equal(small, large)


def test_a_mixed_space_within_bounds_is_rounded_before_the_choice():
    X = torch.cat([data()[0], torch.arange(10, dtype=D)[:, None] % 3], -1)
    mixed = MixedSingleTaskGP(X, data()[1], cat_dims=[2])
    bounds = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 2.0]], dtype=D)

    def rounded(X):
        return torch.cat([X[:, :2], X[:, 2:].round()], -1)

    found, _ = optimize_dpp(mixed, bounds, 6, seed=0, post_processing_func=rounded)
    assert set(found[:, 2].tolist()) <= {0.0, 1.0, 2.0}
    assert len(rows(found)) == 6
    grid = torch.cartesian_prod(*(torch.arange(3, dtype=D),) * 3) / torch.tensor([2.0, 2.0, 1.0])
    chosen, _ = optimize_dpp(mixed, choices=grid, q=27, seed=0)
    assert rows(chosen) == rows(grid)


def test_constraints_and_fixed_columns_are_kept(model):
    under = [(torch.tensor([0, 1]), torch.tensor([-1.0, -1.0], dtype=D), -0.5)]
    found, _ = optimize_dpp(model, BOX, 4, seed=0, inequality_constraints=under)
    assert (found.sum(-1) <= 0.5 + 1e-8).all()
    listed, _ = optimize_dpp(model, choices=pool(), q=4, seed=0, inequality_constraints=under)
    assert (listed.sum(-1) <= 0.5 + 1e-8).all()
    held, _ = optimize_dpp(model, BOX, 4, seed=0, fixed_features={1: 0.75})
    assert (held[:, 1] == 0.75).all()
    assert len(rows(held)) == 4


def test_an_ensemble_and_a_model_in_single_precision():
    X, Y = data()
    many = EnsembleMapSaasSingleTaskGP(X, Y, taus=torch.tensor([0.1, 0.3, 1.0, 2.0]))
    assert len(rows(optimize_dpp(many, BOX, 4, seed=0)[0])) == 4
    with pytest.warns(InputDataWarning, match="double precision"):
        single = SingleTaskGP(X.float(), Y.float())
    found, scores = optimize_dpp(single, BOX, 4, seed=0)
    assert found.dtype == scores.dtype == torch.float
    assert len(rows(found)) == 4


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_a_model_known_by_its_posterior_only():
    """One task of two; what was seen of the other says nothing about the best of this one."""
    X, Y = data()
    tasks = torch.arange(10, dtype=D)[:, None] % 2
    both = MultiTaskGP(torch.cat([X, tasks], -1), Y + tasks, task_feature=-1, output_tasks=[0])
    found, scores = optimize_dpp(both, BOX, 3, seed=0, X_pending=pool(2))
    assert found.shape == (3, 2)
    assert len(rows(found)) == 3
    assert (scores > 0.0).all()


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({}, StrategyError, "either bounds"),
        ({"bounds": BOX, "choices": BOX}, StrategyError, "either bounds"),
        ({"choices": BOX, "fixed_features": {0: 1.0}}, StrategyError, "go with bounds"),
        ({"bounds": BOX, "q": 0}, StrategyError, "at least 1; got 0"),
        ({"bounds": BOX, "q": 1.5}, StrategyError, "whole number of points"),
        ({"bounds": BOX, "strategy": "est-dpp"}, StrategyError, "Did you mean"),
        ({"bounds": BOX[:, :1]}, StrategyError, "2 inputs, and bounds has 1 columns"),
        ({"bounds": BOX.flip(0)}, StrategyError, "the lower ones first"),
        ({"choices": pool(), "strategy": "sobol"}, StrategyError, "needs bounds"),
        ({"choices": pool(2), "q": 3}, ExhaustedError, "asked for 3 points"),
        ({"bounds": BOX, "X_pending": torch.rand(2)}, StrategyError, "X_pending is a tensor"),
    ],
)
def test_wrong_arguments_are_explained(model, arguments, error, reason):
    with pytest.raises(error, match=reason):
        optimize_dpp(model, **arguments)


def test_a_list_of_models_and_several_outcomes_are_refused(model):
    X, Y = data()
    for several in (ModelListGP(model, model), SingleTaskGP(X, torch.cat([Y, Y], -1))):
        with pytest.raises(StrategyError, match=r"one outcome.*posterior_transform"):
            optimize_dpp(several, BOX, 2)


def test_nothing_pending_may_be_said_with_no_rows(model):
    one = optimize_dpp(model, BOX, 2, seed=0, X_pending=BOX[:0])[0]
    assert torch.equal(one, optimize_dpp(model, BOX, 2, seed=0)[0])


def test_a_strategy_that_breaks_its_word_is_caught(model):
    class Twice:
        needs_model = True

        def choose(self, belief, k, rng):
            return [0] * k

    with pytest.raises(StrategyError, match="2 distinct indices"):
        optimize_dpp(model, BOX, 2, strategy=Twice())


def test_a_strategy_sees_the_round_the_data_would_fill(model):
    class Spy:
        needs_model = True

        def choose(self, belief, k, rng):
            seen.append((belief.round, belief.looks, np.isfinite(belief.best)))
            return list(range(k))

    seen: list[tuple[int, int, bool]] = []
    optimize_dpp(model, BOX, 3, strategy=Spy(), X_pending=pool(2))
    assert seen == [(5, 12, True)]


@pytest.mark.parametrize("module", ["", "_belief", "_candidates", "_covariance"])
def test_without_botorch_the_import_says_what_to_install(module):
    code = (
        "import sys; sys.modules['torch'] = sys.modules['botorch'] = None\n"
        f"try: import covey.integrations.botorch{module}\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("this needs botorch: pip install 'covey[botorch]'")


def test_the_example_runs():
    script = ROOT / "examples" / "with_botorch.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("best value")
    assert float(lines[-1].split()[2]) > -0.6  # Branin's maximum, turned, is -0.398


# The set score as an acquisition function


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
