"""The default: upper bounds in turn, no two of a batch alike, and some that look elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Mask, to_numpy
from covey.belief import Belief, Beliefs
from covey.errors import StrategyError
from covey.policies import (
    UCB,
    Policy,
    Restless,
    Score,
    best_known,
    counting,
    frozen,
    weighing,
)
from covey.selection import Selection, crowded, enough_results, laxer, sequential_greedy

_TIGHT = 0.05  # of the candidates that dissent, the best by upper bound: one of them is drawn
_LEAST = 20  # ... but no fewer
_BEST, _MARGIN = 0.2, 0.1  # the box: of the results, the best; and room around them
_FAR = -1e4  # added to scores outside the box, in standard deviations of the outcomes
_POLISHING = 2  # points of a batch that may polish what is known
_SAME = 1e-9  # of the unit cube: coordinates of one level, up to rounding
_MOST = 2**13  # candidates looked at for a point that dissents; of a larger pool, so many at random

_SCOUT = "scouts: the largest upper bound, or where nothing promises a gain the likeliest one"
_POLISH = "polishes: the largest upper bound, which may lie beside a known point"
_BOUND = "has the largest upper bound of those unlike known points and the batch, if there are any"
_BOXED = "has the largest upper bound near the best results, unlike known points and the batch"
_FRONT = "adds the most to the front: the hypervolume of its upper bounds, given those before it"
_WEIGHTED = "is the best, by upper bounds, at the weighting of the goals that was drawn for it"
_DISSENT = "takes another level than points chosen by upper bound, if one is left; drawn at random"


@dataclass(frozen=True, slots=True)
class SpreadUCB:
    r"""Upper bounds in turn, no two of a batch alike, and some that look elsewhere.

    .. math:: x_b = \arg\max_{x \notin C_b} \mu(x) + w\,\sigma_{b-1}(x), \qquad w = 1 + 2/d

    σ_b is the standard deviation once the first b points will have been observed, C_b the
    candidates within the resolution, in every coordinate, of one of them or of a point under way.
    The first point is a scout's. It and the second may come within the resolution of a point whose
    value is known, to polish a summit, the second if it promises a gain; the others may not.

    In ten or more continuous inputs most of the space is far from every result, and a wide bound
    would pull whole batches to its edges. There the points chosen by upper bound stay within the
    box of the best results, which shrinks as these gather; scouts do not. (Not in pools, whose
    rows need not fill a box.)

    Where no parameter has levels, the last tenth are scouts again. Where some have, a model that is
    sure of a summit may be sure of the wrong level. So a part of each batch, and all of it that
    promises no gain, dissents: in one such parameter, each in another, these points differ from
    most of the batch S; where options have no order, the one with fewest results has its turn. They
    are drawn from the best twentieth of the candidates that do, by what the determinant of a DPP
    gives them:

    .. math:: P(x) \propto \det L_{S \cup x} / \det L_S = 1 + \sigma_S^2(x) / \sigma^2

    Attributes:
        width: w; None: 1 + 2/d, d encoded inputs.
        scout: the policy of the first point, and of the last tenth.
        explore: the share of a batch that scouts at its end, where no parameter has levels.
        dissent: the share of a batch that dissents, where some have.
        boxed: the number of continuous inputs from which on there is a box.
        gain: what a point is to promise above the best known mean, at its upper bound and in
            standard deviations of the outcomes, to polish, or not to dissent.
        design: results to wait for, as in `Hallucinated`.
    """

    width: float | None = None
    scout: Policy = field(default_factory=Restless)
    explore: float = 0.1
    dissent: float = 0.4
    boxed: int = 10
    gain: float = 1e-3
    design: int = 10
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shares = (self.explore, self.dissent)
        wide = self.width is None or self.width >= 0.0
        if not wide or not all(0.0 <= share <= 1.0 for share in shares):
            raise StrategyError(
                "SpreadUCB takes a width >= 0, or None, and explore and dissent from 0 to 1; got "
                f"{self.width}, {self.explore} and {self.dissent}."
            )

    def ready(self, values: Array, width: int, /) -> bool:
        """Whether results (n,) of points with so many encoded inputs say enough for a model."""
        return enough_results(values, width, self.design)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """A scout, one point that polishes, upper bounds away from what is known, then others."""
        width = 1.0 + 2.0 / belief.at.shape[1] if self.width is None else self.width
        if isinstance(belief, Beliefs):
            # Bounds of m goals at once are as optimistic as one goal's if each is √m narrower.
            return self._trade_off(belief, k, width / math.sqrt(len(belief.goals)), rng)
        score, scout = scoring(UCB(width**2), belief), scoring(self.scout, belief)
        # A share of a small batch is a chance, so that batches of one dissent at times.
        share = self.dissent if belief.levels else self.explore
        others = int(share * k + rng.random())
        free = replace(belief, seen_at=None)  # for those that may polish
        lead = sequential_greedy(free, _first(free, scout), min(_POLISHING, k), score)
        lead = lead[: promising_count(belief, lead, width, self.gain)]
        polished = len(lead)
        near = self._near(belief, score)
        lead = sequential_greedy(belief, lead, max(polished, k - others), near)
        bound = _BOUND if near is score else _BOXED
        reasons = [_SCOUT, *[_POLISH] * (polished - 1), *[bound] * (len(lead) - polished)]
        if belief.levels:
            keep = min(promising_count(belief, lead, width, self.gain), k - others)
            batch = _with_dissent(belief, lead, keep, k, rng)
            reasons = [*reasons[:keep], *[_DISSENT] * (k - keep)]
        else:
            batch = sequential_greedy(belief, lead, k, scout)
            reasons += [_SCOUT] * (k - len(lead))
        return Selection(tuple(batch), width, reasons=tuple(reasons))

    def _near(self, belief: Belief, score: Score) -> Score:
        """The score, with candidates outside the box of the best results below all others."""
        columns = np.asarray(np.ptp(to_numpy(belief.at), axis=0) > 0.0)  # less those held fixed
        for some in belief.levels:
            columns[some] = False
        if columns.sum() < self.boxed or belief.seen_at is None or belief.told is None:
            return score
        if len(belief.told[0]) != len(belief.seen_at):  # of those that keep limits, places unknown
            return score
        nowhere = None if belief.absent_at is None else belief.absent_at[columns]
        low, high = _box(to_numpy(belief.seen_at)[:, columns], belief.told[0], nowhere)

        def boxed(seen: Belief) -> Array:
            at = to_numpy(seen.at)[:, columns]
            outside = ((at < low) | (at > high)) & _there(at, nowhere)
            inside = ~outside.any(axis=1)
            return np.where(inside, 0.0, _FAR) + score(seen)

        return boxed

    def _trade_off(
        self, belief: Beliefs, k: int, width: float, rng: np.random.Generator
    ) -> Selection:
        """For several goals: in turn, what the upper bounds add to the front the most."""
        score = scoring(UCB(width**2), belief)
        others = int(self.dissent * k + rng.random()) if belief.levels else 0
        near = replace(belief, seen_at=None)  # for those that may polish
        lead = sequential_greedy(near, _first(near, score), min(_POLISHING, k), score)
        lead = sequential_greedy(belief, lead, max(len(lead), k - others), score)
        why = _FRONT if belief.front.exact else _WEIGHTED
        keep = len(lead) if not belief.levels else min(len(lead), k - others)
        batch = _with_dissent(belief, lead, keep, k, rng) if keep < k else lead
        reasons = (*[why] * keep, *[_DISSENT] * (k - keep))
        return Selection(tuple(batch), width, reasons=reasons)


def _box(at: Array, mean: Array, nowhere: Array | None) -> tuple[Array, Array]:
    """Lowest and highest coordinates (d,) of the best fifth of the results (n, d), and a margin.

    Of at least two results for each input, so that the box does not shut too early. What none of
    them has, being absent, has no bounds.
    """
    most = max(2 * at.shape[1], round(_BEST * len(at)))
    best = at[np.argsort(-mean, kind="stable")[:most]]
    there = _there(best, nowhere)
    low = best.min(axis=0, where=there, initial=1.0)
    high = best.max(axis=0, where=there, initial=0.0)
    margin = np.where(there.any(axis=0), _MARGIN * (high - low), np.inf)
    return low - margin, high + margin


def _there(at: Array, nowhere: Array | None) -> Mask:
    """Which coordinates (n, d) belong to parameters that are present."""
    if nowhere is None:
        return np.ones(at.shape, dtype=np.bool_)
    return np.asarray(~(np.abs(at - nowhere) < _SAME))


def scoring(policy: Policy, belief: Belief) -> Score:
    """Scores of candidates; what the policy estimates is fixed by the belief before the batch."""
    fixed = frozen(policy, belief)

    def score(seen: Belief) -> Array:
        each = zip(fixed, seen.members, strict=True)
        return seen.combined([policy.judge(member) for policy, member in each])

    return weighing(score, belief, policy)


def _first(belief: Belief, score: Score) -> int:
    """The highest score that is no copy of a point under way."""
    scores, taken = score(replace(belief, round=belief.looks + 1)), crowded(belief, [])
    return int(np.argmax(scores if taken.all() else np.where(taken, -np.inf, scores)))


def promising_count(belief: Belief, batch: list[int], width: float, gain: float) -> int:
    """How many of a batch, the first and those after it, promise a gain over what is known."""
    best = best_known(belief)
    for i in range(1, len(batch)):
        seen = belief.after_looking_at(batch[:i], on=[batch[i]])
        # Expected is p times what is promised where it counts.
        needed = gain if seen.weight is None else gain / max(float(seen.weight[0]), gain)
        if seen.mean[0] + width * seen.std[0] < best + needed:
            return i
    return len(batch)


def _with_dissent(
    belief: Belief, lead: list[int], keep: int, k: int, rng: np.random.Generator
) -> list[int]:
    """The first ``keep`` of the lead, then points that differ from most of it, up to k."""
    if len(belief) > _MOST + k:
        among = np.union1d(rng.choice(len(belief), size=_MOST, replace=False), lead)
        here = np.searchsorted(among, lead).tolist()
        return among[_with_dissent(belief.on(among), here, keep, k, rng)].tolist()
    order = rng.permutation(len(belief.levels))
    if belief.absent_at is not None:
        # What most of the lead lacks has nothing to differ in; its parents have their own turns.
        able = [i for i in order if _common_there(belief, belief.levels[i], lead)]
        order = np.array(able or order)
    # An option that always fails has no results, and would have every turn.
    likely = counting(belief)
    batch = lead[:keep]
    for turn in range(k - keep):
        columns = belief.levels[order[turn % len(order)]]
        values = to_numpy(belief.at)[:, columns]
        other = ~_equal(values, _commonest(values[lead])) & likely
        if belief.absent_at is not None:
            other &= _there(values, belief.absent_at[columns]).any(axis=1)
        fresh = other
        if values.shape[1] > 1 and other.any():
            # Options have no order that could carry what is known of one to another, so each of
            # the others has its turn, however little the model thinks of it.
            fresh = _equal(values, _least_tried(belief, columns, batch, values[other], rng))
        elif turn >= len(order):
            # Of its own parameter, each takes another level than the one before it did.
            fresh = other & ~_equal(values, values[batch[-len(order)]])
        batch.append(_drawn(belief, batch, (fresh, other), rng))
    return batch


def _common_there(belief: Belief, columns: slice, lead: list[int]) -> bool:
    """Whether most of the lead has the parameter of these columns."""
    if belief.absent_at is None:
        return True
    common = _commonest(to_numpy(belief.at)[lead, columns])
    return bool(_there(common[None, :], belief.absent_at[columns]).any())


def _least_tried(
    belief: Belief, columns: slice, batch: list[int], others: Array, rng: np.random.Generator
) -> Array:
    """Of the other options (n, c), the one with fewest results so far, points under way counted."""
    known = [belief.seen_at, belief.under_way, belief.at[batch]]
    tried = np.vstack([to_numpy(points)[:, columns] for points in known if points is not None])
    options = rng.permutation(np.unique(others, axis=0))
    counts = [float(_equal(tried, option).sum()) for option in options]
    if belief.absent_at is not None:  # an option that brings more parameters takes more results
        at, mine = to_numpy(belief.at), to_numpy(belief.at)[:, columns]
        present = _there(at, belief.absent_at).sum(axis=1)
        counts = [
            count / float(present[_equal(mine, option)].mean())
            for count, option in zip(counts, options, strict=True)
        ]
    return np.asarray(options[np.argmin(counts)])


def _commonest(values: Array) -> Array:
    """The row that occurs most."""
    rows, counts = np.unique(values, axis=0, return_counts=True)
    return np.asarray(rows[np.argmax(counts)])


def _equal(values: Array, value: Array) -> Mask:
    """Which of the levels (n, c) are this one."""
    return np.asarray((np.abs(values - value) < _SAME).all(axis=1))


def _drawn(
    belief: Belief, batch: list[int], wanted: tuple[Mask, ...], rng: np.random.Generator
) -> int:
    """One of the highest upper bounds, with probability ∝ det L_{S ∪ x}, S the batch so far.

    Of the first of the masks that leaves any candidate that is no copy; else of all candidates
    that are none; else, where copies are all that is left, of those that are allowed next.
    """
    while True:
        free = ~crowded(belief, batch)
        if free.any():
            break
        belief = laxer(belief)
    some = next(np.flatnonzero(free & mask) for mask in (*wanted, free) if (free & mask).any())
    seen = belief.after_looking_at(batch, on=some) if batch else belief.on(some)
    scores = scoring(UCB(beta=4.0), belief)(seen)
    best = np.argsort(-scores, kind="stable")[: max(_LEAST, round(_TIGHT * len(some)))]
    odds = _odds(seen)[best]
    if seen.weight is not None:
        odds = odds * np.maximum(seen.weight[best], _SAME)
    return int(some[rng.choice(best, p=odds / odds.sum())])


def _odds(belief: Belief) -> Array:
    """1 + σ²(x)/σ², (n,); of several goals, the mean of theirs."""
    if isinstance(belief, Beliefs):
        return to_numpy(belief.information().diagonal)
    return np.asarray(1.0 + belief.var / belief.noise)
