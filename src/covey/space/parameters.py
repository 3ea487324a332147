"""`Real` and `Integer`: parameters that are numbers, and their coordinates in [0, 1]."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from covey.errors import SpaceError
from covey.space.conditions import Condition, described, shown_when
from covey.space.kinds import Parameter, kinds, register, registered
from covey.space.names import is_number, is_whole_text, number, plain
from covey.space.steps import MANY_LEVELS, MOST_LOG_VALUES, MOST_VALUES, Line, Steps
from covey.spreadsheets import number_from_text

if TYPE_CHECKING:
    from covey.arrays import Array

__all__ = ["Integer", "Numeric", "Parameter", "Real", "kinds", "register", "registered"]


@dataclass(frozen=True, slots=True, repr=False)
class Numeric(Parameter):
    """Numbers from ``low`` to ``high``: what Real and Integer share.

    A kind says which ends and values it has; their axis knows the coordinates.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: Mapping[str, Any] | None = None
    _axis: Line | Steps = field(init=False, compare=False)
    _usual_step: ClassVar[float | None] = None  # which goes without saying

    def __post_init__(self) -> None:
        object.__setattr__(self, "log", bool(self.log))
        object.__setattr__(self, "when", Condition.of(self.when))
        object.__setattr__(self, "_axis", self._checked())

    @abstractmethod
    def _checked(self) -> Line | Steps:
        """Put the ends and the step into canonical form, and return their axis."""

    def _refuse_low_logs(self) -> None:
        if self.log and self.step is not None and 2 * self.low <= self.step:
            raise SpaceError(
                f"{type(self).__name__} with log=True needs low > step/2, got low={self.low!r}, "
                f"step={self.step!r}. Raise low, or leave log out."
            )

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step!r}"
        ends = f"low={self.low!r}, high={self.high!r}"
        return f"{type(self).__name__}({ends}, log={self.log!r}{step}{shown_when(self.when)})"

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; a step only if it has one, as 0.1 knew none."""
        step = {} if self.step is None else {"step": self.step}
        ends = {"kind": self.kind, "low": self.low, "high": self.high}
        return {**ends, "log": self.log, **step, **described(self.when)}

    @property
    def size(self) -> int | None:
        """Number of values in steps; None if continuous."""
        return self._axis.size

    @property
    def numeric(self) -> bool:
        """Whether a linear constraint may weigh it."""
        return True

    @property
    def scale(self) -> Literal["linear", "log"]:
        """The axis its values are drawn along."""
        return "log" if self.log else "linear"

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return float(self.low), float(self._axis.last)

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of n values."""
        return self._axis.columns(np.array([self.check(value) for value in values], dtype=float))

    def place(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of numbers: outside the range, or between steps, its scale goes on."""
        inside = np.array([self.allows(value) for value in values], dtype=np.bool_)
        at = np.empty((len(values), 1))
        at[inside] = self.encode([values[i] for i in np.flatnonzero(inside).tolist()])
        others = [number(values[i], "a value") for i in np.flatnonzero(~inside).tolist()]
        if others:
            at[~inside] = self._beyond(np.array(others))[:, None]
        return at

    def _beyond(self, x: Array) -> Array:
        """Coordinates (n,) of numbers that are no values, in a line with those of the ends."""
        low, high = self.span
        if low == high:
            return 0.5 + (x - low) / (self.step or 1.0)
        first, last = self.encode([self.check(low), self.check(high)])[:, 0]
        if not self.log:
            return np.asarray(first + (x - low) / (high - low) * (last - first))
        if x.min() <= 0.0:
            raise SpaceError("a number this small has no place on a log scale; leave log out")
        # One by one: NumPy's logs may depend on their neighbours.
        low, high, *logs = map(math.log, (low, high, *x.tolist()))
        return np.asarray(first + (np.array(logs) - low) / (high - low) * (last - first))

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1), never outside the range."""
        return self._axis.numbers(columns)

    def decode(self, columns: Array) -> list[Any]:
        """Values at coordinates (n, 1)."""
        return [float(x) for x in self.numbers(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates of the values at ``columns``: in [0, 1], on the grid of floats or steps."""
        return self._axis.snap(columns)

    def levels(self) -> Array | None:
        """Coordinates (size, 1) of every value in order; None if continuous."""
        return self._axis.centres(np.arange(self._axis.size)) if self._axis.size else None

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        return self._axis.columns(np.clip(x, *self.span))

    def examples(self, most: int) -> list[Any]:
        """Every value if they are few, else some at equal distances on its axis, ends included."""
        levels = self.levels() if self.size is not None and self.size <= most else None
        u = np.linspace(0.0, 1.0, most)[:, None] if levels is None else levels
        return list(dict.fromkeys(self.decode(u)))

    def words(self) -> str:
        """Its range."""
        first, last = self.decode(np.array([[0.0], [1.0]]))
        steps = "" if self.step == self._usual_step else f" in steps of {self.step!r}"
        return f"{self.kind}, {first!r} to {last!r}{steps}{', log' if self.log else ''}"


@register
@dataclass(frozen=True, slots=True, repr=False)
class Real(Numeric):
    r"""A continuous parameter between ``low`` and ``high``, both included.

    .. math:: u = (x - low) / (high - low), \qquad\text{or the same in } \log x

    With ``step`` it has the values low, low + step, ... up to ``high``, as decimals, and their
    coordinates are those of an Integer's: the centres of equal bins. With more than a hundred of
    them gradient ascent moves it as any real, to the nearest value.

    >>> Real(1e-4, 1.0, log=True).encode([1e-2])
    array([[0.5]])
    >>> Real(0.1, 0.3, step=0.05).examples(9)
    [0.1, 0.15, 0.2, 0.25, 0.3]
    """

    kind: ClassVar[str] = "real"
    _given: Real | None = field(init=False, default=None, compare=False)

    def _checked(self) -> Line | Steps:
        for name in ("low", "high"):
            object.__setattr__(self, name, number(getattr(self, name), f"the {name} of a Real"))
        if not self.low < self.high:
            raise SpaceError(f"Real needs low < high, got low={self.low!r}, high={self.high!r}")
        if self.log and self.low < np.finfo(float).tiny:
            raise SpaceError(
                f"Real with log=True needs low > 0 (at least 2.3e-308), got low={self.low!r}. "
                "Raise low, or leave log out."
            )
        line = Line(self.low, self.high, self.log)
        first, last = line.ends
        if not 0.0 < last - first < math.inf:
            raise SpaceError(
                f"float64 cannot divide the range from {self.low!r} to {self.high!r}"
                f"{' in logs' if self.log else ''}. Choose another range or unit."
            )
        if self.step is None:
            return line
        object.__setattr__(self, "step", number(self.step, "the step of a Real"))
        steps = Steps.between(self.low, self.high, self.step, self.log)
        self._refuse_low_logs()
        if self.log and self.high / self.step > MOST_LOG_VALUES:
            raise SpaceError(f"steps of {self.step!r} are too fine in logs; leave step out")
        return steps

    def in_steps(self, low: float, step: float) -> Real:
        """The same with a step that is not its own, such as that of a mixture it is a part of."""
        made = replace(self, low=low, step=step)
        object.__setattr__(made, "_given", self)
        return made

    @property
    def given(self) -> Real:
        """The parameter as it was before `in_steps`."""
        return self if self._given is None else self._given

    @property
    def continuous(self) -> bool:
        """Whether gradient ascent may move it: without steps, or with very many."""
        return self._axis.size is None or self._axis.size > MANY_LEVELS

    @property
    def finest(self) -> float | None:
        """Half a step: no two values are alike."""
        return 0.5 * self._axis.finest if isinstance(self._axis, Steps) else None

    def check(self, value: Any) -> float:
        """The value as a float, or an error that says why it is none."""
        x = self._axis.rounded(number(value, "a Real value"))
        if not self.low <= x <= self.high:
            raise SpaceError(
                f"{x!r} is outside [{self.low!r}, {self.high!r}]; change it or widen the range"
            )
        self._axis.require(x)
        return x


@register
@dataclass(frozen=True, slots=True, repr=False)
class Integer(Numeric):
    r"""The integers low, low + step, ..., high, each at the centre of its bin.

    .. math:: u_i = (i + \tfrac12) / n, \qquad\text{with log, bin edges at } \log(v \pm step/2)

    So a uniform coordinate gives every value its fair share: 1/n, or with ``log`` the share of
    its bin in logs.

    >>> Integer(1, 4).encode([1, 4])
    array([[0.125],
           [0.875]])
    """

    kind: ClassVar[str] = "integer"
    _usual_step: ClassVar[float | None] = 1
    low: int
    high: int
    step: int = 1
    _axis: Steps = field(init=False, compare=False)

    def _checked(self) -> Steps:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, _whole(getattr(self, name), name))
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
        self._refuse_low_logs()
        size = (self.high - self.low) // self.step + 1
        if size > MOST_VALUES or (self.log and self.high / self.step > MOST_LOG_VALUES):
            raise SpaceError(
                f"Integer from {self.low} to {self.high} has more values than float64 can tell "
                "apart; use a larger step, or Real and round inside the objective"
            )
        return Steps(self.low, self.step, 1, size, float(self.high), self.log)

    @property
    def continuous(self) -> bool:
        """Never: what is counted is chosen among its values, however many."""
        return False

    def check(self, value: Any) -> int:
        """The value as an int (3.0 is 3), or an error that says why it is not a value."""
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

    # Whole numbers are exact, those that float64 cannot tell apart too.

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of n values: the centres of their bins."""
        ranks = [(self.check(value) - self.low) // self.step for value in values]
        return self._axis.centres(np.array(ranks, dtype=np.intp))

    def decode(self, columns: Array) -> list[int]:
        """Values at coordinates (n, 1)."""
        return [self.low + self.step * rank for rank in self._axis.ranks(columns).tolist()]

    def parse(self, text: str) -> int | float:
        """The number a person wrote; 3.0 is an Integer too, the check decides."""
        x = number_from_text(text)
        return int(text) if is_whole_text(text) else x


def _whole(value: Any, field: str) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpaceError(f"the {field} of an Integer must be a whole number, got {value!r}")
    number(value, f"the {field} of an Integer")
    return value
