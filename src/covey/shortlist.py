"""Candidates picked in turn, each imagined seen before the next, seldom looking at all of them.

A score that only falls as looks are imagined need not be kept up to date for every candidate: what
it was is a bound on what it is (Minoux 1978). So the best few thousand are followed closely, for as
long as the best of them is above the bound of every other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from covey.arrays import TIE, Array, Indices, Mask, first_largest
from covey.belief import Belief
from covey.dpp.shortlist import largest

_LEAST, _PER_PICK = 8192, 16  # candidates on the list, at least and for each pick (our choice)


def in_turn(
    belief: Belief,
    first: int,
    k: int,
    score: Callable[[Belief], Array],
    size: int | None = None,
) -> list[int]:
    """The candidate ``first``, then k - 1 times that of the largest score given those before.

    ``score`` may depend on the belief's round, which counts looks here, and must not rise as the
    covariance falls or the round is earlier; of one that may, ``size`` has to be all candidates.
    """
    batch = [first]
    size = max(_LEAST, _PER_PICK * k) if size is None else size
    while len(batch) < k:
        seen = belief.after_looking_at(batch)
        # The widest the policy will be in this batch bounds all it will be.
        bounds = np.array(score(replace(seen, round=belief.looks + k)))
        bounds[batch] = -np.inf
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
    while len(picks) < most:
        scores = np.where(free, score(seen), -np.inf)
        i = first_largest(scores)
        if rest.may_win(i, float(scores[i])):
            break
        picks.append(i)
        free[i] = False
        seen = replace(seen.after_looking_at([i]), round=seen.round + 1)
    return picks


def _best(bounds: Array, size: int) -> Indices:
    """Indices of the largest bounds, in order; of equal ones the first."""
    if len(bounds) <= 2 * size:
        return np.arange(len(bounds))
    return np.sort(largest(bounds, size))
