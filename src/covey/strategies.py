"""The strategies built on determinantal point processes: the paper's Algorithm 2, and DPP-TS."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Literal

import numpy as np

from covey import dpp
from covey.arrays import Indices
from covey.belief import Belief
from covey.covariance import Covariance
from covey.errors import StrategyError, several
from covey.policies import (
    Policy,
    enough,
    in_words,
    judge,
    relevant,
    weighed_draws,
    without_unlikely,
)
from covey.selection import Selection, crowded, is_copy, laxer

_DRAWN = "drawn with probability in proportion to the determinant"
Method = Literal["auto", "spectral", "mixture", "walk", "swap"]


@dataclass(frozen=True, slots=True)
class DPP:
    """The paper's Algorithm 2: the policy's best point, then a DPP on the relevance region.

    Attributes:
        first: the policy that picks the first point and sets the width.
        then: "max" picks the rest by greedy maximisation, "sample" draws it.
        factor: multiple of the width in the relevance region: 2 in the paper, 1 in Contal's code.
        method: how to sample (see `covey.dpp.prepare`).
        epsilon: total variation that a Markov chain may have.
        seconds: time limit of the draw, about: a Markov chain is then cut short, and the error of
            the selection says so.
    """

    first: Policy
    then: Literal["max", "sample"] = "sample"
    factor: float = 2.0
    method: Method = "auto"
    epsilon: float = 1e-6
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
        """The paper's batch, without repeats: the first point leaves the region (our choice).

        Where the belief has a resolution, a pick that is a copy of another or of a point under way
        is put back. As many are then picked again, given those that stay, among candidates that
        are no copies, so a batch without copies is the paper's.
        """
        judgement = judge(self.first, belief)
        belief = replace(belief, seen_at=None)  # known points may be polished, as in the paper
        taken = crowded(belief, [])
        free = judgement.scores if taken.all() else np.where(taken, -np.inf, judgement.scores)
        batch, least = [int(np.argmax(free))], enough(k, len(belief))  # x_{t,1}, MATH 0.3
        region = without_unlikely(belief, relevant(belief, judgement, self.factor, least), k)  # R⁺
        began, sampler, error = time.perf_counter(), "", 0.0
        reasons = [f"first: {in_words(self.first, judgement.width)}"]
        taken[batch] = True  # of the first draw no more: most draws hold no copies
        while len(batch) < k:
            lacking, left = k - len(batch), int(np.sum(~taken))
            if left < lacking:
                belief = laxer(belief)  # copies are all that is left
                taken = crowded(belief, batch)
                continue
            inside = region[~taken[region]]
            if len(inside) < min(10 * lacking, left):  # copies filled the region
                wanted, others = enough(lacking, len(belief)), np.flatnonzero(~taken)
                wide = relevant(belief, judgement, self.factor, wanted, others)
                inside = without_unlikely(belief, wide, lacking)
                region = np.union1d(region, inside)
            kernel = belief.after_looking_at(batch, on=inside).information()  # MATH 0.5-0.6
            tail, said, off = self._picked(kernel, lacking, rng, began)
            sampler, error = sampler or said, min(1.0, error + off)  # the first has the most picks
            longer = _without_copies(belief, batch, inside[tail].tolist(), self.then)
            how = "picked for the largest determinant" if self.then == "max" else _DRAWN
            how += f" from {several(len(inside), 'relevant candidate')}"
            reasons += [how] * (len(longer) - len(batch))
            batch, taken = longer, crowded(belief, longer)
        return Selection(tuple(batch), judgement.width, region, sampler, error, tuple(reasons))

    def _picked(
        self, kernel: Covariance, k: int, rng: np.random.Generator, began: float
    ) -> tuple[Indices, str, float]:
        """k picks by the kernel's determinant, how they were made, and the error of the draw."""
        if self.then == "max":
            return np.asarray(dpp.maximize(kernel, k), dtype=np.intp), "greedy", 0.0
        sampler, said = self._sampler(kernel, k, began)
        return np.asarray(sampler.draw(rng), dtype=np.intp), said, sampler.error

    def _sampler(self, kernel: Covariance, k: int, began: float) -> tuple[dpp.Sampler, str]:
        """The sampler, cut to the time limit, and its description for the diagnostics."""
        full = dpp.prepare(kernel, k, self.method, epsilon=self.epsilon)
        if not full.steps:
            return full, full.method
        if self.seconds is None:
            return full, f"{full.method}, {full.steps} steps"
        used = dpp.hurried(full, self.seconds - (time.perf_counter() - began))
        cut = f" of {full.steps}, for want of time" if used.steps < full.steps else ""
        return used, f"{full.method}, {used.steps} steps{cut}"


def _without_copies(
    belief: Belief, batch: list[int], picks: list[int], then: Literal["max", "sample"]
) -> list[int]:
    """The batch and the picks that are no copies; of a greedy choice, those before the first copy.

    What is picked greedily after a copy was picked given that copy.
    """
    stay = list(batch)
    for i in picks:
        if not is_copy(belief, i, stay):
            stay.append(i)
        elif then == "max":
            break
    return stay


@dataclass(frozen=True, slots=True)
class DPPThompson:
    r"""DPP-TS (Nava, Mutný & Krause 2022): Thompson draws that repel each other.

    .. math:: P(x_1 \dots x_B) \propto \prod_b p_{\max}(x_b)\, \det(I + \sigma^{-2}\Sigma_{1..B})

    A Metropolis chain: replace one point by a new Thompson draw, and accept with the ratio of
    determinants (p_max cancels; MATH 10). Cost k³ a step beside the draws. Where the belief has a
    resolution, batches with copies have no weight, if there are others.
    """

    steps: int = field(default=50)
    needs_model: ClassVar[bool] = True

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k distinct candidates after ``steps`` proposals."""
        if k == len(belief):
            return Selection(tuple(range(k)))
        draws = weighed_draws(belief, rng, k + self.steps)
        belief = replace(belief, seen_at=None)
        batch: list[int] = []
        for draw in islice(draws, k):
            while (taken := crowded(belief, batch)).all():
                belief = laxer(belief)  # copies are all that is left
            batch.append(int(np.argmax(np.where(taken, -np.inf, draw))))
        kernel, busy = belief.information(), crowded(belief, [])
        value = dpp.log_determinant(kernel, batch)
        for proposal in [int(np.argmax(draw)) for draw in draws]:
            if proposal in batch or busy[proposal]:  # a copy of a point under way
                continue
            trial = list(batch)
            trial[place := int(rng.integers(k))] = proposal
            if is_copy(belief, proposal, [*trial[:place], *trial[place + 1 :]]):
                continue  # a copy: this batch has no weight
            proposed = dpp.log_determinant(kernel, trial)
            if np.log(rng.random()) < proposed - value:  # min(1, det'/det)
                batch, value = trial, proposed
        reasons = ("maximises a draw of f, kept for the determinant of the batch",) * k
        sampler = f"thompson chain, {self.steps} steps"
        return Selection(tuple(batch), sampler=sampler, reasons=reasons)
