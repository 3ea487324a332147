"""Numbers and their coordinates in [0, 1]: on a `Line`, or in `Steps` that are exact decimals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from covey.errors import SpaceError

if TYPE_CHECKING:
    from covey.arrays import Array, Indices

MANY_LEVELS = 100  # above so many, a parameter with levels is as good as real
# Beyond these a bin's centre and its edge are too close for float64 to tell them apart.
MOST_VALUES = 2**50
MOST_LOG_VALUES = 2**40
_ROUNDING = 1e-8  # of a step: 0.1 + 0.2 is 0.3, and three steps of 1/3 make 1
_EXACT = 2**53  # whole numbers below are float64, and their quotients are rounded once
_APART = 16  # units in the last place that neighbouring values must differ by


@dataclass(frozen=True, slots=True)
class Line:
    """All numbers from low to high, or their logs, and their coordinates in [0, 1]."""

    low: float
    high: float
    log: bool
    size: ClassVar[None] = None

    @property
    def last(self) -> float:
        """The largest value."""
        return self.high

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis."""
        if not self.log:
            return self.low, self.high
        return float(np.log(self.low)), float(np.log(self.high))

    def rounded(self, x: float) -> float:
        """The number itself: every one is a value."""
        return x

    def require(self, x: float) -> None:
        """Every number inside the range is a value."""

    def columns(self, x: Array) -> Array:
        """Coordinates (n, 1) of numbers (n,)."""
        first, last = self.ends
        u = ((np.log(x) if self.log else x) - first) / (last - first)
        # The ends are set, not computed: logs of scalars and of arrays may differ in the last bit.
        u = np.where(x <= self.low, 0.0, np.where(x >= self.high, 1.0, np.clip(u, 0.0, 1.0)))
        return u[:, None]

    def numbers(self, columns: Array) -> Array:
        """Numbers (n,) at coordinates (n, 1), never outside the range."""
        first, last = self.ends
        u = columns[:, 0]
        x = first + np.clip(u, 0.0, 1.0) * (last - first)
        if self.log:
            with np.errstate(over="ignore"):  # clipped below
                x = np.exp(x)
        x = np.clip(x, self.low, self.high)
        return np.where(u <= 0.0, self.low, np.where(u >= 1.0, self.high, x))

    def snap(self, columns: Array) -> Array:
        """Coordinates of the floats at coordinates (n, 1)."""
        return self.columns(self.numbers(columns))


