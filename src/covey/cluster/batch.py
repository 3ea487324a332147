"""Batch: a strategy's choice, its long passes over the candidates made by a team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from covey import dpp
from covey.arrays import Indices
from covey.baselines import PureExploration
from covey.belief import Belief
from covey.cluster import afar
from covey.cluster.merge import merge
from covey.cluster.team import Team
from covey.policies import Judgement, enough, judge, relevant
from covey.strategies import DPP, Method, Selection, Strategy

_FEW = 4096  # rows of a region that tell whether its kernel is of low rank (our choice)


def choose(
    strategy: Strategy, belief: Belief, k: int, rng: np.random.Generator, team: Team, checks: int
) -> Selection | Sequence[int]:
    """The batch that the strategy would choose by itself, or one of the same law.

    Most strategies do choose by themselves: what they ask of the belief is worked out by those who
    keep it. Only a DPP on a large region would have columns of the covariance brought here one by
    one, and goes other ways.
    """
    if not isinstance(strategy, DPP | PureExploration) or k <= 2:
        return strategy.choose(belief, k, rng)
    if len(belief.parts) == 1:  # what the policy estimates, it need not estimate twice
        strategy = replace(strategy, first=strategy.first.frozen_at(belief))
    judgement = judge(strategy.first, belief)
    region = relevant(belief, judgement, strategy.factor, at_least=enough(k, len(belief)))
    if len(region) <= afar.HERE:
        return strategy.choose(belief, k, rng)
    if isinstance(strategy, DPP) and strategy.then == "sample":
        method = _method(strategy.method, belief, region, k)
        return replace(strategy, method=method).choose(belief, k, rng)
    if isinstance(strategy, PureExploration) and len(belief.parts) > 1:
        return strategy.choose(belief, k, rng)  # it averages variances, and no kernel has those
    found = _greedy(belief, judgement, region, k, team, checks)
    # Pure exploration gives no name to what it does.
    explores = isinstance(strategy, PureExploration) and found.sampler == "greedy"
    return replace(found, sampler="") if explores else found


def _greedy(
    belief: Belief, judgement: Judgement, region: Indices, k: int, team: Team, checks: int
) -> Selection:
    """DPP-MAX, which is pure exploration too, by core-sets."""
    head = int(np.argmax(judgement.scores))
    inside = region[region != head]
    seen = belief.after_looking_at([head], on=inside)  # K_{t,1}
    found = merge(seen, k - 1, team.region(inside, belief.on([head])), checks)
    sampler = "greedy"
    if found.proven < k - 1:
        sampler = f"greedy on core-sets, the first {found.proven} of {k - 1} picks proven"
    batch = (head, *inside[found.picks].tolist())
    return Selection(batch, judgement.width, region, sampler)


def _method(method: Method, belief: Belief, region: Indices, k: int) -> Method:
    """How to draw from a large region: by the walk at once, if that is what it will come to.

    To try the mixture takes hundreds of columns. Where it fails on a few rows, it fails on all.
    """
    if method != "auto":
        return method
    some = np.linspace(0, len(region) - 1, max(_FEW, 4 * k)).astype(np.intp)
    drawn = dpp.prepare(belief.on(region[some]).information(), k - 1)
    return "walk" if drawn.method == "walk" else "auto"
