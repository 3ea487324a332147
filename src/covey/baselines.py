"""The strategies the paper compares with, and two that need no model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from covey.arrays import Array, log_normal_cdf, to_numpy
from covey.belief import Belief
from covey.policies import (
    UCB,
    Judgement,
    Policy,
    Score,
    frozen,
    in_words,
    judge,
    log_weight,
    weighed_draws,
    weighing,
)
from covey.selection import Selection, distinct_maxima, enough_results, sequential_greedy


@dataclass(frozen=True, slots=True)
class Hallucinated:
    """GP-BUCB and B-EST (the paper's Algorithm 1): the mean frozen, the covariance updated.

    Attributes:
        first: UCB() gives BUCB, EST() gives B-EST.
        widen: C', by which the width is multiplied (practice: 1).
        budget: C of the two-stage initialisation: choose by variance alone until a batch can learn
            at most C nats, then set C' = exp(C). None: no initialisation (practice).
        design: results to wait for, at most two for each encoded input; until then, and while all
            results are equal, points fill the space. 1: start with the first result (the paper).
    """

    first: Policy
    widen: float = 1.0
    budget: float | None = None
    design: int = 1
    needs_model: ClassVar[bool] = True

    def ready(self, values: Array, width: int, /) -> bool:
        """Whether the results (n,) are enough for a model, for ``width`` encoded inputs."""
        return enough_results(values, width, self.design)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """One point at a time, each imagined as observed at its mean before the next."""
        del rng
        belief = replace(belief, resolution=None)  # the paper's batches may hold copies
        exploring = self.budget is not None and _can_learn(belief, k) > self.budget
        widen = self.widen if self.budget is None else math.exp(self.budget)

        def scoring(policy: Policy) -> Score:
            fixed = frozen(policy, belief)
            plain = policy if widen == 1.0 and not exploring else None  # whose scores these are
            return weighing(
                lambda seen: _scores(seen, fixed, widen, exploring=exploring)[0], belief, plain
            )

        usual = scoring(self.first)
        # t counts evaluations here, not batches (the paper's fb[t]).
        start = replace(belief, round=belief.looks + 1)
        scores = usual(start)
        width = _scores(start, frozen(self.first, belief), widen, exploring=exploring)[1]
        batch = sequential_greedy(belief, int(np.argmax(scores)), k, usual)
        words = in_words(self.first, width)
        reasons = (f"first: {words}", *(f"then, given the points before it: {words}",) * (k - 1))
        if exploring:
            reasons = ("has the largest variance, given the points before it",) * k
        return Selection(tuple(batch), width, reasons=reasons)


def _scores(
    seen: Belief, policies: Sequence[Policy], widen: float, *, exploring: bool
) -> tuple[Array, float]:
    """Scores of the candidates (n,) and the width, averaged over members."""
    each = [p.judge(m) for p, m in zip(policies, seen.members, strict=True)]
    width = widen * float(np.mean([one.width for one in each]))
    if exploring:
        return _relative_variance(seen), width
    widened = [_widened(m, one, widen) for m, one in zip(seen.members, each, strict=True)]
    scored = zip(each, widened, strict=True)
    return seen.combined(
        [replace(one, scores=s, width=widen * one.width) for one, s in scored]
    ), width


def _widened(belief: Belief, judged: Judgement, widen: float) -> Array:
    """The policy's scores; with C' > 1 the bound μ + C'wσ, which ranks differently for EST."""
    if widen == 1.0:
        return judged.scores
    return belief.mean + widen * judged.width * belief.std


def _relative_variance(belief: Belief) -> Array:
    """σ²(x)/σ² (n,), averaged over members."""
    return np.mean([member.var / member.noise for member in belief.members], axis=0)


def _can_learn(belief: Belief, k: int) -> float:
    """A bound in nats on what k - 1 observations tell: (k-1) ½ log(1 + max σ²(x)/σ²) (MATH 4)."""
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
        """k times the largest softplus(score) times the penalties, in logs (MATH 7)."""
        del rng
        # The weight is one more factor of the product.
        judgement = judge(self.first, replace(belief, weight=None))
        scores = np.log(np.maximum(np.logaddexp(0.0, judgement.scores), 1e-300))
        # softplus(a) ~ e^a far below zero, where the line above would underflow.
        scores = np.where(judgement.scores < -30.0, judgement.scores, scores)
        scores, slope = scores + log_weight(belief), belief.slope
        batch = [int(np.argmax(scores))]
        for _ in range(k - 1):
            scores = scores + log_penalty(belief, batch[-1], slope)
            scores[batch] = -np.inf
            batch.append(int(np.argmax(scores)))
        words = in_words(self.first, judgement.width)
        away = f"then, away from the points before it: {words}"
        reasons = (f"first: {words}", *(away,) * (k - 1))
        return Selection(tuple(batch), judgement.width, reasons=reasons)


def log_penalty(belief: Belief, j: int, slope: float) -> Array:
    """log φ(x; x_j) at every candidate (n,): 0 far away, very negative near candidate j."""
    slope = slope if slope > 1e-7 else 10.0  # a flat mean gives no radius (GPyOpt's choice)
    top = max(belief.best, float(belief.mean.max()))
    at = to_numpy(belief.at)
    distance = np.linalg.norm(at - at[j], axis=1)
    return log_normal_cdf((slope * distance - top + belief.mean[j]) / max(belief.std[j], 1e-8))


@dataclass(frozen=True, slots=True)
class Thompson:
    """Each point maximises its own draw of f from the posterior."""

    needs_model: ClassVar[bool] = True

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k draws, k distinct maximisers."""
        reasons = ("maximises a draw of f from the posterior",) * k
        return Selection(distinct_maxima(weighed_draws(belief, rng, k)), reasons=reasons)


@dataclass(frozen=True, slots=True)
class Random:
    """Candidates drawn uniformly at random."""

    needs_model: ClassVar[bool] = False

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k candidates without replacement."""
        drawn = rng.choice(len(belief), size=k, replace=False).tolist()
        return Selection(tuple(drawn), reasons=("drawn uniformly at random",) * k)


@dataclass(frozen=True, slots=True)
class Sobol:
    """The next points of a scrambled Sobol sequence; candidates are offered in that order."""

    needs_model: ClassVar[bool] = False

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """The first k candidates."""
        del belief, rng
        return Selection(tuple(range(k)), reasons=("the next point of the Sobol sequence",) * k)
