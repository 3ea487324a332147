"""What must not matter: units, the order of candidates, who else is being compared."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import covey
from covey.baselines import Hallucinated, LocalPenalization
from covey.belief import Belief
from covey.catalog import STRATEGIES
from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.policies import EST, UCB, judge
from covey.strategies import DPP

seeds = st.integers(0, 10_000)
SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def f(point):
    return float(np.sin(5 * point["x"]) + point["y"] ** 2)


def third_batch(strategy, scale, *, goal="max", gp=None, sem=None, origin=0.0):
    study = covey.Study(SPACE, goal=goal, strategy=strategy, seed=3, gp=gp)
    for _ in range(2):
        batch = study.ask(4)
        errors = None if sem is None else [sem * abs(scale)] * 4
        study.tell(batch, [origin + scale * f(t.point) for t in batch], sem=errors)
    return [t.point for t in study.ask(4)]


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scaling_the_outcome_leaves_the_batch_unchanged(strategy):
    """Bitwise for a power of two: standardising is exact then."""
    assert third_batch(strategy, 1.0) == third_batch(strategy, 4.0)


def test_a_known_error_scales_along():
    assert third_batch("auto", 1.0, sem=0.1) == third_batch("auto", 8.0, sem=0.1)


def test_a_given_noise_scales_along():
    gp, scaled = covey.GP(noise=0.1), covey.GP(noise=0.4)
    assert third_batch("auto", 1.0, gp=gp) == third_batch("auto", 4.0, gp=scaled)
    assert third_batch("auto", 1.0, gp=gp) != third_batch("auto", 4.0, gp=gp)


@pytest.mark.parametrize("strategy", ["est-dpp-max", "b-est", "lp-ucb"])
def test_any_unit_and_origin_give_the_same_batch_up_to_rounding(strategy):
    plain = third_batch(strategy, 1.0)
    moved = third_batch(strategy, 3.7, origin=11.0)
    for a, b in zip(plain, moved, strict=True):
        assert a == pytest.approx(b, abs=1e-4)


def test_one_observation_with_a_given_noise_has_no_unit():
    """Where outcomes give no scale their size does, so that a change of unit changes nothing."""
    batches = []
    for unit in (1.0, 1024.0):
        study = covey.Study(SPACE, strategy="est-dpp-sample", seed=0, gp=covey.GP(noise=0.1 * unit))
        study.tell(study.ask(1), [3.0 * unit])
        batches.append([t.point for t in study.ask(4)])
    assert batches[0] == batches[1]


def test_minimising_is_maximising_the_negative():
    assert third_batch("auto", 1.0) == third_batch("auto", -1.0, goal="min")


def scaled(belief, c):
    every = np.arange(len(belief))
    return Belief.dense(
        belief.at,
        c * belief.mean,
        c * c * belief.columns(every),
        c * c * belief.noise,
        c * belief.best,
    )


def test_esta_without_standardising_is_not_scale_free(make_belief):
    """The control of the law above: the "+1" in ESTa is in units of the outcome (MATH 12.9)."""
    changed = {"n": 0, "a": 0}
    for seed in range(30):
        belief = make_belief(seed)
        for estimate in changed:
            picks = [np.argmax(EST(estimate).judge(scaled(belief, c)).scores) for c in (1.0, 64.0)]
            changed[estimate] += picks[0] != picks[1]
    assert changed["n"] == 0
    assert changed["a"] > 0


@pytest.mark.parametrize(
    "strategy",
    [
        DPP(UCB(beta=4.0), then="max"),
        DPP(EST(), then="max"),
        Hallucinated(UCB()),
        Hallucinated(EST()),
        LocalPenalization(),
    ],
    ids=repr,
)
@given(seed=seeds)
def test_permuting_the_candidates_permutes_the_answer(make_belief, strategy, seed):
    belief, rng = make_belief(seed), np.random.default_rng(seed)
    order = rng.permutation(len(belief))
    plain = strategy.choose(belief, 4, rng).indices
    permuted = strategy.choose(belief.on(order), 4, rng).indices
    assert [int(order[i]) for i in permuted] == list(plain)


def test_permuting_the_candidates_permutes_the_draws(make_belief):
    """In distribution: counts of the drawn pair under a permutation against the exact law."""
    belief = make_belief(11, n=7)
    strategy = DPP(UCB(), then="sample")
    head = int(np.argmax(judge(UCB(), belief).scores))
    order = np.array([4, 2, 6, 0, 5, 1, 3])
    shuffled = belief.on(order)
    rng = np.random.default_rng(0)
    draws = 3000
    seen = Counter(
        frozenset(int(order[i]) for i in strategy.choose(shuffled, 3, rng).indices)
        for _ in range(draws)
    )
    kernel = belief.after_looking_at([head]).information()
    rest = [i for i in range(7) if i != head]
    pairs = list(itertools.combinations(rest, 2))
    weights = np.array([np.linalg.det(kernel.block(np.array(p), np.array(p))) for p in pairs])
    expected = draws * weights / weights.sum()
    counts = [seen[frozenset({head, *p})] for p in pairs]
    assert sum(counts) == draws
    assert chisquare(counts, expected).pvalue > 1e-3
    # The control: forgetting the permutation is caught.
    wrong = Counter()
    for members, count in seen.items():
        wrong[frozenset(int(np.flatnonzero(order == i)[0]) for i in members)] += count
    mistaken = [wrong[frozenset({head, *p})] for p in pairs]
    assert sum(mistaken) < draws or chisquare(mistaken, expected).pvalue < 1e-3


@pytest.mark.parametrize("policy", [UCB(), EST(), EST(estimate="a")], ids=repr)
@given(seed=seeds)
def test_a_batch_of_one_is_the_sequential_policy(make_belief, policy, seed):
    """B = 1: steps 4 to 7 of the algorithm vanish."""
    belief, rng = make_belief(seed), np.random.default_rng(0)
    alone = int(np.argmax(policy.judge(belief).scores))
    for strategy in (DPP(policy), DPP(policy, then="max")):
        assert strategy.choose(belief, 1, rng).indices == (alone,)
    # Hallucination counts evaluations, not rounds, hence the round.
    belief = replace(belief, round=belief.looks + 1)
    alone = int(np.argmax(policy.judge(belief).scores))
    assert Hallucinated(policy).choose(belief, 1, rng).indices == (alone,)


def test_a_batch_of_one_with_several_members():
    """Sampled hyper-parameters: every method averages the same scores."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        x, y = rng.random((6, 2)), rng.standard_normal(6)
        data = observe(x, y, np.full(6, np.nan))
        models = [Model(Matern52(tuple(rng.uniform(0.1, 1.0, 2)), 1.0), 0.05) for _ in range(5)]
        belief = condition(models, data).belief(rng.random((60, 2)), round=data.looks + 1)
        for policy in (UCB(), EST()):
            alone = int(np.argmax(judge(policy, belief).scores))
            for strategy in (DPP(policy), DPP(policy, then="max"), Hallucinated(policy)):
                assert strategy.choose(belief, 1, rng).indices == (alone,), seed


def test_every_method_starts_from_the_same_first_points():
    """Paired seeds: with nothing told, all model strategies lay out the same design."""
    model = [name for name in STRATEGIES if name != "random"]
    firsts = [[t.point for t in covey.Study(SPACE, strategy=n, seed=5).ask(4)] for n in model]
    assert all(first == firsts[0] for first in firsts)
    other = [t.point for t in covey.Study(SPACE, seed=6).ask(4)]
    assert other != firsts[0]


def test_every_method_starts_from_the_same_rows_of_a_pool():
    pool = covey.Pool(np.random.default_rng(0).random((50, 3)))
    model = [name for name in STRATEGIES if name not in ("random", "sobol")]
    for seed in (0, 1):
        firsts = [[t.point for t in covey.Study(pool, strategy=n, seed=seed).ask(4)] for n in model]
        assert all(first == firsts[0] for first in firsts)
    again = [t.point for t in covey.Study(pool, seed=0).ask(4)]
    assert again != firsts[0]  # of seed 1
