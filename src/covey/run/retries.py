"""Retries: how often an evaluation is tried again, and after how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from covey.errors import StrategyError
from covey.run.task import OutcomeStatus

_LONGEST = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to try again what was lost (the machine's fault), timed out, or failed.

    The n-th retry waits for ``wait`` * 2^(n-1) seconds, at most 60, of which a random half is left
    out so that many evaluations that died together do not come back together.

    >>> Retries(lost=1).left("lost", used=0), Retries(lost=1).left("lost", used=1)
    (True, False)
    """

    lost: int = 3
    timed_out: int = 0
    failed: int = 0
    wait: float = 0.5

    def __post_init__(self) -> None:
        for name in ("lost", "timed_out", "failed"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise StrategyError(f"retries: {name} must be a whole number >= 0; got {number!r}.")
        if not isinstance(self.wait, int | float) or not 0.0 <= self.wait < math.inf:
            raise StrategyError(f"retries: wait must be a number of seconds; got {self.wait!r}.")

    def left(self, status: OutcomeStatus, used: int) -> bool:
        """Whether one that ended so may be tried again, having been tried again ``used`` times."""
        allowed = {"lost": self.lost, "timed-out": self.timed_out, "failed": self.failed}
        return used < allowed.get(status, 0)

    def delay(self, used: int, rng: np.random.Generator) -> float:
        """Seconds before the next retry."""
        longest = min(_LONGEST, self.wait * 2.0 ** min(used, 32))
        return longest * float(rng.uniform(0.5, 1.0))
