"""Information: the chain rule, what imagined looks do, and bounds on what can be learnt."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.kathuria2016.bounds import information_capacity

import covey
from covey.diagnostics import certificate, explain, information_gain, repulsive_share
from covey.gp import Warp
from covey.kernels import Matern52
from covey.learn import understand
from covey.policies import UCB
from covey.selection import Selection
from covey.strategies import DPP

seeds = st.integers(0, 10_000)


@given(seed=seeds)
def test_chain_rule_of_information(make_belief, seed):
    """½ log det(I + Σ_S/σ²) = Σ_i ½ log(1 + σ²(x_i | x_<i)/σ²)."""
    belief = make_belief(seed)
    seen, total = belief, 0.0
    for pick in (3, 7, 11, 19):
        total += 0.5 * np.log1p(seen.var[pick] / seen.noise)
        seen = seen.after_looking_at([pick])
    assert information_gain(belief, [3, 7, 11, 19]) == pytest.approx(total, rel=1e-9)


@given(seed=seeds)
def test_shrinking_of_the_band_is_the_information(make_belief, seed):
    """sd before / sd after a set of looks = exp(I(f(x); y_S)) (MATH section 4, GP-BUCB)."""
    belief = make_belief(seed)
    looks = [2, 5, 9]
    after = belief.after_looking_at(looks)
    for x in (0, 17):
        # I(f(x); y_S) = ½ log det(Σ_SS + σ²) - ½ log det(Σ_SS|x + σ²), written out by hand.
        columns = belief.columns([*looks, x])
        joint = columns[[*looks, x]]
        noisy = joint[:3, :3] + belief.noise * np.eye(3)
        given_x = noisy - np.outer(joint[:3, 3], joint[3, :3]) / joint[3, 3]
        information = 0.5 * (np.linalg.slogdet(noisy)[1] - np.linalg.slogdet(given_x)[1])
        ratio = belief.std[x] / after.std[x]
        assert ratio == pytest.approx(math.exp(information), rel=1e-8)


@given(seed=seeds)
def test_looking_leaves_the_mean_and_a_positive_covariance(make_belief, seed):
    belief = make_belief(seed)
    after = belief.after_looking_at([1, 2, 3])
    every = np.arange(len(belief))
    assert np.array_equal(after.mean, belief.mean)
    assert np.all(after.var <= belief.var + 1e-12)
    assert np.linalg.eigvalsh(after.columns(every)).min() > -1e-9


@given(seed=seeds)
def test_looking_at_several_is_looking_one_by_one(make_belief, seed):
    belief = make_belief(seed)
    at_once = belief.after_looking_at([4, 8, 12])
    one_by_one = belief.after_looking_at([4]).after_looking_at([8]).after_looking_at([12])
    every = np.arange(len(belief))
    np.testing.assert_allclose(at_once.columns(every), one_by_one.columns(every), atol=1e-12)


def test_greedy_information_brackets_the_best(make_belief):
    """G ≤ γ ≤ G/(1 - 1/e), γ by enumeration."""
    for seed in range(5):
        belief = make_belief(seed, n=12)
        low, high = information_capacity(belief, 3)
        best = max(information_gain(belief, s) for s in itertools.combinations(range(12), 3))
        assert low <= best + 1e-12
        assert best <= high


def test_certificate_holds_for_functions_inside_the_band(make_belief):
    """Whatever f lies within μ ± wσ, no chosen point's regret exceeds its certificate."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        belief = make_belief(seed)
        promised = certificate(belief, 2.0, [0, 5, 9])
        f = belief.mean + belief.std * rng.uniform(-2.0, 2.0, (500, len(belief)))
        regret = f.max(axis=1, keepdims=True) - f[:, [0, 5, 9]]
        assert np.all(regret <= promised + 1e-12)
        # The control: half the width promises too much.
        assert np.any(regret > certificate(belief, 1.0, [0, 5, 9]))


class Bent(NamedTuple):
    """A batch where outcomes were bent, judged by a log-normal f."""

    inside: bool  # whether f lies in the band at every candidate
    regret: float  # the largest of the batch
    certificate: float
    clipped: float  # what it would be with bounds clipped to near what was seen


def bent_round(seed: int) -> Bent:
    rng = np.random.default_rng(seed)
    at = rng.uniform(size=(300, 2))
    root = np.linalg.cholesky(Matern52((0.3, 0.3), 1.0)(at, at) + 1e-8 * np.eye(300))
    f = np.exp(1.5 * root @ rng.normal(size=300))
    theorem = DPP(UCB("theory"), then="max")
    study = covey.Study(covey.Pool(at), seed=seed, strategy=theorem)
    first = rng.permutation(300)[:12]
    study.add([{"x0": at[i, 0], "x1": at[i, 1]} for i in first], [f[i] for i in first])
    posterior = understand(study.history, study.recipe, np.random.default_rng(0))
    batch = [tuple(trial.point.values()) for trial in study.ask(4)]
    chosen = [i for i, x in enumerate(at.tolist()) if tuple(x) in batch]
    data, belief = posterior.data, posterior.belief(at)
    reach = study.diagnostics.width * belief.std
    bent = data.warp.transform((f - data.shift) / data.scale)
    low, high = (posterior.outcome(belief.mean + side * reach) for side in (-1.0, 1.0))
    return Bent(
        bool(np.all(np.abs(bent - belief.mean) <= reach + 1e-9)),
        float(f.max() - f[chosen].min()),
        study.diagnostics.certificate,
        float(high.max() - low[chosen].min()),
    )


def test_the_certificate_holds_where_outcomes_were_bent():
    """In all of 30 rounds; the control, a ceiling clipped to near what was seen, does not hold."""
    inside = [found for found in map(bent_round, range(30)) if found.inside]
    assert len(inside) >= 10
    assert all(found.regret <= found.certificate for found in inside)
    assert sum(found.regret > found.clipped for found in inside) >= 3


def test_a_bend_without_a_way_back_promises_nothing(make_belief):
    """Below the least that the bend can come to, any outcome is possible."""
    warp = Warp(3.0)
    told = explain(make_belief(0), Selection((0,), width=50.0), "ucb", warp.undone, {})
    assert told.certificate == math.inf


def test_repulsive_share_is_the_expected_size_of_the_repulsive_part(make_belief):
    """E|T| over T ⊆ S with weights det(A_T), by enumeration, as a share of |S|."""
    belief = make_belief(2, n=10, noise=0.3)
    chosen = [0, 3, 6, 8]
    a = belief.columns(chosen)[chosen] / belief.noise
    weights, sizes = [], []
    for size in range(5):
        for subset in itertools.combinations(range(4), size):
            weights.append(np.linalg.det(a[np.ix_(subset, subset)]) if subset else 1.0)
            sizes.append(size)
    expected = np.dot(weights, sizes) / np.sum(weights)
    assert repulsive_share(belief, chosen) == pytest.approx(expected / 4, rel=1e-9)
