"""The strategies the paper compares with, and two that need no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from covey.arrays import TIE, Array, Indices, Mask, first_largest, host, log_normal_cdf
from covey.belief import Belief
from covey.dpp.kernel import largest
from covey.policies import (
    EST,
    UCB,
    Judgement,
    Policy,
    Restless,
    enough,
    judge,
    only_falls,
    relevant,
)
from covey.strategies import Selection, distinct_maxima

# Candidates picked in turn, each imagined seen before the next, seldom looking at all of them.
#
# A score that only falls as looks are imagined need not be kept up to date for every candidate:
# what it was is a bound on what it is (Minoux 1978). So the best few thousand are followed
# closely, for as long as the best of them is above the bound of every other.

_LEAST, _PER_PICK = 8192, 16  # candidates on the list, at least and for each pick (our choice)


def in_turn(
    belief: Belief,
    first: int | Sequence[int],
    k: int,
    score: Callable[[Belief], Array],
    size: int | None = None,
) -> list[int]:
    """The candidate ``first``, or several; then, up to k, the largest scores given those before.

    ``score`` may depend on the belief's round, which counts looks here, and must not rise as the
    covariance falls or the round is earlier; of one that may, ``size`` has to be all candidates.

    Where the belief has a resolution, none is a copy of another or of a point under way, for as
    long as there are others.
    """
    batch = [first] if isinstance(first, int) else list(first)
    size = max(_LEAST, _PER_PICK * k) if size is None else size
    while len(batch) < k:
        seen = belief.after_looking_at(batch)
        # The widest the policy will be in this batch bounds all it will be.
        bounds = np.array(score(replace(seen, round=belief.looks + k)))
        bounds[crowded(belief, batch)] = -np.inf
        if belief.resolution is not None and not (bounds > -np.inf).any():
            belief = replace(belief, resolution=None)  # copies are all that is left
            continue
        listed = _best(bounds, size)
        some = seen if len(listed) == len(seen) else seen.on(listed)
        now = belief.looks + len(batch) + 1
        some = replace(some, round=now, shortlisted_from=belief.offered)
        rest = _Rest(bounds, listed)
        picks = _follow(some, bounds[listed] > -np.inf, rest, score, k - len(batch))
        batch += [int(listed[i]) for i in picks]
        if not picks:  # the bounds are loose: follow more of them
            size *= 2
    return batch


def crowded(belief: Belief, batch: Sequence[int]) -> Mask:
    """Candidates that are in the batch, or copies of one in it or of a point under way."""
    taken = belief.copies_of(belief.at[list(batch)])
    if belief.under_way is not None:
        taken |= belief.copies_of(belief.under_way)
    taken[list(batch)] = True
    return taken


class _Rest:
    """The candidates that are not on the list, of whom no more is known than bounds."""

    def __init__(self, bounds: Array, listed: Indices) -> None:
        self._listed = listed
        self._bounds = bounds.copy()
        self._bounds[listed] = -np.inf
        self._most = float(self._bounds.max())

    def may_win(self, place: int, score: float) -> bool:
        """Whether one of them may come before this place of the list, which has this score.

        Scores that agree to a billionth are equal, and then the first of all candidates wins.
        """
        level = score - TIE * abs(score)
        if self._most < level:
            return False
        rivals = np.flatnonzero(self._bounds >= level)
        return self._most > score + TIE * abs(score) or bool(rivals[0] < self._listed[place])


def _follow(
    seen: Belief, free: Mask, rest: _Rest, score: Callable[[Belief], Array], most: int
) -> list[int]:
    """Picks in turn, up to ``most``, while none of the rest may come before them."""
    picks: list[int] = []
    while len(picks) < most and free.any():
        scores = np.where(free, score(seen), -np.inf)
        i = first_largest(scores)
        if rest.may_win(i, float(scores[i])):
            break
        picks.append(i)
        free[i] = False
        free[seen.copies_of(seen.at[[i]])] = False
        seen = replace(seen.after_looking_at([i]), round=seen.round + 1)
    return picks


def _best(bounds: Array, size: int) -> Indices:
    """Indices of the largest bounds, in order; of equal ones the first."""
    if len(bounds) <= 2 * size:
        return np.arange(len(bounds))
    return np.sort(largest(bounds, size))


@dataclass(frozen=True, slots=True)
class PureExploration:
    """UCB-PE and EST-PE (Contal et al. 2013): after the policy's point, the largest variance.

    Written as pure exploration, so that "DPP-MAX is PE" is a theorem and not a definition.
    """

    first: Policy
    factor: float = 2.0
    needs_model: ClassVar[bool] = True

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """Look at the most uncertain point of the region, imagine it observed, repeat."""
        del rng
        judgement = judge(self.first, belief)
        head = int(np.argmax(judgement.scores))
        region = relevant(belief, judgement, self.factor, at_least=enough(k, len(belief)))
        among = np.union1d(region, [head])
        first = int(np.searchsorted(among, head))
        belief = replace(belief, resolution=None)  # the paper's batches may hold copies
        batch = in_turn(belief.on(among), first, k, lambda seen: 1.0 + _relative_variance(seen))
        return Selection(tuple(among[batch].tolist()), judgement.width, region)


@dataclass(frozen=True, slots=True)
class Hallucinated:
    """GP-BUCB and B-EST (the paper's Algorithm 1): the mean frozen, the covariance updated.

    Attributes:
        first: UCB() gives BUCB, EST() gives B-EST.
        widen: C', by which the width is multiplied (practice: 1).
        budget: C of the two-stage initialisation: until what a batch can still learn is at most C,
            choose by variance alone; then C' = exp(C). None: no initialisation (practice).
        scout: another policy, for the first point of each batch only.
        design: results to wait for, but no more than two for each encoded input; until then, and
            while all of them are equal, points fill the space instead. 1: begin with the first
            result, whatever it is (the paper).
    """

    first: Policy
    widen: float = 1.0
    budget: float | None = None
    scout: Policy | None = None
    design: int = 1
    needs_model: ClassVar[bool] = True

    def ready(self, values: Array, width: int, /) -> bool:
        """Whether results (n,) of points with so many encoded inputs say enough for a model."""
        return enough_results(values, width, self.design)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """One point at a time, each imagined at its mean before the next."""
        del rng
        belief = replace(belief, resolution=None)  # the paper's batches may hold copies
        exploring = self.budget is not None and _can_learn(belief, k) > self.budget
        widen = self.widen if self.budget is None else math.exp(self.budget)

        def scoring(policy: Policy) -> Callable[[Belief], tuple[Array, float]]:
            frozen = [policy.frozen_at(member) for member in belief.members]
            return lambda seen: _scores(seen, frozen, widen, exploring=exploring)

        usual = scoring(self.first)
        leader = usual if self.scout is None else scoring(self.scout)
        # t counts evaluations here, not batches (the paper's fb[t]).
        scores, width = leader(replace(belief, round=belief.looks + 1))
        # C' times EST's ν, which is a minimum over candidates and rises as they are looked at.
        moving = widen != 1.0 and isinstance(self.first, EST | Restless)
        bounded = exploring or (only_falls(self.first) and not moving)
        size = None if bounded else len(belief)
        batch = in_turn(belief, int(np.argmax(scores)), k, lambda seen: usual(seen)[0], size)
        return Selection(tuple(batch), width)


def enough_results(values: Array, width: int, design: int) -> bool:
    """Whether results (n,) are ``design``, or two for each encoded input, and not all equal.

    From one or two results, or from equal ones, a fit reads "flat": it would sit in corners.
    """
    if design <= 1:
        return True
    return len(values) >= min(design, 2 * width) and not _all_equal(values)


def _all_equal(values: Array) -> bool:
    """Whether results differ by no more than rounding."""
    most = float(np.abs(values).max())
    return most == 0.0 or float(np.ptp(values / most)) <= 1e-12


def _scores(
    seen: Belief, policies: Sequence[Policy], widen: float, *, exploring: bool
) -> tuple[Array, float]:
    """Scores of the candidates, averaged over members, and the width they stand for."""
    each = [p.judge(m) for p, m in zip(policies, seen.members, strict=True)]
    width = widen * float(np.mean([one.width for one in each]))
    if exploring:
        return _relative_variance(seen), width
    widened = [_widened(m, one, widen) for m, one in zip(seen.members, each, strict=True)]
    return np.mean(widened, axis=0), width


def _widened(belief: Belief, judged: Judgement, widen: float) -> Array:
    """The policy's scores; with C' > 1 the bound μ + C'wσ, which for EST is not the same order."""
    if widen == 1.0:
        return judged.scores
    return belief.mean + widen * judged.width * belief.std


def _relative_variance(belief: Belief) -> Array:
    """σ²(x)/σ², averaged over members."""
    return np.mean([member.var / member.noise for member in belief.members], axis=0)


def _can_learn(belief: Belief, k: int) -> float:
    """Most that k - 1 looks can tell: (k-1) ½ log(1 + max σ²(x)/σ²) (MATH section 4)."""
    return (k - 1) * 0.5 * math.log1p(float(_relative_variance(belief).max()))


@dataclass(frozen=True, slots=True)
class LocalPenalization:
    r"""LP-UCB (González et al. 2016): each pick penalises the ball that cannot hold the maximum.

    .. math:: \varphi(x; x_j) = \Phi((L\lVert x - x_j\rVert - M + \mu(x_j)) / \sigma(x_j))

    L is the largest slope of the mean, M the largest of values and means. Neither mean nor
    covariance is updated within the batch.
    """

    first: Policy = field(default_factory=lambda: UCB(beta=4.0))
    needs_model: ClassVar[bool] = True

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """Largest softplus(score) times penalties, in logs."""
        del rng
        judgement = judge(self.first, belief)
        scores = np.log(np.maximum(np.logaddexp(0.0, judgement.scores), 1e-300))
        # softplus(a) ~ e^a far below zero, where the line above would underflow.
        scores = np.where(judgement.scores < -30.0, judgement.scores, scores)
        slope = belief.slope
        batch = [int(np.argmax(scores))]
        for _ in range(k - 1):
            scores = scores + log_penalty(belief, batch[-1], slope)
            scores[batch] = -np.inf
            batch.append(int(np.argmax(scores)))
        return Selection(tuple(batch), judgement.width)


def log_penalty(belief: Belief, j: int, slope: float) -> Array:
    """log φ(x; x_j) at every candidate: 0 far away, very negative near candidate j."""
    slope = slope if slope > 1e-7 else 10.0  # a flat mean gives no radius (GPyOpt's choice)
    top = max(belief.best, float(belief.mean.max()))
    at = host(belief.at)
    distance = np.linalg.norm(at - at[j], axis=1)
    return log_normal_cdf((slope * distance - top + belief.mean[j]) / max(belief.std[j], 1e-8))


@dataclass(frozen=True, slots=True)
class Thompson:
    """Each point maximises its own draw of f from the posterior."""

    needs_model: ClassVar[bool] = True

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k draws, k distinct maximisers."""
        return Selection(distinct_maxima(belief.each_draw(rng, k)))


@dataclass(frozen=True, slots=True)
class Random:
    """Uniformly at random."""

    needs_model: ClassVar[bool] = False

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k candidates without replacement."""
        return Selection(tuple(rng.choice(len(belief), size=k, replace=False).tolist()))


@dataclass(frozen=True, slots=True)
class Sobol:
    """The next points of a scrambled Sobol sequence; candidates are offered in that order."""

    needs_model: ClassVar[bool] = False

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """The first k."""
        del belief, rng
        return Selection(tuple(range(k)))
