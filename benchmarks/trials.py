"""Strategies that were tried for the default, by the name under which results are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from covey import catalog, dpp
from covey.arrays import Array, Indices
from covey.baselines import Hallucinated
from covey.belief import Belief
from covey.learn import RESOLUTION
from covey.policies import EST, UCB, Judgement, Policy, Restless, best_known
from covey.selection import Selection, Strategy, crowded, sequential_greedy
from covey.spread import SpreadUCB, promising_count, scoring


def copies(at: np.ndarray, share: float = RESOLUTION) -> int:
    """Points of a batch (k, d), encoded, that are copies of another of it."""
    gaps = np.abs(at[:, None] - at).max(axis=2) + np.eye(len(at))
    return int((gaps.min(axis=1) < share).sum())


_LAST = -1e9  # a score below all others, in standard deviations of the outcomes


@dataclass(frozen=True, slots=True)
class ResolvingUCB:
    r"""Decision 17: UCB in which candidates whose value is known to within ε come last.

    .. math:: s(x) = \mu(x) + \sqrt\beta\, \sigma(x) \quad\text{where}\quad
              \sqrt\beta\, \sigma(x) > \epsilon \quad\text{or}\quad s(x) > m + \epsilon

    m is the largest mean at the observed points, ε the resolution: a value known to within ε is not
    worth an observation, unless its upper bound exceeds m + ε. So a batch does not fill up with
    near copies of one maximum; its points move to the best place that is not resolved yet. A score
    only falls as σ falls.

    Attributes:
        beta: β, a constant.
        resolution: ε, in standard deviations of the outcomes.
    """

    beta: float = 4.0
    resolution: float = 1e-2

    def judge(self, belief: Belief, /) -> Judgement:
        """Scores s; resolved candidates are below all others, in order of decreasing σ."""
        best, width = best_known(belief), math.sqrt(self.beta)
        band = width * belief.std
        upper = belief.mean + band
        worth = (band > self.resolution) | (upper > best + self.resolution)
        scores = np.where(worth, upper, _LAST - 1.0 / belief.std)
        return Judgement(scores, width, width)


@dataclass(frozen=True, slots=True)
class Spread:
    """Every variant of the trials, by its knobs; `covey.spread` is what came of it."""

    width: float | None = None
    epsilon: float = 1e-2
    drawn: float = 0.0
    region: int = 10
    region_width: float = 2.0
    scouts: float = 0.0  # share of the batch by the scout, beside the first
    dissent: float = 0.0  # share of the batch, where parameters have levels
    dissent_width: float = 2.0
    tight: float = 0.0  # share of the candidates a dissenter is drawn from; 0: the best
    worth: float = 0.0  # gain below which a pick is not worth it, for spaces with levels
    rest: float = 0.0  # the same for spaces without
    rest_most: float = 1.0  # share of a batch, of those that are not
    reach: float = 1e-2
    gain: float = 1e-3
    scout: Policy | None = None
    scout_width: float = 2.0
    design: int = 10
    needs_model: ClassVar[bool] = True

    def ready(self, values: Array, width: int, /) -> bool:
        """As `Hallucinated` does."""
        return Hallucinated(UCB(), design=self.design).ready(values, width)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:  # noqa: C901, PLR0915 - a bench of knobs
        """Bounds in turn; then scouts, dissenters and a draw, as many as the knobs say."""
        d = belief.at.shape[1]
        width = 1.0 + 2.0 / d if self.width is None else self.width
        beta = width**2
        bound = ResolvingUCB(beta, self.epsilon) if self.epsilon else UCB(beta)
        usual = scoring(bound, belief)
        restless = Restless(max(width, self.scout_width) ** 2, self.gain, self.reach)
        scout = scoring(self.scout or restless, belief)
        first = scout(replace(belief, round=belief.looks + 1)).copy()
        taken = crowded(belief, [])
        if not taken.all():
            first[taken] = -np.inf
        dissenters = 0
        if belief.levels:
            dissenters = min(k - 1, int(self.dissent * k + rng.random()))
        lead = max(1, k - round(self.drawn * k) - round(self.scouts * k) - dissenters)
        batch = sequential_greedy(belief, int(np.argmax(first)), lead, usual)
        scouts = min(k - lead, round(self.scouts * k))
        gain = self.worth if belief.levels else self.rest
        if gain:
            kept = promising_count(belief, batch, width, gain)
            if belief.levels:
                dissenters += len(batch) - kept
            else:
                kept = max(kept, len(batch) - round(self.rest_most * k))
                scouts += len(batch) - kept
            batch = batch[:kept]
        for _ in range(scouts):
            seen = belief.after_looking_at(batch)
            s = scout(seen).copy()
            s[crowded(belief, batch)] = -np.inf
            batch.append(int(np.argmax(s)))
        if dissenters:
            batch = self._dissent(belief, batch, dissenters, rng)
        left = k - len(batch)
        if left == 0:
            return Selection(tuple(batch), width)
        seen = belief.after_looking_at(batch)
        wide = scoring(ResolvingUCB(self.region_width**2, self.epsilon or 1e-9), belief)
        region = distinct(belief, wide(seen), batch, self.region * left)
        if len(region) <= left:
            return Selection(tuple(sequential_greedy(belief, batch[0], k, usual)), width)
        drawn = dpp.prepare(seen.on(region).information(), left).draw(rng)
        return Selection((*batch, *(int(region[i]) for i in drawn)), width, region)

    def _dissent(
        self, belief: Belief, lead: list[int], count: int, rng: np.random.Generator
    ) -> list[int]:
        score = scoring(UCB(self.dissent_width**2), belief)
        order, batch = rng.permutation(len(belief.levels)), list(lead)
        for turn in range(count):
            values = belief.at[:, belief.levels[order[turn % len(order)]]]
            usual, counts = np.unique(values[lead], axis=0, return_counts=True)
            before = batch[len(lead) + turn % len(order) :: len(order)]
            seen = belief.after_looking_at(batch)
            scores = np.where(crowded(belief, batch), -np.inf, score(seen))
            other = scores.copy()
            for value in (usual[np.argmax(counts)], *values[before]):
                other[(np.abs(values - value) < 1e-9).all(axis=1)] = -np.inf
            if other.max() == -np.inf:
                other = scores
            among = np.flatnonzero(other > -np.inf)
            most = max(20, round(self.tight * len(among))) if self.tight else 1
            best = among[np.argsort(-other[among], kind="stable")[:most]]
            weights = seen.var[best] + seen.noise
            batch.append(int(rng.choice(best, p=weights / weights.sum())))
        return batch


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


STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "auto-0.1": lambda: Hallucinated(UCB(beta=4.0), scout=Restless()),
    "auto-0.2": lambda: Hallucinated(ResolvingUCB(), scout=Restless(), design=10),
    "width-1.5": lambda: Hallucinated(UCB(beta=2.25), scout=Restless(), design=10),
    "apart-2": lambda: Spread(width=2.0, epsilon=0.0),
    "apart-d": lambda: Spread(epsilon=0.0),
    "resolving-d": Spread,
    "half-d": lambda: Spread(drawn=0.5),
    "third-d": lambda: Spread(drawn=0.3),
    "scouts-25": lambda: Spread(epsilon=0.0, scouts=0.25),
    "scouts-50": lambda: Spread(epsilon=0.0, scouts=0.5),
    "scouts-50-r.1": lambda: Spread(epsilon=0.0, scouts=0.5, reach=0.1),
    "scouts-50-r.3": lambda: Spread(epsilon=0.0, scouts=0.5, reach=0.3, gain=0.01),
    "scouts-50-est": lambda: Spread(epsilon=0.0, scouts=0.5, scout=EST()),
    "scouts-25-est": lambda: Spread(epsilon=0.0, scouts=0.25, scout=EST()),
    "scouts-50-w3": lambda: Spread(epsilon=0.0, scouts=0.5, scout_width=3.0),
    "apart-3": lambda: Spread(epsilon=0.0, width=3.0),
    "drawn-25-w3": lambda: Spread(epsilon=1e-3, drawn=0.25, region=20, region_width=3.0),
    "drawn-50-w3": lambda: Spread(epsilon=1e-3, drawn=0.5, region=20, region_width=3.0),
    "dissent-25": lambda: Spread(epsilon=0.0, dissent=0.25),
    "dissent-40": lambda: Spread(epsilon=0.0, dissent=0.4),
    "dissent-40-w3": lambda: Spread(epsilon=0.0, dissent=0.4, dissent_width=3.0),
    "dissent-60": lambda: Spread(epsilon=0.0, dissent=0.6),
    "dissent-40-t02": lambda: Spread(epsilon=0.0, dissent=0.4, tight=0.02),
    "dissent-40-t10": lambda: Spread(epsilon=0.0, dissent=0.4, tight=0.1),
    "dissent-40-t50": lambda: Spread(epsilon=0.0, dissent=0.4, tight=0.5),
    "worth-3": lambda: Spread(epsilon=0.0, dissent=0.25, tight=0.05, worth=1e-3),
    "worth-2": lambda: Spread(epsilon=0.0, dissent=0.25, tight=0.05, worth=1e-2),
    "worth-2-w3": lambda: Spread(
        epsilon=0.0, dissent=0.25, tight=0.05, worth=1e-2, dissent_width=3.0
    ),
    "worth-3-40": lambda: Spread(epsilon=0.0, dissent=0.4, tight=0.05, worth=1e-3),
    "worth-2-40": lambda: Spread(epsilon=0.0, dissent=0.4, tight=0.05, worth=1e-2),
    "worth-2-40-w3": lambda: Spread(
        epsilon=0.0, dissent=0.4, tight=0.05, worth=1e-2, dissent_width=3.0
    ),
    "apart-d2": lambda: Spread(epsilon=0.0),
    "rest-3": lambda: Spread(epsilon=0.0, rest=1e-3),
    "apart-d3": lambda: Spread(epsilon=0.0),
    "rest-3-q": lambda: Spread(epsilon=0.0, rest=1e-3, rest_most=0.25),
    "rest-4": lambda: Spread(epsilon=0.0, rest=1e-4),
    "seen-1": lambda: SpreadUCB(explore=0.0),
    "seen-10": SpreadUCB,
    "seen-20": lambda: SpreadUCB(explore=0.2),
    "auto": catalog.STRATEGIES["auto"],
    "spread-ucb": catalog.STRATEGIES["spread-ucb"],
}
