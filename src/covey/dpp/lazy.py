"""Greedy maximisation on very many items: the picks are guessed on few, and checked on all.

Plain greedy reads one column of the kernel for each pick. Where columns are dear, a guess of the
next picks is made on a short list of items; one pass over the others then tells how far it is
right, and which item greedy takes where it goes wrong. Every item is also given a score: how near
it came to being picked. The best of them make the next short list, which so holds what the guess
had missed along its whole length, and the guesses soon come true.
"""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, Indices, host
from covey.dpp import draft
from covey.dpp.choice import Choice
from covey.dpp.draft import EMPTY, Draft
from covey.dpp.factor import unit
from covey.dpp.kernel import Divisible, rank_error
from covey.dpp.shortlist import MARGIN, largest, spread
from covey.dpp.survey import Survey, survey

# All of these are our choice. Items on the short list, fewer if their factor would take more bytes,
_SHORT, _BYTES = 16_384, 2**27
# and picks guessed ahead.
_AHEAD = 128


def choose(kernel: Divisible, k: int) -> Choice:
    """The picks of plain greedy, by a few passes over the items; 1 <= k <= n.

    A pass confirms at least one pick, mostly dozens. Cost n k² a pass; memory some chunks of k
    columns, and k rows of the short list, beside what the kernel takes.
    """
    search = _Search(kernel, k)
    while len(search.known.picks) < k:
        search.advance()
    return Choice(search.known.picks, search.known.gains, search.passes)


class _Search:
    """What is known: the first picks, and a bound on every item's conditional variance."""

    def __init__(self, kernel: Divisible, k: int) -> None:
        self.kernel, self.k, self.passes, self.known = kernel, k, 0, EMPTY
        self._bounds = host(kernel.diagonal).copy()
        self._size = min(_SHORT, max(_BYTES // (8 * k), 4 * k))
        self._short = spread(self._bounds, self._size)
        self._rounding = unit(kernel.diagonal, k) * float(self._bounds.max())

    def advance(self) -> None:
        """Guess, check, and know more."""
        short = np.union1d(self._short, self.known.picks)
        rest = np.delete(self._bounds, short)
        outside = float(rest.max()) * (1.0 + MARGIN) + self._rounding if len(rest) else -np.inf
        guess = draft.write(self.kernel, self.known, short, outside, count=self.k, ahead=_AHEAD)
        self.known = guess.head(guess.sure)
        if guess.sure < self.k:
            self._check(guess)

    def _check(self, guess: Draft) -> None:
        """One pass: how far is the guess right, and what comes where it is not?"""
        gains = guess.gains[guess.sure :]
        # What has a smaller bound cannot be picked before the guess ends.
        least = gains[-1] * (1.0 - MARGIN) - self._rounding if len(gains) else -np.inf
        at = np.flatnonzero((self._bounds >= least) & (self._bounds > -np.inf))
        if len(at) == 0:
            raise rank_error(self.k, guess.sure)
        found = survey(self.kernel, guess.picks, guess.factor, gains, at)
        self.passes += 1
        wrong = np.flatnonzero(found.winners[:-1] != guess.picks[guess.sure :])
        right = int(wrong[0]) if len(wrong) else len(gains)
        self.known = guess.head(guess.sure + right)
        if len(self.known.picks) < self.k and found.gains[right] >= least:
            self._correct(found, right)
        self._bounds[at] = found.before if len(wrong) else found.after
        self._bounds[self.known.picks] = -np.inf
        self._short = self._promising(at, found.scores)

    def _promising(self, at: Indices, scores: Array) -> Indices:
        """Half of them by their bounds, half by how near they came to being picked."""
        half = self._size // 2
        return np.concatenate([largest(self._bounds, half), at[largest(scores, half)]])

    def _correct(self, found: Survey, place: int) -> None:
        if found.gains[place] == -np.inf:
            raise rank_error(self.k, len(self.known.picks))
        pick, own, gain = int(found.winners[place]), found.own[place], found.gains[place]
        self.known = self.known.plus(self.kernel, pick, float(own), float(gain))
