"""Batches that differ: upper bounds in turn, none a copy of another, and a part drawn by a DPP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from covey import dpp
from covey.arrays import Array, Indices
from covey.baselines import Hallucinated, crowded, in_turn
from covey.belief import Belief
from covey.policies import Policy, ResolvingUCB, Restless, UCB, judge
from covey.strategies import Selection


@dataclass(frozen=True, slots=True)
class Spread:
    """Experimental."""

    width: float | None = None
    epsilon: float = 1e-2
    drawn: float = 0.0
    region: int = 10
    region_width: float = 2.0
    scouts: float = 0.0  # share of the batch by the scout, beside the first
    coarse: float = 0.0  # share of the range apart, for the rest of the batch
    design: int = 10
    needs_model: ClassVar[bool] = True

    def ready(self, values: Array, width: int, /) -> bool:
        return Hallucinated(UCB(), design=self.design).ready(values, width)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        d = belief.at.shape[1]
        width = 1.0 + 2.0 / d if self.width is None else self.width
        usual = _scoring(ResolvingUCB(width**2, self.epsilon) if self.epsilon else UCB(width**2), belief)
        scout = _scoring(Restless(max(width, 2.0) ** 2), belief)
        first = scout(replace(belief, round=belief.looks + 1)).copy()
        taken = crowded(belief, [])
        if not taken.all():
            first[taken] = -np.inf
        lead = max(1, k - round(self.drawn * k) - round(self.scouts * k))
        batch = in_turn(belief, int(np.argmax(first)), lead, usual)
        scouts = min(k - lead, round(self.scouts * k))
        for _ in range(scouts):
            seen = belief.after_looking_at(batch)
            s = scout(seen).copy()
            s[crowded(belief, batch)] = -np.inf
            batch.append(int(np.argmax(s)))
        left = k - len(batch)
        if left == 0:
            return Selection(tuple(batch), width)
        seen = belief.after_looking_at(batch)
        region = distinct(belief, _scoring(ResolvingUCB(self.region_width**2, self.epsilon), belief)(seen), batch, self.region * left)
        if len(region) <= left:
            return Selection(tuple(in_turn(belief, batch[0], k, usual)), width)
        drawn = dpp.prepare(seen.on(region).information(), left).draw(rng)
        return Selection((*batch, *(int(region[i]) for i in drawn)), width, region)


def distinct(belief: Belief, scores: Array, batch: list[int], most: int) -> Indices:
    """The highest scores that are copies neither of the batch nor of each other."""
    free = ~crowded(belief, batch)
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if free[i]:
            kept.append(int(i))
            if len(kept) == most:
                break
            free[belief.copies_of(belief.at[[i]])] = False
    return np.array(kept, dtype=np.intp)


def _scoring(policy: Policy, belief: Belief) -> Callable[[Belief], Array]:
    """Scores of candidates, what the policy estimates fixed by the belief before the batch."""
    frozen = [policy.frozen_at(member) for member in belief.members]
    return lambda seen: np.mean(
        [p.judge(m).scores for p, m in zip(frozen, seen.members, strict=True)], axis=0
    )
