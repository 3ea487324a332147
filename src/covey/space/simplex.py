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

_HALVINGS = 12  # of an interval of rates, which need not be exact


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

    Without an upper bound that matters they are shares of a stick broken at random; with one, see
    `_bounded_shares`.

    With ``whole`` the bounds and totals are whole, and every point of whole shares is as likely as
    any other: units fall at random on the pieces of the stick (a Dirichlet-multinomial with
    weights 1 is uniform). Rounding would not do: it makes zeros half as likely, and pure components
    far rarer than that.
    """
    width, rest = high - low, total - low.sum(axis=1)
    room = width > 0.0
    broken = np.where(room, rng.standard_exponential(low.shape), 0.0)
    broken /= np.maximum(broken.sum(axis=1, keepdims=True), 1e-300)
    bounded = (room & (width < rest[:, None])).any(axis=1)
    if whole:
        shares = rng.multinomial(np.rint(rest).astype(np.int64), broken).astype(np.float64)
    else:
        shares = rest[:, None] * broken
    shares[bounded] = _bounded_shares(width[bounded], rest[bounded], rng, whole=whole)
    return low + shares if whole else settled(low + shares, low, high, total)


def _bounded_shares(width: Array, total: Array, rng: np.random.Generator, *, whole: bool) -> Array:
    """Points (n, p), each uniform among 0 <= x <= width that sum to its total (n,).

    Exponential numbers up to the widths, all of one rate, are uniform given their sum, and so are
    geometric ones among whole numbers. The widest share is what the others leave, kept with the
    probability of its density (probabilistic divide and conquer: Arratia and DeSalvo 2016, Comb.
    Probab. Comput. 25). With the rate at which the total is expected, one in about 2.5 √p is kept.
    """
    most = width.sum(axis=1)
    total = np.clip(total, 0.0, most)
    upper_half = 2.0 * total > most  # what is missing to the widths is drawn instead
    total = np.where(upper_half, most - total, total)
    rates = _rates(width, total, whole=whole)
    last = width.argmax(axis=1)[:, None]
    shares, left = np.zeros(width.shape), np.arange(len(width))
    while len(left):
        rate, ends = rates[left, None], width[left]
        with np.errstate(over="ignore"):
            x = -np.log1p(rng.random(ends.shape) * np.expm1(-rate * (ends + whole))) / rate
        x = np.minimum(np.floor(x), ends) if whole else x
        np.put_along_axis(x, last[left], 0.0, axis=1)
        rest = total[left] - x.sum(axis=1)
        np.put_along_axis(x, last[left], rest[:, None], axis=1)
        slack = 1e-12 * most[left]
        kept = (rest >= -slack) & (rest <= ends.max(axis=1) + slack)
        kept &= rng.random(len(left)) <= np.exp(-rate[:, 0] * np.maximum(rest, 0.0))
        shares[left[kept]] = np.clip(x[kept], 0.0, ends[kept])
        left = left[~kept]
    return np.where(upper_half[:, None], width - shares, shares)


def _rates(width: Array, total: Array, *, whole: bool) -> Array:
    """Rates (n,) near those at which the expected sum is the total, at most half of the widths'."""
    slowest, fastest = np.zeros(len(total)), width.shape[1] / np.maximum(total, 1e-200)
    fastest = np.log1p(fastest) if whole else fastest
    for _ in range(_HALVINGS):
        rate = 0.5 * (slowest + fastest)
        ends = width + whole
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            free = 1.0 / np.expm1(rate) if whole else 1.0 / rate
            beyond = np.where(ends > 0.0, ends / np.expm1(rate[:, None] * ends), free[:, None])
        more = (free[:, None] - beyond).sum(axis=1) > total
        slowest, fastest = np.where(more, rate, slowest), np.where(more, fastest, rate)
    return 0.5 * (slowest + fastest)


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
    ``x`` with which the total can be reached.
    """
    closed = high < low  # can never be present
    wanted = ((x >= 0.5 * low) & (x > 0.0) & ~closed).sum(axis=1)
    fewest = np.maximum(parts[0], (~optional).sum(axis=1))
    most = np.minimum(parts[1], (~closed).sum(axis=1))
    key = np.where(closed, np.inf, np.where(optional, -x, -np.inf))
    return _first_able(key, (low, high), total, (fewest, most), wanted)


def _first_able(
    key: Array,
    bounds: tuple[Array, Array],
    total: Array,
    allowed: tuple[Indices, Indices],
    wanted: Indices,
) -> Mask:
    """Which shares (n, p) are present: those of the lowest key with which the total is reached.

    Where they do not reach it, as upper bounds may have it, as few as need be of those with the
    highest keys give way to the widest of the others; a row without any set is all False.
    """
    n, p = key.shape
    place = _ranks(key)
    by_width = _ranks(np.where(np.isfinite(key), -bounds[1], key))
    there, left = np.zeros((n, p), dtype=bool), np.arange(n)
    for kept in range(p, -1, -1):
        order = _ranks(np.where(place < kept, place - p, by_width)[left])
        number = _able_number(
            np.argsort(order, axis=1),
            (bounds[0][left], bounds[1][left]),
            total[left],
            (allowed[0][left], allowed[1][left]),
            wanted[left],
        )
        there[left] = order < number[:, None]
        left = left[number == 0]
        if len(left) == 0:
            break
    return there


def _ranks(key: Array) -> Indices:
    """The place of each value in its row, the lowest first."""
    return np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1, kind="stable")


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
        wanted, total = rng.choice(self.numbers_of_parts(), size=count), np.full(count, self.total)
        key, short = np.empty(shape), np.arange(count)
        for _ in range(_REDRAWS):
            fresh = np.where(self.optional, rng.random((len(short), shape[1])), -np.inf)
            key[short] = np.where(self.high < self.low, np.inf, fresh)
            just = wanted[short], wanted[short]
            order, bounds = np.argsort(key[short], axis=1), (low[short], high[short])
            short = short[_able_number(order, bounds, total[short], just, wanted[short]) == 0]
            if len(short) == 0:
                break
        there = _first_able(key, (low, high), total, (wanted, wanted), wanted)
        return np.where(there, low, 0.0), np.where(there, high, 0.0)

    def sums(self) -> dict[int, tuple[float, float]]:
        """The least and the most that so many parts sum to, for each number that is allowed."""
        closed = self.high < self.low
        must, may = ~self.optional, self.optional & ~closed
        if (must & closed).any():
            return {}
        number, lows, highs = int(must.sum()), self.low[must].sum(), self.high[must].sum()
        each = self.low[may].min(initial=np.inf)  # all of these have the same low
        widest = np.append(0.0, np.sort(self.high[may])[::-1]).cumsum()
        first, last = max(self.parts[0], number, 1), min(self.parts[1], number + int(may.sum()))
        return {
            m: (
                float(lows + (each * (m - number) if m > number else 0.0)),
                float(highs + widest[m - number]),
            )
            for m in range(first, last + 1)
        }

    def numbers_of_parts(self) -> list[int]:
        """How many parts may be present so that their bounds allow the total."""
        least, most = self.total * (1.0 - 1e-12), self.total * (1.0 + 1e-12)
        return [m for m, (low, high) in self.sums().items() if low <= most and high >= least]

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
