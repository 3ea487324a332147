"""Greedy picks that are known, and a guess of the next, made on few of the items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.arrays import Array, Indices, beside, host
from covey.dpp.choice import check_semidefinite
from covey.dpp.factor import Factor
from covey.dpp.kernel import Blocks, Divisible, gathered
from covey.whitening import Whitening


class Draft(NamedTuple):
    """Picks in order, the first ``sure`` of them certainly those of greedy."""

    picks: Indices  # (p,)
    gains: Array  # (p,)
    sure: int
    factor: Array  # (p, p), the Cholesky factor of L on them

    def head(self, count: int) -> Draft:
        """The first picks, known to be right."""
        return Draft(self.picks[:count], self.gains[:count], count, self.factor[:count, :count])

    def plus(self, kernel: Blocks, pick: int, own: float, gain: float) -> Draft:
        """With one more that is known to be right, and its own conditional variance."""
        p = len(self.picks)
        factor = np.zeros((p + 1, p + 1))
        factor[:p, :p] = self.factor
        column = np.asarray(host(kernel.block(self.picks, np.array([pick]))), dtype=np.float64)
        factor[p, :p] = Whitening(self.factor, column)(column)[:, 0]
        factor[p, p] = np.sqrt(own)
        return Draft(np.append(self.picks, pick), np.append(self.gains, gain), p + 1, factor)


EMPTY = Draft(np.empty(0, dtype=np.intp), np.empty(0), 0, np.empty((0, 0)))


def write(
    kernel: Divisible, known: Draft, short: Indices, outside: float, *, count: int, ahead: int
) -> Draft:
    """Go on from known picks, greedily among the items ``short``: ascending, with those picks.

    Conditional variances only fall, so a pick is sure while it exceeds ``outside``, a bound on
    those of all other items (Minoux 1978). Ends with ``count`` picks, or ``ahead`` that are not
    sure. Cost len(short) · count per pick.
    """
    near = gathered(kernel.on(short))
    places = np.searchsorted(short, known.picks).tolist()
    factor = Factor(near.diagonal, count)
    if places:
        rows = Whitening(known.factor, near.diagonal)(near.columns(np.array(places)).T)
        factor.take(np.array(places), [(slice(None), rows)])
    gains, sure = known.gains.tolist(), known.sure
    while len(places) < count and len(places) < sure + ahead:
        most, place = factor.largest()
        if most == -np.inf:
            break
        sure += int(sure == len(places) and most > outside)
        places.append(place)
        gains.append(most)
        factor.grow(place, near.columns(np.array([place]))[:, 0])
        check_semidefinite(factor.residual, near.diagonal, short)
    at = np.array(places, dtype=np.intp)
    corner = np.tril(np.asarray(host(factor.rows[:, beside(at, factor.rows)]), dtype=np.float64).T)
    return Draft(short[at], np.array(gains), sure, corner)
