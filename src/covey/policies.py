"""Policies: acquisition scores of the candidates of a belief, and the relevance region.

Notation: μ, σ posterior mean and standard deviation (n,), w = √β the width of the confidence band
μ ± wσ, t the round, n the number of candidates, m̂ the estimated maximum of f, p the probability
that a candidate counts (`Belief.weight`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from covey.arrays import Array, Indices, Mask, like, log_normal_cdf
from covey.belief import Belief, Beliefs
from covey.errors import StrategyError

_log = logging.getLogger("covey")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Scores of the candidates, and the confidence width behind them."""

    scores: Array  # (n,)
    width: float  # √β_t
    next_width: float  # √β_{t+1}, which the relevance region uses


class Policy(Protocol):
    """Scores every candidate of a belief with one member; a batch starts at the largest score.

    One that estimates something from the data may have a method ``frozen_at(belief)``, which
    returns it with its estimates fixed for a whole batch (see `frozen`).
    """

    def judge(self, belief: Belief, /) -> Judgement:
        """The scores and the width."""
        ...


def frozen(policy: Policy, belief: Belief) -> list[Policy]:
    """The policy for each member of a belief, its estimates fixed where a batch begins."""
    fix: Callable[[Belief], Policy] | None = getattr(policy, "frozen_at", None)
    return [policy if fix is None else fix(member) for member in belief.members]


def judge(policy: Policy, belief: Belief) -> Judgement:
    """The mean of a policy's judgements of the members of a belief, the scores `weighed`."""
    each = [policy.judge(member) for member in belief.members]
    width, following = np.mean([(one.width, one.next_width) for one in each], axis=0).tolist()
    return Judgement(weighed(belief.combined(each), belief, policy), width, following)


# Weighing scores by the probability that a candidate counts. Scores reach a strategy through
# `judge`, `weighing`, `relevant` and `weighed_draws` alone, so that none needs to know of it.

Score: TypeAlias = Callable[[Belief], Array]
_LEAST = 1e-100  # probability whose logarithm is taken for that of a smaller one
_LIKELY = 0.55  # probability from which on a candidate is taken to count (our choice)
_BEHIND = 1e6  # by which scores of others lie below the rest


def weighed(
    scores: Array, belief: Belief, policy: Policy | None = None, lowest: float | None = None
) -> Array:
    r"""Scores (n,) of the candidates of a belief, weighed by the probability p that each counts.

    .. math:: s' = p\,(s - s_0)

    s₀ is the ``lowest`` score: what a candidate is worth that does not count. So s' is what is
    expected above it. s₀ must be the same throughout a batch; without one it is the lowest of
    ``scores``. A policy whose scores are no values but, say, logarithms has a method
    ``weighed(scores, p)`` of its own, which rises with either.
    """
    if belief.weight is None:
        return scores
    if isinstance(belief, Beliefs):
        return belief.weighed(scores)
    own: Callable[[Array, Array], Array] | None = getattr(policy, "weighed", None)
    if own is not None:
        return own(scores, belief.weight)
    above = scores - (scores.min() if lowest is None else lowest)
    # Within a batch scores fall, some below s₀; there a small p would raise them.
    return np.where(above > 0.0, belief.weight * above, above)


def weighing(score: Score, belief: Belief, policy: Policy | None = None) -> Score:
    """The scores ``score``, `weighed`, of a batch that begins with this belief.

    s₀ is fixed by the whole belief. So they may be asked of a part of the candidates, and those
    that only fall as σ falls still do: an earlier one is an upper bound.
    """
    if belief.weight is None:
        return score
    lowest = float(score(belief).min())
    return lambda seen: weighed(score(seen), seen, policy, lowest)


def weighed_draws(belief: Belief, rng: np.random.Generator, draws: int) -> Iterator[Array]:
    """Joint posterior draws one by one, (n,) each; each weighed, s₀ being its own minimum."""
    for draw in belief.each_draw(rng, draws):
        yield weighed(draw, belief)


def weighed_bounds(belief: Belief, width: float) -> Score:
    """μ + wσ of a batch that begins with this belief, `weighed`; of several goals their gains."""
    policy = UCB(width**2)

    def score(seen: Belief) -> Array:
        return seen.combined([policy.judge(member) for member in seen.members])

    return weighing(score, belief, policy)


def log_weight(belief: Belief) -> Array | float:
    """log p (n,), kept finite, or 0: for a strategy that adds logarithms of its own to it."""
    return 0.0 if belief.weight is None else np.log(np.maximum(belief.weight, _LEAST))


def counting(belief: Belief) -> Mask:
    """The candidates that are likely to count, (n,); all, if none is."""
    likely = np.zeros(len(belief)) if belief.weight is None else belief.weight
    return np.asarray(likely >= (_LIKELY if likely.max() >= _LIKELY else 0.0))


