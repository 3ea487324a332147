"""Fronts and their hypervolume: which values no other dominates, and what a further one would add.

Every goal is to be maximised here. A value (m,) dominates another if it is at least as good in all
m goals and better in one. The hypervolume of a front is the volume of what it dominates above the
worst values that count, the reference point.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.arrays import Array, Indices, Mask

EXACT = 3  # goals up to which gains of hypervolume are exact; more are made one number
_ENTRIES = 2**22  # of an array worked on at a time, 32 MiB
_AUGMENT = 0.05  # share of the sum in the augmented Chebyshev scalarisation (Knowles 2006)


def nondominated(values: Array) -> Mask:
    """Which of the values (n, m) no other dominates, (n,); of equal ones all. Cost n · front · m.

    >>> nondominated(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0]]))
    array([ True,  True, False])
    """
    keep = np.zeros(len(values), dtype=bool)
    front, size = np.empty_like(values), 0
    # The order of a lexicon: nothing dominates what comes before it. (A sum of goals of very
    # different size would be rounded, and lose the small ones.)
    for i in np.lexsort(-values.T[::-1]):
        others = front[:size]
        as_good = (others >= values[i]).all(axis=1)
        if not (as_good & (others > values[i]).any(axis=1)).any():
            front[size], keep[i] = values[i], True
            size += 1
    return keep


def front_of(values: Array) -> Array:
    """The values (f, m) of those (n, m) that no other dominates, each once."""
    return np.unique(values[nondominated(values)], axis=0) if len(values) else values


def hypervolume(values: Array, worst: Array) -> float:
    """The volume that values (n, m) dominate above ``worst`` (m,), exactly.

    Up to three goals by the sweep of `boxes`, n log n and n for each box that it changes; above, by
    what each value dominates alone (While, Bradstreet & Barone 2012), about n^(m - 2) at worst.

    >>> hypervolume(np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros(2))
    4.0
    """
    return _volume(values[(values > worst).all(axis=1)] - worst)


def _volume(values: Array) -> float:
    """The volume between zero and positive values (n, m)."""
    m = values.shape[1]
    if m == 1:
        return float(values.max(initial=0.0))
    if m <= 3:
        height = values[:, 2] if m == 3 else np.ones(len(values))
        order = np.argsort(-height, kind="stable")
        plane, sweep = values[order, :2].tolist(), _Strips(np.zeros(2))
        levels = height[order].tolist()
        return sum(z * sweep.cover(x, y, z) for (x, y), z in zip(plane, levels, strict=True))
    # Those after a value reach at least as far in the last goal, and what they share with it ends
    # where it does.
    values = front_of(values)
    values = values[np.argsort(values[:, -1], kind="stable")]
    flat, last = values[:, :-1], values[:, -1]
    return sum(
        float(last[i] * (flat[i].prod() - _volume(np.minimum(flat[i + 1 :], flat[i]))))
        for i in range(len(values))
    )


_DIRECTIONS = 64  # for two goals; four times as many for more


def directions(m: int) -> Array:
    """Directions (l, m) spread uniformly over the positive part of the unit sphere.

    >>> directions(1)
    array([[1.]])
    """
    if m == 1:
        return np.ones((1, 1))
    if m == 2:
        angles = 0.5 * np.pi * (np.arange(_DIRECTIONS) + 0.5) / _DIRECTIONS
        return np.column_stack([np.cos(angles), np.sin(angles)])
    from scipy.special import ndtri
    from scipy.stats import qmc

    even = qmc.Sobol(m, rng=0).random(4 * _DIRECTIONS)
    normal = np.abs(ndtri(0.5 + 0.5 * even))
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def reaches(values: Array, along: Array, least: float) -> Array:
    """How far sets of values (s, n, m) reach along directions (l, m), at least ``least``: (s, l).

    Along λ a value reaches min_j y_j / λ_j, and of a set the one that reaches farthest counts.
    """
    reached = np.full((len(values), len(along)), least)
    for i, direction in enumerate(along):
        far = values[:, :, 0] / direction[0]
        for j in range(1, values.shape[2]):
            np.minimum(far, values[:, :, j] / direction[j], out=far)
        reached[:, i] = far.max(axis=1, initial=least)
    return reached


@dataclass(frozen=True)
class Boxes:
    """Disjoint boxes that fill what no value of a front dominates, above the worst values.

    A further value adds to the hypervolume its share of each box.
    """

    lower: Array  # (b, m)
    upper: Array  # (b, m), with infinite ends

    def gains(self, values: Array) -> Array:
        """What each of the values (n, m) would add to the hypervolume, (n,). Cost n · b · m."""
        size = max(1, _ENTRIES // max(1, self.lower.size))
        parts = [self._some(values[i : i + size]) for i in range(0, len(values), size)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _some(self, values: Array) -> Array:
        sides = np.ones((len(values), len(self.lower)))
        for j in range(values.shape[1]):
            top = np.minimum(values[:, j, None], self.upper[:, j])
            sides *= np.maximum(top - self.lower[:, j], 0.0)
        return np.asarray(sides.sum(axis=1))


def boxes(front: Array, worst: Array) -> Boxes:
    """The boxes of a front (f, m) for one, two or three goals; at most 2f + 1 of them.

    One goal: all above the best. Two: a strip for each value. Three: the strips of the first two
    goals, from the best of the third downwards; a strip ends where a value of the front covers it.
    """
    above = front[(front > worst).all(axis=1)]
    m = len(worst)
    if m == 1:
        best = max([float(worst[0]), *above[:, 0].tolist()])
        return Boxes(np.array([[best]]), np.array([[np.inf]]))
    height = above[:, 2] if m == 3 else np.full(len(above), np.inf)  # no strip of a plane ends
    sweep = _Strips(worst[:2])
    for i in np.argsort(-height, kind="stable"):
        sweep.cover(float(above[i, 0]), float(above[i, 1]), float(height[i]))
    found = np.array(sweep.finished(float(worst[2]) if m == 3 else -np.inf)).reshape(-1, 6)
    lower, upper = found[:, :m], found[:, 3 : 3 + m]
    return Boxes(lower, upper)


class _Strips:
    """The part of a plane that no value covers yet: strips along the first goal, upwards open.

    Values come from the best of a third goal downwards. A strip lasts from the height at which it
    began to that at which a value covers a part of it, and is then a box.
    """

    def __init__(self, worst: Array) -> None:
        # Each (left, right, floor, height at which it began), from left to right.
        self._open = [(float(worst[0]), np.inf, float(worst[1]), np.inf)]
        self._boxes: list[tuple[float, ...]] = []

    def cover(self, first: float, second: float, height: float) -> float:
        """Cover all that is below a value at this height in both goals; return the new area."""
        # Strips are in the order of the first goal and their floors fall: those hit are neighbours.
        start = bisect_left(self._open, True, key=lambda strip: strip[2] < second)
        end = bisect_left(self._open, first, key=lambda strip: strip[0])
        hit = self._open[start:end]
        if not hit:
            return 0.0
        for strip in hit:
            self._close(strip, height)
        covered = [(hit[0][0], first, second, height)]
        if hit[-1][1] > first:
            covered.append((first, hit[-1][1], hit[-1][2], height))
        self._open[start:end] = covered
        return sum((min(right, first) - left) * (second - floor) for left, right, floor, _ in hit)

    def _close(self, strip: tuple[float, float, float, float], height: float) -> None:
        left, right, floor, began = strip
        if began > height:
            self._boxes.append((left, floor, height, right, np.inf, began))

    def finished(self, height: float) -> list[tuple[float, ...]]:
        """All boxes, each as its lower and its upper corner, down to a last height."""
        for strip in self._open:
            self._close(strip, height)
        return self._boxes


def chebyshev(values: Array, weights: Array, best: Array) -> Array:
    """Augmented Chebyshev scalarisation: the weighted shortfall from the ideal, negative, (n,).

    The largest of the m shortfalls counts, and a little of their sum, so that no value that another
    dominates wins. Values (n, m); weights (m,) or (n, m); ``best`` (m,) is the ideal.
    """
    short = weights * (best - values)
    return np.asarray(-short.max(axis=1) - _AUGMENT * short.sum(axis=1))


@dataclass(frozen=True)
class Front:
    """A front to be improved on, in units in which each goal counts alike.

    ``values`` (f, m) are those no other dominates, ``worst`` (m,) the reference point. For more
    than three goals a pick is judged by one weighting of the goals, the next one of ``weightings``
    (w, m); ``turn`` counts picks.
    """

    values: Array
    worst: Array
    weightings: Array | None = None
    turn: int = 0

    @cached_property
    def _boxes(self) -> Boxes:
        return boxes(self.values, self.worst)

    @cached_property
    def _weighting(self) -> Array:
        if self.weightings is None or not len(self.weightings):
            return np.full(len(self.worst), 1.0 / len(self.worst))
        return np.asarray(self.weightings[self.turn % len(self.weightings)])

    @property
    def exact(self) -> bool:
        """Whether scores are gains of hypervolume, which only fall as the front grows."""
        return len(self.worst) <= EXACT

    def scores(self, values: Array) -> Array:
        """What each value (n, m) adds to the hypervolume; how far it is from adding, negative.

        With one goal this is its distance from the best. More than three goals: by how much the
        value beats the front at the weighting of this turn.
        """
        if not self.exact:
            ideal = np.maximum(self.values.max(axis=0, initial=-np.inf), self.worst + 1e-9)
            known = chebyshev(self.values, self._weighting, ideal).max(initial=-np.inf)
            floor = chebyshev(self.worst[None], self._weighting, ideal)[0]
            return chebyshev(values, self._weighting, ideal) - max(known, floor)
        scores = self._boxes.gains(values)
        nothing = np.flatnonzero(scores <= 0.0)
        scores[nothing] = -self._shortfalls(values[nothing])
        return scores

    def _shortfalls(self, values: Array) -> Array:
        """How much better in every goal a value (n, m) had to be to add anything, (n,)."""
        short = np.maximum((self.worst - values).max(axis=1), 0.0)
        size = max(1, _ENTRIES // max(1, len(self.values)))
        for i in range(0, len(values) if len(self.values) else 0, size):
            some = values[i : i + size]
            least = self.values[:, 0] - some[:, 0, None]
            for j in range(1, values.shape[1]):
                np.minimum(least, self.values[:, j] - some[:, j, None], out=least)
            short[i : i + size] = np.maximum(short[i : i + size], least.max(axis=1))
        return short

    def with_values(self, values: Array, picks: int = 0) -> Front:
        """The front once these values (k, m) are known too, after so many further picks."""
        every = front_of(np.vstack([self.values, values]))
        return Front(every, self.worst, self.weightings, self.turn + picks)


def spread_over(values: Array, count: int) -> Indices:
    """Indices of at most ``count`` values (n, m): the best of each goal, then the most distant."""
    if len(values) <= count:
        return np.arange(len(values))
    chosen = list(dict.fromkeys(int(i) for i in values.argmax(axis=0)))[:count]
    apart = np.min([np.abs(values - values[i]).max(axis=1) for i in chosen], axis=0)
    while len(chosen) < count:
        chosen.append(int(np.argmax(apart)))
        apart = np.minimum(apart, np.abs(values - values[chosen[-1]]).max(axis=1))
    return np.array(chosen)
