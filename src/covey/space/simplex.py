"""Shares of a whole between bounds: nearest points, uniform points, whole steps, and their number.

A simplex here is the set of x (p,) with low <= x <= high and sum(x) = total. All functions take a
row of bounds for each point, so that points of different faces, where some shares are 0, are worked
on together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask

_SWEEPS = 60  # of moves of pairs; their chain forgets its start in about log p of them


def nearest_shares(x: Array, low: Array, high: Array, total: Array) -> Array:
    r"""The points (n, p) nearest to ``x`` whose shares sum to the totals (n,).

    .. math:: clip(x - \lambda, low, high), \qquad \lambda : \text{the sum is } total

    The sum falls with the shift, in straight pieces between the shifts at which a share meets a
    bound; these are sorted. A row whose bounds do not allow its total ends at one of them.
    """
    turns = np.concatenate([x - high, x - low], axis=1)
    order = np.argsort(turns, axis=1, kind="stable")
    turns = np.take_along_axis(turns, order, axis=1)
    # Behind its first turn a share falls, behind its second it is at its lower bound.
    falling = np.where(order < x.shape[1], 1, -1).cumsum(axis=1)
    drops = (falling[:, :-1] * np.diff(turns, axis=1)).cumsum(axis=1)
    sums = high.sum(axis=1)[:, None] - np.hstack([np.zeros((len(x), 1)), drops])
    piece = np.clip((sums >= total[:, None]).sum(axis=1) - 1, 0, turns.shape[1] - 2)[:, None]
    start, height, slope = (np.take_along_axis(v, piece, axis=1) for v in (turns, sums, falling))
    shift = start + np.maximum(height - total[:, None], 0.0) / np.maximum(slope, 1)
    return settled(np.clip(x - shift, low, high), low, high, total)


def settled(x: Array, low: Array, high: Array, total: Array) -> Array:
    """Shares (n, p) with what is missing to their total, a rounding error, put where there is room.

    That is on the share farthest from its bounds.
    """
    place = np.minimum(x - low, high - x).argmax(axis=1)[:, None]
    missing = (total - x.sum(axis=1))[:, None]
    moved = np.take_along_axis(x, place, axis=1) + missing
    at_least, at_most = (np.take_along_axis(b, place, axis=1) for b in (low, high))
    found = x.copy()
    np.put_along_axis(found, place, np.clip(moved, at_least, at_most), axis=1)
    return found


def uniform_shares(
    low: Array, high: Array, total: Array, rng: np.random.Generator, *, whole: bool = False
) -> Array:
    """Points (n, p), each uniform on the simplex that its row of bounds leaves.

    Without an upper bound that matters they are shares of a stick broken at random. With one, a
    Gibbs chain moves pairs of shares, all pairs of a random matching at once: the sum of a pair
    stays, and its split is uniform between the bounds. (Such chains forget their start in O(log p)
    sweeps: Smith 2014, Ann. Appl. Probab. 24, for the simplex without upper bounds.)

    With ``whole`` the bounds and totals are whole, and every point of whole shares is as likely as
    any other: units fall at random on the pieces of the stick (a Dirichlet-multinomial with
    weights 1 is uniform), and the chain splits pairs into whole numbers. Rounding would not do: it
    makes zeros half as likely, and pure components far rarer than that.
    """
    room = high > low
    loose = (total - low.sum(axis=1))[:, None]
    broken = np.where(room, rng.standard_exponential(low.shape), 0.0)
    broken /= np.maximum(broken.sum(axis=1, keepdims=True), 1e-300)
    shares = low + loose * broken
    bounded = (room & (high - low < loose)).any(axis=1)
    some = low[bounded], high[bounded]
    shares[bounded] = nearest_shares(shares[bounded], *some, total[bounded])
    if whole:
        free = ~bounded & room.any(axis=1)
        units = np.rint(loose[free, 0]).astype(np.int64)
        shares[free] = low[free] + rng.multinomial(units, broken[free])
        shares[bounded] = whole_shares(shares[bounded], total[bounded])
    if bounded.any():
        shares[bounded] = _mixed(shares[bounded], *some, rng, whole=whole)
    return shares if whole else settled(shares, low, high, total)


def _mixed(x: Array, low: Array, high: Array, rng: np.random.Generator, *, whole: bool) -> Array:
    """The shares after sweeps of pair moves; those without room are paired with one another."""
    pairs = x.shape[1] // 2
    stuck = ~(high > low)
    for _ in range(_SWEEPS):
        order = np.argsort(rng.random(x.shape) + stuck, axis=1)
        ours, theirs = order[:, 0 : 2 * pairs : 2], order[:, 1 : 2 * pairs : 2]
        (a, b), (al, bl), (ah, bh) = (
            (np.take_along_axis(each, ours, 1), np.take_along_axis(each, theirs, 1))
            for each in (x, low, high)
        )
        both = a + b
        least, most = np.maximum(al, both - bh), np.minimum(ah, both - bl)
        drawn, wide = rng.random(a.shape), np.maximum(most - least, 0.0)
        split = least + (np.floor(drawn * (wide + 1.0)) if whole else drawn * wide)
        x = x.copy()
        np.put_along_axis(x, ours, np.clip(split, al, ah), axis=1)
        np.put_along_axis(x, theirs, np.clip(both - split, bl, bh), axis=1)
    return x


def whole_shares(x: Array, total: Array | int) -> Array:
    """Whole numbers (n, p) that sum to the totals (n,), from shares that do, by largest remainder.

    Whole bounds of the shares hold for the result.

    >>> whole_shares(np.array([[1.4, 2.3, 6.3]]), 10)
    array([[2., 2., 6.]])
    """
    rounded = np.rint(x)
    x = np.where(np.abs(x - rounded) < 1e-9, rounded, x)
    floors = np.floor(x)
    missing = (total - floors.sum(axis=1)).astype(int)
    # Of equal remainders the first comes first, whatever the sorting does.
    order = np.argsort(-(x - floors), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return floors + (rank < missing[:, None])


# Faces: which of the shares are present at all.


def present_parts(
    x: Array, low: Array, high: Array, total: Array, parts: tuple[int, int], optional: Mask
) -> Mask:
    """Which shares (n, p) are present at a point with at most and at least so many, near ``x``.

    They are the largest. ``low`` and ``high`` hold for shares that are present, and those that are
    not ``optional`` always are; the others have one ``low``. Their number is the closest to that of
    ``x`` with which the total can be reached. If the largest reach it with no number, as upper
    bounds may have it, those take their place that do; a row without any is all False.
    """
    closed = high < low  # can never be present
    key = np.where(closed, np.inf, np.where(optional, -x, -np.inf))
    order = np.argsort(key, axis=1, kind="stable")
    wanted = ((x >= 0.5 * low) & (x > 0.0) & ~closed).sum(axis=1)
    fewest = np.maximum(parts[0], (~optional).sum(axis=1))
    most = np.minimum(parts[1], (~closed).sum(axis=1))
    number = _able_number(order, (low, high), total, (fewest, most), wanted)
    there = np.asarray(np.argsort(order, axis=1, kind="stable") < number[:, None])
    short = number == 0
    if short.any():
        widest = np.where(np.isfinite(key), -high, key)[short]
        number = _able_number(
            np.argsort(widest, axis=1, kind="stable"),
            (low[short], high[short]),
            total[short],
            (fewest[short], most[short]),
            wanted[short],
        )
        there[short] = parts_that_reach(key[short], high[short], total[short], number)
    return there


def _able_number(
    order: Indices,
    bounds: tuple[Array, Array],
    total: Array,
    allowed: tuple[Indices, Indices],
    wanted: Indices,
) -> Indices:
    """How many shares (n,), in an order (n, p), reach the total; nearest to ``wanted``, or 0."""
    lows, highs = (np.take_along_axis(b, order, axis=1).cumsum(axis=1) for b in bounds)
    p = order.shape[1]
    count = np.arange(1, p + 1)
    able = (lows <= total[:, None] + _slack(total)) & (highs >= total[:, None] - _slack(total))
    able &= (count >= allowed[0][:, None]) & (count <= allowed[1][:, None])
    apart = np.where(able, np.abs(count - wanted[:, None]), p + 1)
    return np.asarray(np.where(able.any(axis=1), apart.argmin(axis=1) + 1, 0))


def parts_that_reach(key: Array, high: Array, total: Array, number: Indices) -> Mask:
    """Which shares (n, p) are present, so many of each row, that together reach its total.

    They are taken by their ``key``, the lowest first, unless the widest of the others could not
    make up for the choice; those at -inf always are, those at inf never.
    """
    left, there = np.asarray(key < np.inf), np.zeros(key.shape, dtype=bool)
    widest = np.argsort(-high, axis=1, kind="stable")
    sorted_high = np.take_along_axis(high, widest, axis=1)
    need, room = total * (1.0 - 1e-12), number.copy()
    for place in np.argsort(key, axis=1, kind="stable").T[:, :, None]:
        mine = np.take_along_axis(high, place, axis=1)[:, 0]
        able = np.take_along_axis(left, place, axis=1)[:, 0]
        np.put_along_axis(left, place, False, axis=1)
        others = np.take_along_axis(left, widest, axis=1)
        others &= others.cumsum(axis=1) < room[:, None]
        must = np.take_along_axis(key, place, axis=1)[:, 0] == -np.inf
        reached = mine + np.where(others, sorted_high, 0.0).sum(axis=1) >= need
        taken = able & (room > 0) & (must | reached)
        np.put_along_axis(there, place, taken[:, None], axis=1)
        need, room = need - np.where(taken, mine, 0.0), room - taken
    return there


def _slack(total: Array) -> Array:
    return 1e-12 * np.abs(total)[:, None]


# Compositions: whole shares that sum to a whole number, counted and listed.

Bound = tuple[bool, int, int]  # whether it may be 0 instead, and the least and most of it


@lru_cache(maxsize=64)
def count_compositions(bounds: Sequence[Bound], total: int, parts: tuple[int, int]) -> int:
    """How many whole shares within bounds sum to the total, with so many of them above 0.

    Exact up to 2^53. One pass over the parts, with the number of ways to reach each sum with each
    number of parts. ``bounds`` is a tuple.

    >>> count_compositions(((True, 1, 4),) * 3, 4, (1, 3))
    15
    """
    ways = np.zeros((len(bounds) + 1, total + 1))  # (parts present, sum)
    ways[0, 0] = 1.0
    for optional, least, most in bounds:
        low, high = max(least, 0), min(most, total)
        now = ways.copy() if optional else np.zeros_like(ways)
        if low <= high:
            sums = np.cumsum(ways, axis=1)
            within = sums[:, : total + 1 - low].copy()  # sums of the others: total - low and less
            width = high - low + 1
            if width <= total - low:
                within[:, width:] -= sums[:, : total + 1 - low - width]
            now[1:, low:] += within[:-1]
        ways = now
    return round(float(ways[max(parts[0], 0) : parts[1] + 1, total].sum()))


def list_compositions(bounds: Sequence[Bound], total: int, parts: tuple[int, int]) -> Array:
    """All whole shares (m, p) that `count_compositions` counts, the last share running fastest."""
    values = [
        sorted({*([0] if optional else []), *range(max(low, 0), min(high, total) + 1)})
        for optional, low, high in bounds
    ]
    if not all(values):
        return np.empty((0, len(bounds)))
    least = [*np.cumsum([v[0] for v in values][::-1])[::-1].tolist(), 0]
    most = [*np.cumsum([v[-1] for v in values][::-1])[::-1].tolist(), 0]
    rows, sums, counts = np.empty((1, 0)), np.zeros(1), np.zeros(1)
    for j, each in enumerate(values):
        level = np.array(each, dtype=np.float64)
        some, place = np.repeat(np.arange(len(rows)), len(level)), np.tile(level, len(rows))
        sums, counts = sums[some] + place, counts[some] + (place > 0.0)
        left = total - sums
        able = (left >= least[j + 1]) & (left <= most[j + 1]) & (counts <= parts[1])
        able &= counts + len(values) - j - 1 >= parts[0]
        rows = np.hstack([rows[some], place[:, None]])[able]
        sums, counts = sums[able], counts[able]
    return rows


# All of it for one mixture.

_REDRAWS = 32  # of faces that cannot reach the total


@dataclass(frozen=True, eq=False)
class Simplex:
    """The shares that one mixture allows, in its own units or in whole steps.

    Attributes:
        low, high: bounds (p,) of each share where it is present; low above high if it never is.
        optional: mask (p,) of the shares that may be 0 instead.
        parts: how many may be present, at least and at most.
        total: what they sum to.
        whole: whether they are whole numbers, counts of a step.
    """

    low: Array
    high: Array
    optional: Mask
    parts: tuple[int, int]
    total: float
    whole: bool

    @property
    def faces(self) -> bool:
        """Whether some share may be 0 where its bounds do not say so, or fewer may be present."""
        p = len(self.low)
        return bool(self.optional.any() or (self.high < self.low).any() or self.parts[1] < p)

    def near(self, x: Array) -> Array:
        """The shares (n, p) on the face that ``x`` suggests, nearest to it."""
        low, high = self.face_of(x)
        total = np.full(len(x), self.total)
        found = nearest_shares(x, low, high, total)
        return whole_shares(found, round(self.total)) if self.whole else found

    def face_of(self, x: Array) -> tuple[Array, Array]:
        """Bounds (n, p) of the face near each point (n, p)."""
        low, high = (np.broadcast_to(b, x.shape) for b in (self.low, self.high))
        if not self.faces:
            return low, high
        optional, total = np.broadcast_to(self.optional, x.shape), np.full(len(x), self.total)
        there = present_parts(x, low, high, total, self.parts, optional)
        return np.where(there, low, 0.0), np.where(there, high, 0.0)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Shares (count, p), uniform on a random face, steps and all."""
        low, high = self.draw_faces(count, rng)
        return uniform_shares(low, high, np.full(count, self.total), rng, whole=self.whole)

    def draw_faces(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Bounds (count, p) of random faces: the number of parts uniform, then which they are.

        Faces of different dimension have no common measure; this way each number of parts is tried
        as often as any other. (Our choice.)
        """
        shape = (count, len(self.low))
        low, high = (np.broadcast_to(b, shape) for b in (self.low, self.high))
        if not self.faces:
            return low, high
        able = self.numbers_of_parts()
        wanted = rng.choice(able, size=count)[:, None]
        closed = self.high < self.low
        there = np.zeros(shape, dtype=bool)
        short = np.ones(count, dtype=bool)
        for attempt in range(_REDRAWS + 1):
            key = rng.random((int(short.sum()), shape[1]))
            if attempt == _REDRAWS:  # few reach it: in a random order, those that still can
                key = np.where(closed, np.inf, np.where(self.optional, key, -np.inf))
                each = high[short], np.full(len(key), self.total), wanted[short, 0]
                there[short] = parts_that_reach(key, *each)
                break
            key = key - 2.0 * ~self.optional + 2.0 * closed
            rank = np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1, kind="stable")
            there[short] = rank < wanted[short]
            short = np.where(there, high, 0.0).sum(axis=1) < self.total * (1.0 - 1e-12)
            if not short.any():
                break
        return np.where(there, low, 0.0), np.where(there, high, 0.0)

    def numbers_of_parts(self) -> list[int]:
        """How many parts may be present so that their bounds allow the total."""
        closed = self.high < self.low
        must = ~self.optional & ~closed
        may = np.flatnonzero(self.optional & ~closed)
        highest = np.sort(self.high[may])[::-1]  # all of these have the same low
        found = []
        for m in range(max(self.parts[0], int(must.sum()), 1), self.parts[1] + 1):
            extra = m - int(must.sum())
            if extra > len(may):
                break
            least = self.low[must].sum() + (self.low[may][0] * extra if extra else 0.0)
            most = self.high[must].sum() + highest[:extra].sum()
            slack = 1e-12 * self.total
            if least <= self.total + slack and most >= self.total - slack:
                found.append(m)
        return found

    @property
    def _whole_bounds(self) -> tuple[Bound, ...]:
        rows = zip(self.optional.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        return tuple((may, round(low), round(high)) for may, low, high in rows)

    @property
    def size(self) -> int | None:
        """How many there are; None if they are not whole."""
        if not self.whole:
            return None
        return count_compositions(self._whole_bounds, round(self.total), self.parts)

    def every(self) -> Array:
        """All of them (m, p), if they are whole."""
        return list_compositions(self._whole_bounds, round(self.total), self.parts)
