"""The default: each point of a batch exploits while the model promises a gain, or else explores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Indices, Mask, first_largest, largest, to_numpy
from covey.belief import Belief, Beliefs
from covey.errors import StrategyError
from covey.policies import (
    EST,
    best_known,
    judge,
    log_improvement,
    weighed_bounds,
)
from covey.selection import Selection, crowded, enough_results, laxer

_LISTED = 65_536  # candidates that take part, at most: those likeliest to improve on the best
_MANY = 10  # continuous inputs from which on exploiting points stay in the trust region
_BEST, _MARGIN = 0.2, 0.1  # trust region: the best fifth of the results, and a tenth of its size
_SAME = 1e-9  # of the unit cube: coordinates that agree up to rounding
_LIKELY = 0.8  # of the largest probability to count: the least of exploring points (our choice)
_FEW = 8  # options of a parameter that has its turns (our choice)
_AT_BEST = 1e-3  # below the best known mean, in standard deviations of the outcomes: as good as it

_EXPLOITS = "exploits: the largest upper bound, given all that is known, pending and chosen"
_EXPLORES = "explores: the likeliest to beat the best if the model's length-scales are too long"


@dataclass(frozen=True, slots=True)
class TwoRoles:
    r"""Exploit while a pick promises a gain; else explore where a sceptic sees a chance.

    Pick by pick, given the observations, the points under way and the picks before:

    .. math:: x = \arg\max \mu + w\sigma, \qquad w = 1 + 2/d

    exploits (GP-BUCB; Desautels et al. 2014) while its expected improvement over the best mean,
    known or awaited, is at least

    .. math:: g = \text{gain} \cdot \sigma_{\text{noise}} \cdot 2^{-p}

    or it polishes: nothing is under way or, where candidates lie beside known points, nothing about
    as good as the best. (In pools and grids there are none.) Only a point that polishes may come
    within the resolution of one whose value is known. Else

    .. math:: x = \arg\max (\mu - m - \text{reach}) / \sigma'

    explores: the paper's EST, with the best m + reach as its estimated maximum, and σ' the
    deviation of a sceptic, who has the same data and length-scales divided by ``doubt``. As picks
    are conditioned on, each lowers the chance around it. Halved length-scales make 2^p places of
    one, so the more continuous inputs p vary, the less a pick must promise to exploit. Every other
    exploring point takes the option least tried, of parameters with few options in turn.

    Where trials may fail or limits be broken, exploring points are likely to count.

    Roles follow from what is known, pending and chosen, never from the place in an ask.

    In ten and more continuous inputs most of the space is far from every result, and bounds would
    pull whole batches to its edges. There exploiting points stay within the box of the best fifth
    of the results, which shrinks as these gather. (Not in pools, whose rows need not fill a box.)

    Attributes:
        width: w; None: 1 + 2/d, d encoded inputs.
        gain: what a pick must promise to exploit, in deviations of the noise.
        reach: the improvement that exploring points seek, in standard deviations of the outcomes.
        doubt: the fit's length-scales over the sceptic's.
        design: results to wait for; until then points fill the space.
    """

    width: float | None = None
    gain: float = 1.2
    reach: float = 0.1
    doubt: float = 2.0
    design: int = 10
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        wide = self.width is None or self.width >= 0.0
        if not (wide and self.gain >= 0.0 and self.reach > 0.0 and self.doubt >= 1.0):
            raise StrategyError(
                "TwoRoles takes a width >= 0, or None, gain >= 0, reach > 0 and doubt >= 1; got "
                f"{self.width}, {self.gain}, {self.reach} and {self.doubt}."
            )

    def ready(self, values: Array, width: int, /) -> bool:
        """Whether results (n,) of points with so many encoded inputs say enough for a model."""
        return enough_results(values, width, self.design)

    def choose(self, belief: Belief, k: int, rng: np.random.Generator, /) -> Selection:
        """k picks, one after the other; nothing is drawn at random."""
        del rng
        listed = self._shortlist(belief)
        choice = _Choice(self, belief if len(listed) == len(belief) else belief.on(listed))
        while len(choice.picks) < k:
            if len(listed) < len(belief) and choice.has_copies_alone:
                listed, choice = np.arange(len(belief)), _Choice(self, belief)
            choice.add_next()
        picks = tuple(int(listed[i]) for i in choice.picks)
        return Selection(picks, choice.width, reasons=tuple(choice.reasons))

    def _shortlist(self, belief: Belief) -> Indices:
        """The candidates that take part, ascending: of a large pool the likeliest to improve."""
        if len(belief) <= _LISTED or (taken := crowded(belief, [])).all():
            return np.arange(len(belief))
        if isinstance(belief, Beliefs):
            scores = weighed_bounds(belief, self.width_for(belief))(belief)
        else:
            scores = judge(EST(target=best_known(belief) + self.reach), belief).scores
        return np.sort(largest(np.where(taken, -np.inf, scores), _LISTED))

    def width_for(self, belief: Belief) -> float:
        """w: bounds of m goals at once are as optimistic as one goal's if each is √m narrower."""
        width = 1.0 + 2.0 / belief.at.shape[1] if self.width is None else self.width
        return width / math.sqrt(len(belief.goals)) if isinstance(belief, Beliefs) else width


