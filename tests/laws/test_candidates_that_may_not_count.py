"""A weight on candidates: 1 changes nothing, 0 keeps a candidate out, and bounds stay bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from covey import selection
from covey.belief import Belief
from covey.catalog import STRATEGIES, strategy_of
from covey.policies import (
    EI,
    EST,
    UCB,
    Policy,
    frozen,
    judge,
    relevant,
    weighed,
    weighing,
)
from covey.selection import sequential_greedy
from covey.testing.beliefs import example_belief

MODELLED = [name for name in STRATEGIES if strategy_of(name)[1].needs_model]
POLICIES = [UCB(beta=4.0), UCB(), EST(), EI()]


def halved(belief: Belief) -> Belief:
    """Candidates on the right hardly ever count, those on the left always."""
    return replace(belief, weight=np.where(belief.at[:, 0] > 0.5, 1e-9, 1.0))


def chosen(name: str, belief: Belief, k: int = 5) -> list[int]:
    found = strategy_of(name)[1].choose(belief, k, np.random.default_rng(3))
    return list(getattr(found, "indices", found))


@pytest.mark.parametrize("name", MODELLED)
def test_a_strategy_keeps_away_from_what_does_not_count(name: str) -> None:
    right = left = 0
    for seed in range(4):
        belief = replace(example_belief(400, seed=seed), resolution=np.full(2, 0.01))
        right += int((belief.at[chosen(name, halved(belief)), 0] > 0.5).sum())
        left += int((belief.at[chosen(name, belief), 0] > 0.5).sum())
    assert right == 0
    assert left > 0  # the control: without a weight some of each batch lies there


@pytest.mark.parametrize("name", MODELLED)
def test_the_order_of_two_sure_candidates_is_that_without_a_weight(name: str) -> None:
    belief = example_belief(200, seed=5)
    sure = replace(belief, weight=np.ones(200))
    assert chosen(name, sure) == chosen(name, belief)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_weighed_scores_rise_with_the_weight_and_with_the_score(policy: Policy) -> None:
    belief = example_belief(300)
    plain = judge(policy, belief).scores
    before = np.full(300, -np.inf)
    for p in (0.0, 0.01, 0.3, 0.9, 1.0):
        scores = judge(policy, replace(belief, weight=np.full(300, p))).scores
        assert np.isfinite(scores).all()
        assert (scores >= before).all()
        assert (np.diff(scores[np.argsort(plain)]) >= -1e-12).all()
        before = scores


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_an_earlier_weighed_score_is_an_upper_bound(policy: Policy) -> None:
    rng = np.random.default_rng(0)
    belief = replace(example_belief(300), weight=rng.random(300))
    [fixed] = frozen(policy, belief)
    score = weighing(lambda seen: fixed.judge(seen).scores, belief, fixed)
    later = belief.after_looking_at([3, 70, 200])
    assert (score(later) <= score(belief) + 1e-12).all()
    few = rng.choice(300, 20, replace=False)
    assert np.array_equal(score(replace(later.on(few), shortlisted_from=300)), score(later)[few])


def test_a_short_list_finds_what_all_candidates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    belief = replace(example_belief(3000), weight=rng.random(3000))
    score = weighing(lambda seen: seen.mean + 2.0 * seen.std, belief)
    first = int(np.argmax(score(belief)))
    everybody = sequential_greedy(belief, first, 12, score)
    monkeypatch.setattr(selection, "_LEAST", 300)
    monkeypatch.setattr(selection, "_LISTED", 300)
    assert sequential_greedy(belief, first, 12, score) == everybody


def test_scores_below_the_lowest_are_not_raised_by_a_small_weight() -> None:
    belief = replace(example_belief(2), weight=np.array([0.01, 1.0]))
    scores = weighed(np.array([-2.0, -1.0]), belief, lowest=0.0)
    assert np.argmax(scores) == 1


def test_the_region_holds_what_may_count_and_be_the_maximum() -> None:
    belief = example_belief(400)
    judgement = judge(UCB(beta=4.0), belief)
    region, part = relevant(belief, judgement), relevant(halved(belief), judgement)
    assert (belief.at[region, 0] > 0.5).any()
    assert not (belief.at[part, 0] > 0.5).any()


def test_a_weight_goes_along_with_its_candidates() -> None:
    belief = replace(example_belief(30), weight=np.linspace(0.0, 1.0, 30))
    assert belief.weight is not None
    keep = [7, 2, 20]
    for part in (belief.on(keep), belief.after_looking_at([1], on=keep)):
        assert part.weight is not None
        assert np.array_equal(part.weight, belief.weight[keep])
    assert belief.after_looking_at([1]).weight is belief.weight