def theory_beta(n: int, t: int, delta: float) -> float:
    r"""β_t = 2 log(n π² t² / (6δ)) (Srinivas et al. 2010, Theorem 1; MATH E1).

    >>> round(math.sqrt(theory_beta(400, 1, 0.05)), 2)
    4.36
    """
    return 2.0 * math.log(n * math.pi**2 * t**2 / (6.0 * delta))


def practical_beta(d: int, t: int) -> float:
    """β_t = 0.2 d log(2t), the schedule of Kandasamy et al. 2015."""
    return 0.2 * d * math.log(2.0 * t)


Beta = float | Literal["theory", "practical"] | Callable[[int], float]


@dataclass(frozen=True, slots=True)
class UCB:
    """Upper confidence bound μ + √β σ.

    Attributes:
        beta: "theory" (grows with n and t), "practical" (grows with d and t), a constant β, or a
            function of the round t.
        delta: for "theory": probability that f leaves the band.
    """

    beta: Beta = "theory"
    delta: float = 0.05

    def __post_init__(self) -> None:
        if isinstance(self.beta, str) and self.beta not in ("theory", "practical"):
            raise StrategyError(
                f'beta is "theory", "practical", a number or a function; got {self.beta!r}.'
            )
        if isinstance(self.beta, int | float) and not self.beta >= 0.0:
            raise StrategyError(f"beta must be at least 0; got {self.beta}.")
        if not 0.0 < self.delta < 1.0:
            raise StrategyError(f"delta is a probability in (0, 1); got {self.delta}.")

    def judge(self, belief: Belief, /) -> Judgement:
        """Scores μ + √β_t σ."""
        width = self.width(belief, belief.round)
        return Judgement(
            belief.mean + width * belief.std, width, self.width(belief, belief.round + 1)
        )

    def width(self, belief: Belief, t: int) -> float:
        """√β_t for these candidates."""
        if callable(self.beta):
            return math.sqrt(max(self.beta(t), 0.0))
        if self.beta == "theory":
            return math.sqrt(theory_beta(belief.offered, t, self.delta))
        if self.beta == "practical":
            return math.sqrt(practical_beta(belief.at.shape[1], t))
        return math.sqrt(float(self.beta))


def best_known(belief: Belief) -> float:
    """m: the largest mean at the observed points."""
    return belief.best if belief.told is None else float(belief.told[0].max())


@dataclass(frozen=True, slots=True)
class EST:
    r"""The candidate most likely to reach the estimated maximum (Wang, Zhou & Jegelka 2016).

    .. math:: \arg\min_x (\hat m - \mu(x)) / \sigma(x), \qquad \nu = \min_x (\hat m - \mu) / \sigma

    By Lemma 2.1 of the paper this is UCB with width ν.

    Attributes:
        estimate: how m̂ is found: "n" by quadrature, "a" by the closed form the paper used.
        start: where its integral starts: the largest value "observed" (the paper), or the larger of
            that and the largest "mean" (our default; see `estimated_maximum`).
        target: m̂ itself where it is known, in units of the belief (standardised outcomes).
    """

    estimate: Literal["n", "a"] = "n"
    start: Literal["observed", "mean"] = "mean"
    target: float | None = None

    def __post_init__(self) -> None:
        if self.estimate not in ("n", "a") or self.start not in ("observed", "mean"):
            raise StrategyError(
                'EST takes estimate "n" or "a" and start "observed" or "mean"; got '
                f"{self.estimate!r} and {self.start!r}."
            )

    def judge(self, belief: Belief, /) -> Judgement:
        """Scores (μ - m̂)/σ; width ν, never negative (a negative one would prefer certainty)."""
        scores = (belief.mean - self.maximum(belief)) / belief.std  # Lemma 2.1; MATH 3
        if belief.weight is not None:
            # Above m̂ are only candidates that hardly count; there a score would rise as σ falls.
            scores = np.minimum(scores, 0.0)
        width = max(0.0, float(-scores[counting(belief)].max()))  # ν = min (m̂ - μ)/σ
        # β_{t+1} depends on outcomes of round t, which are not known yet: ν_t serves (MATH E12).
        return Judgement(scores, width, width)

    def weighed(self, scores: Array, weight: Array, /) -> Array:
        """log p Φ(s): Φ((μ - m̂)/σ) is the probability that f reaches m̂, and p that it counts."""
        return log_normal_cdf(scores) + np.log(np.maximum(weight, _LEAST))

    def frozen_at(self, belief: Belief, /) -> EST:
        """With m̂ estimated from the belief at the start of the batch."""
        return replace(self, target=self.maximum(belief))

    def maximum(self, belief: Belief) -> float:
        """m̂ for this belief."""
        if self.target is not None:  # the guard of `estimated_maximum` holds here too
            p = belief.weight
            mean = belief.mean if p is None else belief.mean[p >= _LIKELY]
            return max(self.target, float(mean.max(initial=-np.inf)) + 1e-6)
        return estimated_maximum(belief, self.estimate, self.start)


