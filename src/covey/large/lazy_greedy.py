"""Greedy maximisation on very many items: picks are guessed on a short list and checked on all.

Plain greedy reads one column of the kernel for each pick. Here the next picks are guessed on a
short list; one pass over the other items finds how many of them are right, and the pick of greedy
after those. The pass also scores every item by how near it came to being picked, and the best make
the next short list. The picks are those of plain greedy (`covey.dpp.greedy`), after few passes
(after Minoux 1978).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.arrays import (
    MARGIN,
    Array,
    Indices,
    Whitening,
    each_chunk,
    first_largest,
    largest,
    like,
    namespace,
    spread,
    to_numpy,
    unit,
)
from covey.covariance import (
    Covariance,
    PivotedCholesky,
    check_semidefinite,
    entries_each,
    gathered,
    rank_error,
)

# Known greedy picks, and a guess of the next, made on the short list.


class Guess(NamedTuple):
    """Picks in order, of which the first ``sure`` are certainly those of greedy."""

    picks: Indices  # (p,)
    gains: Array  # (p,)
    sure: int
    factor: Array  # (p, p), the Cholesky factor of L on them

    def head(self, count: int) -> Guess:
        """The first ``count`` picks, as sure ones."""
        return Guess(self.picks[:count], self.gains[:count], count, self.factor[:count, :count])

    def plus(self, kernel: Covariance, pick: int, own: float, gain: float) -> Guess:
        """With one more sure pick, of conditional variance ``own``. Cost p²."""
        p = len(self.picks)
        factor = np.zeros((p + 1, p + 1))
        factor[:p, :p] = self.factor
        column = np.asarray(to_numpy(kernel.block(self.picks, np.array([pick]))), dtype=np.float64)
        factor[p, :p] = Whitening(self.factor, column)(column)[:, 0]
        factor[p, p] = np.sqrt(own)
        return Guess(np.append(self.picks, pick), np.append(self.gains, gain), p + 1, factor)


EMPTY = Guess(np.empty(0, dtype=np.intp), np.empty(0), 0, np.empty((0, 0)))


def guess_ahead(
    kernel: Covariance, known: Guess, short: Indices, outside: float, *, count: int, ahead: int
) -> Guess:
    """Continue the known picks greedily among the items ``short``, ascending, which include them.

    Conditional variances only fall, so a pick is sure while its own exceeds ``outside``, a bound on
    those of all other items (Minoux 1978). Ends with ``count`` picks, or ``ahead`` that are not
    sure. Cost len(short) · count per pick.
    """
    near = gathered(kernel.on(short))
    places = np.searchsorted(short, known.picks).tolist()
    factor = PivotedCholesky(near.diagonal, count)
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
    corner = np.tril(
        np.asarray(to_numpy(factor.rows[:, like(at, factor.rows)]), dtype=np.float64).T
    )
    return Guess(short[at], np.array(gains), sure, corner)


# The first largest entry of each row of a matrix whose columns come in chunks.


class Contenders(NamedTuple):
    """Entries near the largest of their row, in ascending order of row and column."""

    rows: Indices
    places: Indices
    values: Array


class RunningArgmax:
    """The first of the largest entries of each row, as the columns come in ascending order.

    For each row it keeps the records (entries larger than all before) that are within `MARGIN` of
    the largest so far; the first entry to reach any bound is one of them.

    >>> first = RunningArgmax(1)
    >>> first.see(contenders(np.array([[1.0, 3.0]])), 0)
    >>> first.see(contenders(np.array([[3.0 + 1e-12, 2.0]])), 2)
    >>> first.winner(0), float(first.most[0])
    ((1, 3.0), 3.000000000001)
    """

    __slots__ = ("_records", "most")

    def __init__(self, rows: int) -> None:
        self.most = np.full(rows, -np.inf)
        self._records = [(np.empty(0, dtype=np.intp), np.empty(0)) for _ in range(rows)]

    def see(self, some: Contenders, offset: int) -> None:
        """Add the contenders of further columns, the first of which has number ``offset``."""
        bounds = np.searchsorted(some.rows, np.arange(len(self.most) + 1))
        largest = np.full(len(self.most), -np.inf)
        np.maximum.at(largest, some.rows, some.values)
        for row in np.flatnonzero(largest > self.most):
            mine = slice(bounds[row], bounds[row + 1])
            self._merge(int(row), offset + some.places[mine], some.values[mine])

    def _merge(self, row: int, places: Indices, values: Array) -> None:
        """Add the new records of one row, and drop those that have become too small."""
        before = np.maximum.accumulate(np.append(self.most[row], values))
        new = values > before[:-1]
        at = np.append(self._records[row][0], places[new])
        found = np.append(self._records[row][1], values[new])
        self.most[row] = before[-1]
        keep = found >= reach(before[-1:])
        self._records[row] = (at[keep], found[keep])

    def winner(self, row: int) -> tuple[int, float]:
        """The column and value of the first largest entry of a row; (-1, -inf) without any."""
        at, values = self._records[row]
        if len(at) == 0:
            return -1, -np.inf
        first = first_largest(values)
        return int(at[first]), float(values[first])


def contenders(values: Array) -> Contenders:
    """The entries of a matrix within `MARGIN` of the largest of their row, without -inf."""
    xp = namespace(values)
    near = values >= like(reach(to_numpy(xp.max(values, axis=1))), values)[:, None]
    rows, places = xp.nonzero(near)
    where = [np.asarray(to_numpy(some), dtype=np.intp) for some in (rows, places)]
    return Contenders(where[0], where[1], to_numpy(values[rows, places]))


def reach(most: Array) -> Array:
    """The bound above which entries are within `MARGIN` of the largest, ``most``; inf at -inf."""
    known = np.where(most > -np.inf, most, 0.0)
    return np.where(most > -np.inf, known - MARGIN * np.abs(known), np.inf)


# One pass over the items, which checks a guess.


class CheckedGuess(NamedTuple):
    """The result of a pass over a items; prefix t is the known picks and t of d guessed ones."""

    winners: Indices  # (d + 1,), the greedy pick after each prefix
    own: Array  # (d + 1,), its conditional variance; -inf where none is left
    gains: Array  # (d + 1,), the largest conditional variance, which may exceed it by rounding
    before: Array  # (a,), conditional variances after prefix 0
    after: Array  # (a,), and after prefix d
    scores: Array  # (a,), the largest ratio of an item's variance to the gain of a guessed pick


class _ChunkResult(NamedTuple):
    """The result of one chunk of c items; shapes as in `CheckedGuess`, with c for a."""

    contenders: Contenders
    before: Array
    after: Array
    scores: Array


def check_guess(
    kernel: Covariance, picks: Indices, factor: Array, gains: Array, at: Indices
) -> CheckedGuess:
    """Check a guess on the items ``at`` (ascending), given ``picks`` and the factor of L on them.

    The last len(gains) picks are the guess. Cost len(at) · len(picks)², memory a few chunks.
    """
    check = _ChunkCheck(kernel, picks, factor, gains, at)
    first = RunningArgmax(len(gains) + 1)
    parts: list[tuple[Array, Array, Array]] = []
    low = 0
    for seen in each_chunk(check.look, check.diagonal, entries_each(picks, check.diagonal)):
        first.see(seen.contenders, low)
        low += len(seen.before)
        parts.append((seen.before, seen.after, seen.scores))
    places, own = zip(*(first.winner(row) for row in range(len(first.most))), strict=True)
    return CheckedGuess(
        np.where(np.array(places) >= 0, at[np.array(places)], -1),
        np.array(own),
        first.most,
        *(np.concatenate(some) for some in zip(*parts, strict=True)),
    )


class _ChunkCheck:
    """Checks a guess on a chunk of the items."""

    def __init__(
        self, kernel: Covariance, picks: Indices, factor: Array, gains: Array, at: Indices
    ) -> None:
        self._kernel, self._picks, self._at = kernel, picks, at
        self._known = len(picks) - len(gains)
        self.diagonal = kernel.diagonal[like(at, kernel.diagonal)]
        self._whiten = Whitening(factor, self.diagonal)
        self._gains = like(gains, self.diagonal)
        # Where the picks of the guess are among the items.
        own = picks[self._known :]
        self._own = np.where(np.isin(own, at), np.searchsorted(at, own), -1)

    def look(self, part: slice) -> _ChunkResult:
        """Check the guess on the items of one chunk. Cost len(part) · len(picks)²."""
        left = self._left(part)
        xp = namespace(left)
        check_semidefinite(left[-1], self.diagonal[part], self._at[part])
        before = _kept(left[0])
        self._forget(left, part)
        scores = xp.zeros_like(left[0])
        if len(self._gains):
            scores = xp.max(left[:-1] / self._gains[:, None], axis=0)
        return _ChunkResult(contenders(left), before, _kept(left[-1]), to_numpy(scores))

    def _left(self, part: slice) -> Array:
        """Conditional variances after every prefix, (d + 1, len(part))."""
        diagonal, known = self.diagonal[part], self._known
        white = self._whiten(self._kernel.block(self._picks, self._at[part]))
        xp = namespace(white)
        white *= white
        explained = xp.sum(white[:known], axis=0)[None]
        # v(j|S_t) = L_jj - |C⁻¹ L_Sj|² for every prefix S_t of the picks at once (MATH 6.4).
        left: Array = diagonal - xp.cumsum(xp.concat([explained, white[known:]]), axis=0)
        return left

    def _forget(self, left: Array, part: slice) -> None:
        """Put -inf where an item was picked, or where its variance is rounding error."""
        xp = namespace(left)
        for t, place in enumerate(self._own):
            if part.start <= place < part.stop:
                left[t + 1 :, place - part.start] = -np.inf
        floor = np.array([unit(left, self._known + t) for t in range(len(left))])
        # Floors rise and variances fall, so the last prefix shows all items concerned.
        (low,) = xp.nonzero(left[-1] <= floor[-1] * self.diagonal[part])
        if len(low):
            some = left[:, low]
            least = like(floor, left)[:, None] * self.diagonal[part][low]
            left[:, low] = xp.where(some > least, some, -np.inf)


def _kept(row: Array) -> Array:
    """A copy of a row on the host, which does not keep the whole array in memory."""
    return to_numpy(namespace(row).asarray(row, copy=True))


# The search. All of these are our choice.

_SHORT, _BYTES = 16_384, 2**27  # items on the short list, or fewer if their factor takes more bytes
_AHEAD = 128  # picks guessed ahead


def lazy_picks(
    kernel: Covariance, k: int, *, short: int = _SHORT, memory: int = _BYTES, ahead: int = _AHEAD
) -> GreedyPicks:
    """The picks of plain greedy, by a few passes over the items; 1 <= k <= n.

    The short list has ``short`` items, or fewer if k rows of them would take more than ``memory``
    bytes; ``ahead`` picks are guessed at a time. None of these changes the picks.

    A pass confirms at least one pick, mostly dozens. Cost n k² a pass; memory a few chunks of k
    columns and k rows of the short list, beside that of the kernel.
    """
    size = min(short, max(memory // (8 * k), 4 * k))
    search = _Search(kernel, k, size, ahead)
    while len(search.known.picks) < k:
        search.advance()
    return GreedyPicks(search.known.picks, search.known.gains, search.passes)


class _Search:
    """The picks that are known, and a bound on every item's conditional variance."""

    def __init__(self, kernel: Covariance, k: int, size: int, ahead: int) -> None:
        self.kernel, self.k, self.passes, self.known = kernel, k, 0, EMPTY
        self._size, self._ahead = size, ahead
        self._bounds = to_numpy(kernel.diagonal).copy()
        self._short = spread(self._bounds, size)
        self._rounding = unit(kernel.diagonal, k) * float(self._bounds.max())

    def advance(self) -> None:
        """Guess the next picks on the short list, and check them on all other items."""
        short = np.union1d(self._short, self.known.picks)
        rest = np.delete(self._bounds, short)
        outside = float(rest.max()) * (1.0 + MARGIN) + self._rounding if len(rest) else -np.inf
        guess = guess_ahead(
            self.kernel, self.known, short, outside, count=self.k, ahead=self._ahead
        )
        self.known = guess.head(guess.sure)
        if guess.sure < self.k:
            self._check(guess)

    def _check(self, guess: Guess) -> None:
        """One pass: keep the picks that are right, and correct the first that is wrong."""
        gains = guess.gains[guess.sure :]
        # An item with a smaller bound cannot be picked before the guess ends.
        least = gains[-1] * (1.0 - MARGIN) - self._rounding if len(gains) else -np.inf
        at = np.flatnonzero((self._bounds >= least) & (self._bounds > -np.inf))
        if len(at) == 0:
            raise rank_error(self.k, guess.sure)
        found = check_guess(self.kernel, guess.picks, guess.factor, gains, at)
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
        """The next short list: half by bounds, half by how near items came to being picked."""
        half = self._size // 2
        return np.concatenate([largest(self._bounds, half), at[largest(scores, half)]])

    def _correct(self, found: CheckedGuess, place: int) -> None:
        """Add the greedy pick after prefix ``place``; an error if no variance is left."""
        if found.gains[place] == -np.inf:
            raise rank_error(self.k, len(self.known.picks))
        pick, own, gain = int(found.winners[place]), found.own[place], found.gains[place]
        self.known = self.known.plus(self.kernel, pick, float(own), float(gain))


class GreedyPicks(NamedTuple):
    """The picks of greedy in order, and the factor by which each multiplied det L_S."""

    picks: Indices  # (k,)
    gains: Array  # (k,)
    passes: int  # the number of passes over all n items