class _Choice:
    """A batch in the making: what was picked, and what is believed once it will be observed."""

    def __init__(self, rule: TwoRoles, belief: Belief) -> None:
        self.width = rule.width_for(belief)
        self.picks: list[int] = []
        self.reasons: list[str] = []
        self._rule, self._allowed = rule, belief
        self._seen = belief
        self._sceptic: Belief | None = None
        self._bounds = weighed_bounds(belief, self.width)
        self._trusted = _trust_region(belief)
        self._least = rule.gain * math.sqrt(belief.noise) * 2.0 ** -int(_continuous(belief).sum())
        self._several = isinstance(belief, Beliefs)
        self._known = -math.inf if self._several else best_known(belief)
        awaited = belief.awaited if belief.awaited is not None else np.zeros(0)
        # Else, as in pools and grids, nothing may be as good as the best, and all would exploit.
        near = belief.seen_at is not None and belief.copies_of(belief.seen_at).any()
        self._near_known = bool(near) and not self._several
        self._pending = belief.under_way is not None
        self._awaited = float(awaited.max(initial=-math.inf))

    def add_next(self) -> None:
        """Pick one more candidate, and condition on it."""
        polishes = self._polishes
        free = self._free(polishes)
        near = free & self._trusted
        bounds = np.where(near if near.any() else free, self._bounds(self._seen), -np.inf)
        pick = first_largest(bounds)
        exploits = polishes or self._promises(pick)
        if not exploits:
            likely = free & _likely(self._seen)
            turn = likely & self._least_tried()
            allowed = next(some for some in (turn, likely, free) if some.any())
            pick = first_largest(np.where(allowed, self._chances(), -np.inf))
        self.picks.append(pick)
        self.reasons.append(_EXPLOITS if exploits else _EXPLORES)
        self._pending = True
        self._seen = self._seen.after_looking_at([pick])
        if self._sceptic is not None:
            self._sceptic = self._sceptic.after_looking_at([pick])
        if not self._several:
            self._awaited = max(self._awaited, float(self._seen.mean[pick]))

    @property
    def has_copies_alone(self) -> bool:
        """Whether every candidate that is left is a copy of another."""
        return bool(crowded(self._allowed, self.picks).all())

    @property
    def _polishes(self) -> bool:
        """Whether nothing is under way, or nothing about as good as a best that has neighbours."""
        short = self._near_known and self._awaited < self._known - _AT_BEST
        return short or not self._pending

    def _free(self, polishes: bool) -> Mask:
        """The candidates that are no copies of others, if any is left; polishing, not of known."""
        if polishes and self._allowed.seen_at is not None:
            taken = crowded(replace(self._allowed, seen_at=None), self.picks)
            if not taken.all():
                return ~taken
        while (taken := crowded(self._allowed, self.picks)).all():
            self._allowed = laxer(self._allowed)
        return ~taken

    def _promises(self, pick: int) -> bool:
        """Whether the expected improvement on the best, known or awaited, is worth a look."""
        if self._several:
            return float(self._bounds(self._seen)[pick]) >= self._least
        mean, std = float(self._seen.mean[pick]), float(self._seen.std[pick])
        gain = std * math.exp(float(log_improvement(np.array([(mean - self._best) / std]))[0]))
        chance = 1.0 if self._seen.weight is None else float(self._seen.weight[pick])
        return chance * gain >= self._least

    @property
    def _best(self) -> float:
        """m: the best mean, known or awaited."""
        return max(self._known, self._awaited)

    def _least_tried(self) -> Mask:
        """The candidates (n,) with the option whose turn it is; every other turn all of them.

        A model may be sure of the wrong option, and what is known of one says little of another. So
        parameters with few options take turns, and in its turn each takes the one least tried.
        """
        at = to_numpy(self._seen.at)
        points = (self._seen.seen_at, self._seen.under_way, at[self.picks])
        tried = np.vstack([to_numpy(some) for some in points if some is not None])
        few = [c for c in self._seen.levels if 1 < len(np.unique(at[:, c], axis=0)) <= _FEW]
        turn = len(tried) % (2 * max(1, len(few)))
        if turn % 2 or not few:
            return np.ones(len(at), dtype=np.bool_)
        columns = few[turn // 2]
        options = np.unique(at[_likely(self._seen)][:, columns], axis=0)
        counts = [_agree(tried[:, columns], option).sum() for option in options]
        return _agree(at[:, columns], options[int(np.argmin(counts))])

    def _chances(self) -> Array:
        """Scores (n,) of the candidates, as a sceptic sees their chance to improve on the best."""
        if self._sceptic is None:
            self._sceptic = self._seen.doubted(self._rule.doubt)
        target = None if self._several else self._best + self._rule.reach
        return judge(EST(target=target), self._sceptic).scores


def _agree(values: Array, option: Array) -> Mask:
    """Find the rows (n, c) that are this option."""
    return np.asarray((np.abs(values - option) < _SAME).all(axis=1))


def _likely(belief: Belief) -> Mask:
    """Find the candidates (n,) that are nearly as likely to count as the likeliest."""
    if belief.weight is None:
        return np.ones(len(belief), dtype=np.bool_)
    return np.asarray(belief.weight >= _LIKELY * belief.weight.max())


def _continuous(belief: Belief) -> Mask:
    """Find the columns (d,) of parameters that vary and have no levels."""
    varied = np.asarray(np.ptp(to_numpy(belief.at), axis=0) > 0.0)
    for columns in belief.levels:
        varied[columns] = False
    return varied


def _trust_region(belief: Belief) -> Mask:
    """Find the candidates (n,) in the box of the best results; all, in fewer than `_MANY` inputs.

    The box is that of at least two results for each input, so that it does not shut too early.
    """
    at = to_numpy(belief.at)
    everywhere = np.ones(len(at), dtype=np.bool_)
    columns = _continuous(belief)
    if columns.sum() < _MANY or belief.seen_at is None or belief.told is None:
        return everywhere
    if len(belief.told[0]) != len(belief.seen_at):  # of those that keep limits, places unknown
        return everywhere
    nowhere = np.nan if belief.absent_at is None else belief.absent_at[columns]
    known, at = to_numpy(belief.seen_at)[:, columns], at[:, columns]
    most = max(2 * known.shape[1], round(_BEST * len(known)))
    best = known[np.argsort(-belief.told[0], kind="stable")[:most]]
    there = ~(np.abs(best - nowhere) < _SAME)  # of absent parameters there are no bounds
    low = best.min(axis=0, where=there, initial=1.0)
    high = best.max(axis=0, where=there, initial=0.0)
    margin = np.where(there.any(axis=0), _MARGIN * (high - low), np.inf)
    outside = (at < low - margin) | (at > high + margin)
    return np.asarray(~(outside & ~(np.abs(at - nowhere) < _SAME)).any(axis=1))