def estimated_maximum(
    belief: Belief,
    estimate: Literal["n", "a"] = "n",
    start: Literal["observed", "mean"] = "mean",
) -> float:
    r"""m̂, an estimate of E[max f] that treats the candidates as independent (MATH section 3).

    .. math:: \hat m = m_0 + \int_{m_0}^\infty 1 - \prod_x \Phi((w - \mu(x)) / \sigma(x))\, dw

    m₀ is the largest value observed or, with ``start`` "mean", the larger of that and the largest
    mean. "n" integrates on a grid of 201 levels, cost 200 n; "a" takes the closed form of the
    paper, cost 2 n. A guard keeps m̂ above the largest mean, else ν would be negative. Candidates
    that hardly count are left out. Candidates on a device are evaluated there.
    """
    some, where = counting(belief), belief.parts[0].explained.squares
    mean, std = belief.mean[some], belief.std[some]
    top = float(mean.max())
    m0 = belief.best if start == "observed" else max(belief.best, top)
    if estimate == "n":
        far = max(m0 + 1e-9, float((mean + 8.0 * std).max()))
        # Finer towards m₀, where many confident candidates make the integrand fall fast.
        grid = m0 + (far - m0) * np.square(np.linspace(0.0, 1.0, 201))
        maximum = m0 + float(
            np.trapezoid(_exceedance(mean, std, grid, where), grid)
        )  # ESTn, MATH 3
    else:  # ESTa, MATH 3
        maximum = m0 + _half_gaussian_area(*_exceedance(mean, std, np.array([m0, m0 + 1.0]), where))
    if maximum < top + 1e-6:
        _log.debug("EST guard: estimated maximum %.6g lies below the largest mean", maximum)
        maximum = top + 1e-6
    return maximum


_CERTAIN = -40.0  # log of a product so small that 1 less it is 1, to the last bit


def _exceedance(mean: Array, std: Array, levels: Array, where: Array) -> Array:
    """g(w) = 1 - Π_x Φ((w - μ)/σ) at ascending levels w (MATH 3), in logs against underflow.

    From the highest level down, as far as g is below 1. Worked out on the device of ``where``.
    """
    mean, std = like(mean, where), like(std, where)
    logs = np.full(len(levels), -np.inf)
    for i in reversed(range(len(levels))):
        logs[i] = float(log_normal_cdf((float(levels[i]) - mean) / std).sum())
        if logs[i] < _CERTAIN:
            break
    return -np.expm1(logs)


def _half_gaussian_area(here: float, one_above: float) -> float:
    """∫ g from m₀ on if g is a half Gaussian, from g(m₀) and g(m₀ + 1) (ESTa, MATH 3)."""
    if one_above <= 0.0:
        return 0.0
    # exp(-1/(2c²)) = g(m₀ + 1), at most 50; the area is √(π/2) c g(m₀).
    width = 50.0 if one_above >= 1.0 else math.sqrt(-0.5 / math.log(one_above))
    return math.sqrt(math.pi / 2.0) * width * here


@dataclass(frozen=True, slots=True)
class EI:
    r"""Log expected improvement over the best value observed, stable where EI itself underflows.

    .. math:: \log\sigma + \log(\varphi(z) + z\Phi(z)), \qquad z = (\mu - y^*)/\sigma

    ``width`` is for the relevance region (our choice: EI has none of its own).
    """

    width: float = 2.0

    def __post_init__(self) -> None:
        number = isinstance(self.width, int | float | np.integer | np.floating)
        if not number or isinstance(self.width, bool) or not 0.0 <= self.width < math.inf:
            raise StrategyError(f"the width of EI is a number >= 0; got {self.width!r}.")

    def judge(self, belief: Belief, /) -> Judgement:
        """Scores log EI."""
        z = (belief.mean - belief.best) / belief.std
        return Judgement(np.log(belief.std) + log_improvement(z), self.width, self.width)

    def weighed(self, scores: Array, weight: Array, /) -> Array:
        """log p EI: what does not count improves nothing."""
        return scores + np.log(np.maximum(weight, _LEAST))


