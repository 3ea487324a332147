"""Numeric parameters, and how a value becomes a coordinate in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.names import check_name
from covey.space.scalars import is_number, number, plain

if TYPE_CHECKING:
    from covey.arrays import Array, Indices

# Beyond these a bin's centre and its edge are too close for float64 to tell them apart.
_MOST_VALUES = 2**50
_MOST_LOG_VALUES = 2**40


@dataclass(frozen=True, slots=True)
class Real:
    r"""A continuous parameter between ``low`` and ``high``, both included.

    .. math:: u = (x - low) / (high - low), \qquad\text{or the same in } \log x

    >>> Real(1e-4, 1.0, log=True).encode([1e-2])
    array([[0.5]])
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", number(self.low, "the low of a Real"))
        object.__setattr__(self, "high", number(self.high, "the high of a Real"))
        object.__setattr__(self, "log", bool(self.log))
        if not self.low < self.high:
            raise SpaceError(f"Real needs low < high, got low={self.low!r}, high={self.high!r}")
        if self.log and self.low < np.finfo(float).tiny:
            raise SpaceError(
                f"Real with log=True needs low > 0 (at least 2.3e-308), got low={self.low!r}. "
                "Raise low, or leave log out."
            )
        first, last = self._ends
        if not 0.0 < last - first < math.inf:
            raise SpaceError(
                f"float64 cannot divide the range from {self.low!r} to {self.high!r}"
                f"{' in logs' if self.log else ''}. Choose another range or unit."
            )

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1

    @property
    def size(self) -> None:
        """A continuous parameter has no number of values."""
        return

    @property
    def numeric(self) -> bool:
        """Whether a linear constraint may weigh it."""
        return True

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return self.low, self.high

    @property
    def _ends(self) -> tuple[float, float]:
        if not self.log:
            return self.low, self.high
        return float(np.log(self.low)), float(np.log(self.high))

    def check(self, value: Any) -> float:
        """The value as a float, or an error that says why it is not one of ours."""
        x = number(value, "a Real value")
        if not self.low <= x <= self.high:
            raise SpaceError(
                f"{x!r} is outside [{self.low!r}, {self.high!r}]; change it or widen the range"
            )
        return x

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of n values."""
        return self._place(np.array([self.check(value) for value in values], dtype=np.float64))

    def _place(self, x: Array) -> Array:
        first, last = self._ends
        u = ((np.log(x) if self.log else x) - first) / (last - first)
        # The ends are set, not computed: logs of scalars and of arrays may differ in the last bit.
        u = np.where(x <= self.low, 0.0, np.where(x >= self.high, 1.0, np.clip(u, 0.0, 1.0)))
        return u[:, None]

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1), never outside the range."""
        first, last = self._ends
        u = columns[:, 0]
        x = first + np.clip(u, 0.0, 1.0) * (last - first)
        if self.log:
            with np.errstate(over="ignore"):  # the clip below brings it back
                x = np.exp(x)
        x = np.clip(x, self.low, self.high)
        return np.where(u <= 0.0, self.low, np.where(u >= 1.0, self.high, x))

    def decode(self, columns: Array) -> list[float]:
        """Values at coordinates (n, 1)."""
        return [float(x) for x in self.numbers(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates of the values at ``columns``: inside [0, 1], on the grid of the floats."""
        return self._place(self.numbers(columns))

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        return self._place(np.clip(x, self.low, self.high))

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again."""
        return {"kind": "real", "low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True, slots=True)
class Integer:
    r"""The integers low, low + step, ..., high, each at the centre of its bin.

    .. math:: u_i = (i + \tfrac12) / n, \qquad\text{with log, bin edges at } \log(v \pm step/2)

    So a uniform coordinate gives every value its fair share: 1/n, or with ``log`` the share of
    its bin in logs.

    >>> Integer(1, 4).encode([1, 4])
    array([[0.125],
           [0.875]])
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, _whole(getattr(self, name), name))
        object.__setattr__(self, "log", bool(self.log))
        if self.step < 1:
            raise SpaceError(f"Integer needs step >= 1, got {self.step}")
        if self.low > self.high:
            raise SpaceError(f"Integer needs low <= high, got low={self.low}, high={self.high}")
        past = (self.high - self.low) % self.step
        if past:
            fitting = self.high - past + (self.step if 2 * past > self.step else 0)
            raise SpaceError(
                f"Integer in steps of {self.step} from {self.low} never meets high={self.high}; "
                f"the nearest fitting high is {fitting}"
            )
        if self.log and 2 * self.low <= self.step:
            raise SpaceError(
                f"Integer with log=True needs low > step/2, got low={self.low}, step={self.step}. "
                "Raise low, or leave log out."
            )
        if self.size > _MOST_VALUES or (self.log and self.high / self.step > _MOST_LOG_VALUES):
            raise SpaceError(
                f"Integer from {self.low} to {self.high} has more values than float64 can tell "
                "apart; use a larger step, or Real and round inside the objective"
            )

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1

    @property
    def size(self) -> int:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

    @property
    def numeric(self) -> bool:
        """Whether a linear constraint may weigh it."""
        return True

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return float(self.low), float(self.high)

    def check(self, value: Any) -> int:
        """The value as an int (3.0 is 3), or an error that says why it is not one of ours."""
        value = plain(value)
        if not is_number(value) or (isinstance(value, float) and not value.is_integer()):
            raise SpaceError(f"an Integer value must be a whole number, got {value!r}")
        x = int(value)
        if not self.low <= x <= self.high:
            raise SpaceError(
                f"{x} is outside [{self.low}, {self.high}]; change it or widen the range"
            )
        past = (x - self.low) % self.step
        if past:
            raise SpaceError(
                f"{x} is not on the grid of step {self.step} from {self.low}; "
                f"its neighbours are {x - past} and {x - past + self.step}"
            )
        return x

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of n values: the centres of their bins."""
        ranks = [(self.check(value) - self.low) // self.step for value in values]
        return self._centres(np.array(ranks, dtype=np.intp))

    @property
    def _edges(self) -> tuple[float, float, float]:
        """In units of one step: the lower edge, its log, and the width of all bins in logs."""
        bottom = (2 * self.low - self.step) / (2 * self.step)
        first = math.log(bottom)
        return bottom, first, math.log(bottom + self.size) - first

    def _centres(self, ranks: Indices) -> Array:
        if not self.log:
            return ((ranks + 0.5) / self.size)[:, None]
        bottom, first, width = self._edges
        middle = (np.log(bottom + ranks) + np.log(bottom + ranks + 1.0)) / 2.0
        return np.clip((middle - first) / width, 0.0, 1.0)[:, None]

    def _ranks(self, columns: Array) -> Indices:
        u = np.clip(columns[:, 0], 0.0, 1.0)
        if self.log:
            bottom, first, width = self._edges
            bins = np.exp(first + u * width) - bottom
        else:
            bins = u * self.size
        return np.clip(np.floor(bins), 0, self.size - 1).astype(np.intp)

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1), as floats."""
        return np.asarray(self.low + float(self.step) * self._ranks(columns), dtype=np.float64)

    def decode(self, columns: Array) -> list[int]:
        """Values at coordinates (n, 1)."""
        return [self.low + self.step * rank for rank in self._ranks(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates moved to the centres of their bins."""
        return self._centres(self._ranks(columns))

    def levels(self) -> Array:
        """Coordinates (size, 1) of every value in order."""
        return self._centres(np.arange(self.size))

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        ranks = np.rint((np.clip(x, self.low, self.high) - self.low) / self.step)
        return self._centres(ranks.astype(np.intp))

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again."""
        ends = {"low": self.low, "high": self.high}
        return {"kind": "integer", **ends, "log": self.log, "step": self.step}


def _whole(value: Any, field: str) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpaceError(f"the {field} of an Integer must be a whole number, got {value!r}")
    number(value, f"the {field} of an Integer")
    return value


Parameter: TypeAlias = Real | Integer | Choice


def checked_parameters(parameters: Any) -> dict[str, Parameter]:
    """The parameters of a space by name, or an error that shows how to write them."""
    example = "Space({'x': Real(0, 1)})"
    if not isinstance(parameters, Mapping):
        raise SpaceError(f"a Space needs a dict such as {example}, got {parameters!r}")
    if not parameters:
        raise SpaceError(f"a Space needs at least one parameter, got none; try {example}")
    for name, parameter in parameters.items():
        check_name(name, "parameter")
        if not isinstance(parameter, Parameter):
            raise SpaceError(
                f"parameter {name!r} must be Real, Integer or Choice, got {parameter!r}; "
                f"try {example}"
            )
    return dict(parameters)
