"""Section 3.2 of the paper: greedy DPP maximisation picks what pure exploration picks."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import dpp
from covey.arrays import first_largest
from covey.belief import Belief
from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.policies import EST, UCB, Policy, enough, judge, relevant, without_unlikely
from covey.selection import Selection, is_copy
from covey.strategies import DPP

seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class PureExploration:
    """UCB-PE and EST-PE (Contal et al. 2013): the policy's point, then the largest variances.

    The referee: by variances given the picks before, all of them anew for each, not determinants.
    """

    first: Policy
    needs_model: ClassVar[bool] = True

    def choose(self, belief, k, rng, /):
        """The policy's point, then the largest variance of the region given the picks before."""
        del rng
        judgement = judge(self.first, belief)
        batch = [int(np.argmax(judgement.scores))]
        region = relevant(belief, judgement, at_least=enough(k, len(belief)))
        left = np.setdiff1d(without_unlikely(belief, region, k), batch)
        while len(batch) < k:
            seen = belief.after_looking_at(batch, on=left)
            relative = np.mean([member.var / member.noise for member in seen.members], axis=0)
            batch.append(int(left[first_largest(1.0 + relative)]))
            left = np.setdiff1d(left, batch)
        return Selection(tuple(batch), judgement.width, region)


@pytest.mark.parametrize("policy", [UCB(), UCB(beta=4.0), EST(), EST(estimate="a")], ids=repr)
@given(seed=seeds)
def test_dpp_max_is_pe(make_belief, policy, seed):
    belief, rng = make_belief(seed), np.random.default_rng(0)
    ours = DPP(policy, then="max").choose(belief, 5, rng)
    theirs = PureExploration(policy).choose(belief, 5, rng)
    assert ours.indices == theirs.indices


def test_ties_go_to_the_lowest_index_in_both():
    belief = Belief.dense(np.arange(6.0)[:, None], np.zeros(6), np.eye(6), noise=0.1)
    for strategy in (DPP(UCB(beta=1.0), then="max"), PureExploration(UCB(beta=1.0))):
        assert strategy.choose(belief, 4, np.random.default_rng(0)).indices == (0, 1, 2, 3)


def test_a_draw_is_not_pure_exploration(make_belief):
    """The control: sampling does differ, so the theorem above can fail."""
    belief = make_belief(1)
    theirs = PureExploration(UCB()).choose(belief, 5, np.random.default_rng(0)).indices
    drawn = {DPP(UCB()).choose(belief, 5, np.random.default_rng(i)).indices for i in range(20)}
    assert drawn != {theirs}


@given(seed=seeds)
def test_determinant_is_the_product_of_conditional_variances(make_belief, seed):
    """det((I + P/σ²)_S) = Π_b (1 + σ²(x_b | x_<b)/σ²), in any order of S."""
    belief = make_belief(seed)
    picks = np.random.default_rng(seed).permutation(len(belief))[:5]
    seen, product = belief, 0.0
    for pick in picks:
        product += np.log1p(seen.var[pick] / seen.noise)
        seen = seen.after_looking_at([pick])
    assert dpp.log_determinant(belief.information(), list(picks)) == pytest.approx(
        product, rel=1e-9
    )


@pytest.mark.parametrize("side", [4, 5, 7])
@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_real_ties_go_the_same_way_in_both(side, noise):
    """A symmetric grid around one observation: rounding must not decide between equals."""
    axis = np.linspace(0.0, 1.0, side)
    at = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    data = observe(np.array([[0.5, 0.5]]), np.array([1.0]), np.array([np.nan]))
    for length in (0.2, 0.4):
        belief = condition([Model(Matern52((length, length)), noise)], data).belief(at)
        ours = DPP(UCB(), then="max").choose(belief, 6, np.random.default_rng(0))
        theirs = PureExploration(UCB()).choose(belief, 6, np.random.default_rng(0))
        assert ours.indices == theirs.indices


@pytest.mark.parametrize("policy", [UCB(), EST()], ids=repr)
def test_where_most_rows_are_as_uncertain_as_each_other(policy):
    """The results lie in the middle of a grid, and say nothing of the rest of it."""
    axis = np.linspace(0.0, 1.0, 30)
    rows = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    at = 0.45 + 0.1 * np.random.default_rng(0).random((15, 2))
    data = observe(at, np.sin(7.0 * at).sum(axis=1), np.full(15, np.nan))
    belief = condition((Model(Matern52((0.02, 0.02), 1.0), 1e-2, 0.0),), data).belief(rows)
    ours = DPP(policy, then="max").choose(belief, 20, np.random.default_rng(0))
    theirs = PureExploration(policy).choose(belief, 20, np.random.default_rng(0))
    assert ours.indices == theirs.indices


def test_alike_candidates_are_kept_apart_by_dpp_max_alone(make_belief):
    """What sets the two apart, beside several members: the paper's batches may hold copies."""
    belief = replace(make_belief(0), resolution=np.full(2, 0.3))
    copies = []
    for strategy in (PureExploration(UCB()), DPP(UCB(), then="max")):
        batch = strategy.choose(belief, 4, np.random.default_rng(0)).indices
        copies.append(sum(is_copy(belief, batch[b], batch[:b]) for b in range(4)))
    assert copies == [1, 0]