def log_improvement(z: Array) -> Array:
    """log(φ(z) + z Φ(z)) without cancellation (Ament et al. 2023).

    >>> log_improvement(np.array([0.0, -40.0])).round(2)
    array([  -0.92, -808.3 ])
    """
    from scipy.special import erfcx, ndtr

    z = np.asarray(z, dtype=float)
    out = np.empty_like(z)
    near, far = z > -1.0, z < -1e3
    middle = ~(near | far)
    zn, zm = z[near], z[middle]
    out[near] = np.log(np.exp(-0.5 * zn * zn) / math.sqrt(2.0 * math.pi) + zn * ndtr(zn))
    # φ + zΦ = φ (1 - |z| √(π/2) erfcx(|z|/√2)); the bracket tends to 1/z² - 3/z⁴ and would cancel.
    half_log_2pi = 0.5 * math.log(2.0 * math.pi)
    bracket = np.abs(zm) * math.sqrt(math.pi / 2.0) * erfcx(np.abs(zm) / math.sqrt(2.0))
    out[middle] = -0.5 * zm * zm - half_log_2pi + np.log1p(-bracket)
    zf = z[far]
    out[far] = -0.5 * zf * zf - half_log_2pi - 2.0 * np.log(-zf) + np.log1p(-3.0 / (zf * zf))
    return out


def relevant(
    belief: Belief,
    judgement: Judgement,
    factor: float = 2.0,
    at_least: int = 1,
    among: Indices | None = None,
) -> Indices:
    r"""The relevance region: candidates that may still be the maximiser (Contal et al. 2013).

    .. math:: R^+ = \{x : \mu + c\sqrt{\beta_{t+1}}\,\sigma \ge y^\bullet\}, \qquad
              y^\bullet = \max_x \mu - \sqrt{\beta_t}\,\sigma

    (Section 3.2 of the paper, MATH 5.) The maximum is over the candidates and the observed points,
    which in a finite space are no longer candidates. The factor c is 2 in the paper and 1 in
    Contal's code. Late in a run R⁺ can hold fewer points than a batch needs; it is then widened to
    the ``at_least`` highest upper bounds (our choice). Where candidates may not count, bounds are
    `weighed`, and only those likely to are inside. Of several goals the region is where the upper
    bounds add to the front. ``among`` are the candidates to choose among, ascending. Cost n.
    """
    some = np.arange(len(belief)) if among is None else among
    if isinstance(belief, Beliefs):
        return _adding(belief, factor * judgement.next_width, some, at_least)
    upper = belief.mean + factor * judgement.next_width * belief.std
    least = belief.highest_lower(judgement.width)  # y•
    if belief.weight is not None:
        upper, least = _weighed_region(belief, upper, judgement.width)
        upper -= np.where(counting(belief), 0.0, _BEHIND)
    return _widened(some, upper[some] >= least, upper, at_least)


def without_unlikely(belief: Belief, region: Indices, k: int) -> Indices:
    """A region less what is not likely to count, if k are left: a kernel knows nothing of it."""
    likely = region[counting(belief)[region]]
    return likely if len(likely) >= k else region


def _adding(belief: Beliefs, width: float, some: Indices, at_least: int) -> Indices:
    """The candidates, likely to count, whose upper bounds add to the front of several goals."""
    gains = weighed(belief.gains([width] * len(belief.parts)), belief)
    return _widened(some, (counting(belief) & (gains > 0.0))[some], gains, at_least)


def _widened(some: Indices, inside: Mask, upper: Array, at_least: int) -> Indices:
    """Those inside; or, where they are too few, the ``at_least`` of them with highest bounds."""
    if inside.sum() < min(at_least, len(some)):
        # A stable sort, so that ties go to the lowest index.
        return np.asarray(some[np.sort(np.argsort(-upper[some], kind="stable")[:at_least])])
    return np.asarray(some[inside])


def in_words(policy: Policy, width: float) -> str:
    """What the point has that a policy puts first, for the reasons of a batch.

    >>> in_words(UCB(beta=4.0), 2.0)
    'the largest upper bound (UCB, width 2)'
    """
    what = _BEST.get(type(policy), "the largest score")
    return f"{what} ({type(policy).__name__}, width {width:.2g})"


_BEST: dict[type, str] = {
    UCB: "the largest upper bound",
    EST: "the likeliest to reach the estimated maximum",
    EI: "the largest expected improvement",
}


def _weighed_region(belief: Belief, upper: Array, width: float) -> tuple[Array, float]:
    """Upper bounds (n,) and y•, weighed; s₀ is the lowest lower bound, that no value is below."""
    lower = belief.mean - width * belief.std
    lowest = float(lower.min())
    least = float(weighed(lower, belief, lowest=lowest).max())
    if belief.told is not None:
        mean, std = belief.told
        least = max(least, float((mean - width * std).max()) - lowest)
    return weighed(upper, belief, lowest=lowest), least


def enough(k: int, n: int) -> int:
    """The least size of the region for a batch of k: max(10 k, 1 % of n) (MATH 5).

    With exactly k candidates sampling would be deterministic, and its points close together.
    """
    return min(n, max(10 * k, -(-n // 100)))
