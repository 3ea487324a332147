"""The strategies built on determinantal point processes: the paper's Algorithm 2, and DPP-TS."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Literal

import numpy as np

from covey import dpp
from covey.belief import Belief
from covey.covariance import Covariance
from covey.errors import StrategyError
from covey.policies import Policy, enough, judge, relevant, weighed_draws
from covey.selection import Selection, distinct_maxima

_FIRST = "has the largest score of the policy"
Method = Literal["auto", "spectral", "mixture", "walk", "swap"]


@dataclass(frozen=True, slots=True)
class DPP:
    """The paper's Algorithm 2: the policy's best point, then a DPP on the relevance region.

    Attributes:
        first: the policy that picks the first point and sets the width.
        then: "max" picks the rest by greedy maximisation, "sample" draws it.
        factor: multiple of the width in the relevance region: 2 in the paper, 1 in Contal's code.
        method: how to sample (see `covey.dpp.prepare`).
        seconds: time limit of the draw, about: a Markov chain is then cut short, and the error of
            the selection says so.
    """

    first: Policy
    then: Literal["max", "sample"] = "sample"
    factor: float = 2.0
    method: Method = "auto"
    seconds: float | None = None
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.then not in ("max", "sample"):
            raise StrategyError(f'then is "max" or "sample"; got {self.then!r}.')
        if not self.factor > 0.0:
            raise StrategyError(f"factor must be positive; got {self.factor}.")
        if self.seconds is not None and not self.seconds >= 0.0:
            raise StrategyError(f"seconds must be at least 0, or None; got {self.seconds}.")

    def within(self, seconds: float, /) -> DPP:
        """This strategy with a time limit for the draw."""
        return replace(self, seconds=seconds)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """The paper's batch, without repeats: the first point leaves the region (our choice)."""
        judgement = judge(self.first, belief)
        head = int(np.argmax(judgement.scores))  # x_{t,1}, MATH 0.3
        region = relevant(belief, judgement, self.factor, at_least=enough(k, len(belief)))  # R⁺
        if k == 1:
            return Selection((head,), judgement.width, region, reasons=(_FIRST,))
        inside = region[region != head]
        kernel = belief.after_looking_at([head], on=inside).information()  # K_{t,1}, MATH 0.5-0.6
        if self.then == "max":
            tail, sampler, error = dpp.maximize(kernel, k - 1), "greedy", 0.0
        else:
            drawn, sampler = self._sampler(kernel, k - 1)
            tail, error = drawn.draw(rng), drawn.error
        batch = (head, *(int(inside[i]) for i in tail))
        how = "by greedy maximisation of" if self.then == "max" else "by a draw with"
        reasons = (_FIRST, *[f"chosen {how} the determinant, from the relevance region"] * (k - 1))
        return Selection(batch, judgement.width, region, sampler, error, reasons)

    def _sampler(self, kernel: Covariance, k: int) -> tuple[dpp.Sampler, str]:
        """The sampler, cut to the time limit, and its description for the diagnostics."""
        began = time.perf_counter()
        full = dpp.prepare(kernel, k, self.method)
        if not full.steps:
            return full, full.method
        if self.seconds is None:
            return full, f"{full.method}, {full.steps} steps"
        used = dpp.hurried(full, self.seconds - (time.perf_counter() - began))
        cut = f" of {full.steps}, for want of time" if used.steps < full.steps else ""
        return used, f"{full.method}, {used.steps} steps{cut}"


@dataclass(frozen=True, slots=True)
class DPPThompson:
    r"""DPP-TS (Nava, Mutný & Krause 2022): Thompson draws that repel each other.

    .. math:: P(x_1 \dots x_B) \propto \prod_b p_{\max}(x_b)\, \det(I + \sigma^{-2}\Sigma_{1..B})

    A Metropolis chain: replace one point by a new Thompson draw, and accept with the ratio of
    determinants (p_max cancels; MATH 10). Cost k³ a step beside the draws.
    """

    steps: int = field(default=50)
    needs_model: ClassVar[bool] = True

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k distinct candidates after ``steps`` proposals."""
        if k == len(belief):
            return Selection(tuple(range(k)))
        draws = weighed_draws(belief, rng, k + self.steps)
        batch = list(distinct_maxima(islice(draws, k)))
        kernel = belief.information()
        value = dpp.log_determinant(kernel, batch)
        for proposal in [int(np.argmax(draw)) for draw in draws]:
            if proposal in batch:
                continue
            trial = list(batch)
            trial[int(rng.integers(k))] = proposal
            proposed = dpp.log_determinant(kernel, trial)
            if np.log(rng.random()) < proposed - value:  # min(1, det'/det)
                batch, value = trial, proposed
        return Selection(tuple(batch), sampler=f"thompson chain, {self.steps} steps")