@dataclass(frozen=True, slots=True)
class Steps:
    """The numbers low, low + step, ..., as the decimals that people write: (first + i gap) / unit.

    Each has its coordinate at the centre of its bin, so that a uniform coordinate gives every value
    its share: the same for all, or with ``log`` the share of its bin in logs, whose edges are half
    a step away.

    >>> Steps.between(0.1, 0.4, 0.05).values(np.arange(4)).tolist()
    [0.1, 0.15, 0.2, 0.25]
    """

    first: int
    gap: int
    unit: int
    size: int
    last: float
    log: bool = False

    @classmethod
    def between(cls, low: float, high: float, step: float, log: bool = False) -> Self:
        """The steps from low up to high, which is the last if it is on the grid.

        A step that was computed, such as 1/3, may miss ``high`` by rounding.
        """
        if step <= 0.0 or step > (high - low) * (1.0 + _ROUNDING):
            raise SpaceError(
                f"the step of a Real must be above 0 and at most high - low = {high - low!r}, "
                f"got {step!r}"
            )
        narrow = step < _APART * float(np.spacing(max(abs(low), abs(high))))
        if narrow or (high - low) / step > MOST_VALUES:
            raise SpaceError(
                f"a Real from {low!r} to {high!r} in steps of {step!r} has more values than float64"
                " can tell apart; use a larger step, or none"
            )
        # From the shortest decimals that mean these floats: 0.1 is 1/10.
        start, gap, reach = (Fraction(repr(x)) for x in (low, step, high))
        count = (reach - start) / gap
        snug = abs(count - round(count)) <= _ROUNDING
        unit = math.lcm(start.denominator, gap.denominator)
        size = (round(count) if snug else math.floor(count)) + 1
        last = high if snug else float(start + (size - 1) * gap)
        return cls(int(start * unit), int(gap * unit), unit, size, last, log)

    @property
    def _logs(self) -> tuple[float, float, float]:
        """The lowest edge in steps, its log, and the width of all bins in logs."""
        bottom = (2 * self.first - self.gap) / (2 * self.gap)
        first = math.log(bottom)
        return bottom, first, math.log(bottom + self.size) - first

    def centres(self, ranks: Indices) -> Array:
        """Coordinates (n, 1) of the values of these ranks."""
        if not self.log:
            return ((ranks + 0.5) / self.size)[:, None]
        bottom, first, width = self._logs
        middle = (np.log(bottom + ranks) + np.log(bottom + ranks + 1.0)) / 2.0
        return np.clip((middle - first) / width, 0.0, 1.0)[:, None]

    def ranks(self, columns: Array) -> Indices:
        """Ranks (n,) of the bins at coordinates (n, 1)."""
        u = np.clip(columns[:, 0], 0.0, 1.0)
        if not self.log:
            bins = u * self.size
        else:
            bottom, first, width = self._logs
            bins = np.exp(first + u * width) - bottom
        return np.clip(np.floor(bins), 0, self.size - 1).astype(np.intp)

    @property
    def finest(self) -> float:
        """The smallest distance of neighbouring centres; in logs the last two are the nearest."""
        return float(np.diff(self.centres(np.array([self.size - 2, self.size - 1])), axis=0)[0, 0])

    def columns(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        return self.centres(self.nearest(x))

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1)."""
        return self.values(self.ranks(columns))

    def snap(self, columns: Array) -> Array:
        """Coordinates (n, 1) moved to the centres of their bins."""
        return self.centres(self.ranks(columns))

    def values(self, ranks: Indices) -> Array:
        """The numbers (n,) of these ranks, each the float nearest to its decimal."""
        end = max(abs(self.first), abs(self.first + self.gap * self.size))
        if max(end, self.unit) < _EXACT:
            x = (self.first + self.gap * ranks) / self.unit
        else:  # Python divides whole numbers of any size with one rounding
            every = ((self.first + self.gap * rank) / self.unit for rank in ranks.tolist())
            x = np.array(list(every), dtype=np.float64)
        return np.where(ranks == self.size - 1, self.last, x)

    def nearest(self, x: Array) -> Indices:
        """Ranks (n,) of the values nearest to numbers (n,)."""
        low = self.first / self.unit
        ranks = np.rint((np.clip(x, low, self.last) - low) / (self.gap / self.unit))
        return np.clip(ranks, 0, self.size - 1).astype(np.intp)

    def rounded(self, x: float) -> float:
        """The value that a number is up to rounding; the number itself if it is none."""
        value = float(self.values(self.nearest(np.array([x])))[0])
        slack = max(_ROUNDING * self.gap / self.unit, 2.0 * float(np.spacing(abs(x))))
        return value if abs(x - value) <= slack else x

    def require(self, x: float) -> None:
        """Raise unless a number inside the range is a value, naming its neighbours."""
        near = int(self.nearest(np.array([x]))[0])
        value = float(self.values(np.array([near]))[0])
        if x != value:
            below = near - (x < value)
            around = [rank for rank in (below, below + 1) if rank < self.size]
            either = " and ".join(repr(y) for y in self.values(np.array(around)).tolist())
            raise SpaceError(
                f"{x!r} is not on the grid of step {self.gap / self.unit!r} from "
                f"{self.first / self.unit!r}; "
                f"{'its neighbours are' if len(around) == 2 else 'the last value is'} {either}"
            )
