"""Haste: what an ask leaves out to end in time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from covey.candidates import Candidates
from covey.cost import Size, affordable
from covey.resources import Resources
from covey.strategies import DPP, Strategy

_SHARE = 0.7  # of the time left goes to looking at candidates; the rest is for choosing
# Candidates of a first batch, which has to be spread out and knows no more: of a million rows these
# are spread out as well as all of them. (Our choice.)
FIRST = 50_000
_LEAST = 2000  # candidates are looked at in any case, and ten for each point of the batch


def thin(candidates: Candidates, most: int, rng: np.random.Generator) -> Candidates:
    """So many of them at random, if there are more."""
    if most >= len(candidates):
        return candidates
    return candidates.some(np.sort(rng.choice(len(candidates), most, replace=False)))


@dataclass(frozen=True)
class Haste:
    """Seconds that an ask may take, and when it began. Without a limit nothing is left out."""

    use: Resources
    began: float = field(default_factory=time.perf_counter)

    @property
    def left(self) -> float:
        """Seconds; none is fewer than none."""
        if self.use.seconds is None:
            return math.inf
        return max(0.0, self.use.seconds - (time.perf_counter() - self.began))

    def thinned(self, candidates: Candidates, size: Size, rng: np.random.Generator) -> Candidates:
        """As many of them, at random, as can be looked at in time on the host."""
        if self.use.seconds is None or not self.use.on_host:
            return candidates
        most = max(_LEAST, 10 * size.batch, affordable(size, _SHARE * self.left))
        return thin(candidates, most, rng)

    def quicken(self, strategy: Strategy) -> Strategy:
        """The strategy with the time that is left, if it knows what to do with it."""
        if self.use.seconds is None or not isinstance(strategy, DPP):
            return strategy
        return replace(strategy, seconds=self.left)
