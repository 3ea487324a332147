"""Parameters: the `Parameter` protocol, `Real` and `Integer`, and their coordinates in [0, 1].

Also the registry of kinds: `register`, `registered`, `kinds`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from covey.errors import SpaceError
from covey.space.names import is_number, is_whole_text, number, number_from_text, plain
from covey.space.steps import MANY_LEVELS, MOST_LOG_VALUES, MOST_VALUES, Bins, Steps

if TYPE_CHECKING:
    from covey.arrays import Array

P = TypeVar("P", bound="Parameter")


@runtime_checkable
class Parameter(Protocol):
    """A kind of parameter: its values, and their coordinates in [0, 1]^width.

    Real, Integer and Choice are three; :func:`register` adds yours. Inherit from this class, as a
    frozen dataclass, and write ``kind``, ``check``, ``encode``, ``decode`` and ``examples``; the
    rest has a default, right for a continuous kind whose values are numbers.
    ``covey.testing.ParameterContract`` tests the whole.
    """

    __slots__ = ()
    kind: ClassVar[str]  # its name in a log, and ``type`` in covey.toml

    @abstractmethod
    def check(self, value: Any) -> Any:
        """The value in canonical form, or a SpaceError that says why it is not a value."""

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, width) of n values, checked."""

    @abstractmethod
    def decode(self, columns: Array) -> list[Any]:
        """Values at coordinates (n, width), which may lie outside [0, 1] or on no value."""

    @abstractmethod
    def examples(self, most: int) -> list[Any]:
        """At most ``most`` distinct values in order, from end to end if they are numbers."""

    def snap(self, columns: Array) -> Array:
        """Coordinates of the values at ``columns``: encode(decode(columns)), to the last bit."""
        return self.encode(self.decode(columns))

    def condensed(self, columns: Array) -> Array:
        """Snapped coordinates in fewer columns that tell the same values apart."""
        return columns

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1

    @property
    def size(self) -> int | None:
        """Number of values; None if continuous."""
        return None

    @property
    def continuous(self) -> bool:
        """Whether it is continuous, so that gradient ascent may move it."""
        return self.size is None

    def levels(self) -> Array | None:
        """Coordinates (size, width) of every value in order; None if continuous."""
        return None

    @property
    def finest(self) -> float | None:
        """The difference of coordinates that still counts, where the user has said one."""
        return None

    @property
    def scale(self) -> Literal["linear", "log"] | None:
        """The axis its values are drawn along; None draws them one by one."""
        return None

    # As text and JSON: in logs, in sheets, on the command line.

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again: its kind and the fields of the dataclass."""
        mine = fields(self)  # type: ignore[arg-type]
        return {"kind": self.kind, **{f.name: getattr(self, f.name) for f in mine if f.init}}

    @property
    def opaque(self) -> str | None:
        """What of its description JSON cannot hold, if anything."""
        return None

    def to_json(self, value: Any) -> Any:
        """A checked value as JSON holds it."""
        return value

    def from_json(self, value: Any) -> Any:
        """The value that :meth:`to_json` wrote."""
        return self.check(value)

    def parse(self, text: str) -> Any:
        """The value in a cell or on the command line; :meth:`check` comes after."""
        return number_from_text(text)

    def words(self) -> str:
        """The parameter in words, as ``covey init`` and ``covey next`` print it."""
        return repr(self)

    # What linear constraints need of a numeric parameter.

    @property
    def numeric(self) -> bool:
        """Whether a linear constraint may weigh it; then the following four are needed."""
        return False

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest value; nan if not numeric."""
        return math.nan, math.nan

    @property
    def step(self) -> float | None:
        """Distance of neighbouring values, where all are the same."""
        return None

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1), as floats."""
        raise NotImplementedError

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        raise NotImplementedError


_KINDS: dict[str, type[Parameter]] = {}
_GROUP = "covey.parameters"  # entry points of installed packages, each called as its kind


def register(cls: type[P]) -> type[P]:
    """Class decorator: make a kind of parameter known by its name, in logs and in covey.toml.

    A package that names the class in its entry points ``covey.parameters`` need not be imported.
    """
    held = _KINDS.get(cls.kind, cls)
    again = (held.__module__, held.__qualname__) == (cls.__module__, cls.__qualname__)
    if not again:  # a notebook cell that runs twice may replace its own class
        raise SpaceError(
            f"the kind {cls.kind!r} is already {held.__module__}.{held.__qualname__}; "
            f"give {cls.__qualname__} another name"
        )
    _KINDS[cls.kind] = cls
    return cls


def registered(kind: str) -> type[Parameter] | None:
    """The class of this kind, from an installed package if need be; None if there is none."""
    if kind not in _KINDS:
        from importlib.metadata import entry_points

        for entry in entry_points(group=_GROUP, name=kind):
            try:
                register(entry.load())
            except (ImportError, AttributeError) as error:
                raise SpaceError(
                    f"the kind {kind!r} is {entry.value}, which cannot be imported: {error}; "
                    "mend or remove that package"
                ) from error
    return _KINDS.get(kind)


def kinds() -> tuple[str, ...]:
    """The kinds known so far."""
    return tuple(_KINDS)


@register
@dataclass(frozen=True, slots=True, repr=False)
class Real(Parameter):
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
    low: float
    high: float
    log: bool = False
    step: float | None = None
    _steps: Steps | None = field(init=False, compare=False)

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
        object.__setattr__(self, "_steps", self._checked_steps())

    def _checked_steps(self) -> Steps | None:
        if self.step is None:
            return None
        step = number(self.step, "the step of a Real")
        object.__setattr__(self, "step", step)
        steps = Steps.between(self.low, self.high, step)
        if self.log and 2.0 * self.low <= step:
            raise SpaceError(
                f"Real with log=True and a step needs low > step/2, got low={self.low!r}, "
                f"step={step!r}. Raise low, or leave log or step out."
            )
        if self.log and self.high / step > MOST_LOG_VALUES:
            raise SpaceError(f"steps of {step!r} are too fine in logs; leave step out")
        return steps

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step!r}"
        return f"Real(low={self.low!r}, high={self.high!r}, log={self.log!r}{step})"

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; a step only if it has one, as 0.1 knew none."""
        step = {} if self.step is None else {"step": self.step}
        return {"kind": self.kind, "low": self.low, "high": self.high, "log": self.log, **step}

    @property
    def size(self) -> int | None:
        """Number of values in steps; None if continuous."""
        return None if self._steps is None else self._steps.size

    @property
    def continuous(self) -> bool:
        """Whether gradient ascent may move it: without steps, or with very many."""
        return self._steps is None or self._steps.size > MANY_LEVELS

    @property
    def finest(self) -> float | None:
        """Half a step: no two values are alike."""
        return None if self._steps is None else 0.5 * self._bins(self._steps).finest

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
        return self.low, self.high if self._steps is None else self._steps.last

    @property
    def _ends(self) -> tuple[float, float]:
        if not self.log:
            return self.low, self.high
        return float(np.log(self.low)), float(np.log(self.high))

    def _bins(self, steps: Steps) -> Bins:
        bottom = (2 * steps.first - steps.gap) / (2 * steps.gap) if self.log else None
        return Bins(steps.size, bottom)

    def check(self, value: Any) -> float:
        """The value as a float, or an error that says why it is none."""
        x = number(value, "a Real value")
        if self._steps is not None:
            x = self._steps.rounded(x)
        if not self.low <= x <= self.high:
            raise SpaceError(
                f"{x!r} is outside [{self.low!r}, {self.high!r}]; change it or widen the range"
            )
        if self._steps is not None:
            self._steps.require(x)
        return x

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of n values."""
        return self._place(np.array([self.check(value) for value in values], dtype=np.float64))

    def _place(self, x: Array) -> Array:
        if self._steps is not None:
            return self._bins(self._steps).centres(self._steps.nearest(x))
        first, last = self._ends
        u = ((np.log(x) if self.log else x) - first) / (last - first)
        # The ends are set, not computed: logs of scalars and of arrays may differ in the last bit.
        u = np.where(x <= self.low, 0.0, np.where(x >= self.high, 1.0, np.clip(u, 0.0, 1.0)))
        return u[:, None]

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1), never outside the range."""
        if self._steps is not None:
            return self._steps.values(self._bins(self._steps).ranks(columns))
        first, last = self._ends
        u = columns[:, 0]
        x = first + np.clip(u, 0.0, 1.0) * (last - first)
        if self.log:
            with np.errstate(over="ignore"):  # clipped below
                x = np.exp(x)
        x = np.clip(x, self.low, self.high)
        return np.where(u <= 0.0, self.low, np.where(u >= 1.0, self.high, x))

    def decode(self, columns: Array) -> list[float]:
        """Values at coordinates (n, 1)."""
        return [float(x) for x in self.numbers(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates of the values at ``columns``: in [0, 1], on the grid of floats or steps."""
        return self._place(self.numbers(columns))

    def levels(self) -> Array | None:
        """Coordinates (size, 1) of every value in order; None if continuous."""
        if self._steps is None:
            return None
        return self._bins(self._steps).centres(np.arange(self._steps.size))

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        return self._place(np.clip(x, *self.span))

    def examples(self, most: int) -> list[float]:
        """Every value if they are few, else some at equal distances on its axis, ends included."""
        levels = self.levels() if self.size is not None and self.size <= most else None
        u = np.linspace(0.0, 1.0, most)[:, None] if levels is None else levels
        return list(dict.fromkeys(self.decode(u)))

    def words(self) -> str:
        """Its range."""
        step = "" if self.step is None else f" in steps of {self.step!r}"
        return f"{self.kind}, {self.low!r} to {self.span[1]!r}{step}{', log' if self.log else ''}"


@register
@dataclass(frozen=True, slots=True)
class Integer(Parameter):
    r"""The integers low, low + step, ..., high, each at the centre of its bin.

    .. math:: u_i = (i + \tfrac12) / n, \qquad\text{with log, bin edges at } \log(v \pm step/2)

    So a uniform coordinate gives every value its fair share: 1/n, or with ``log`` the share of
    its bin in logs.

    >>> Integer(1, 4).encode([1, 4])
    array([[0.125],
           [0.875]])
    """

    kind: ClassVar[str] = "integer"
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
        if self.size > MOST_VALUES or (self.log and self.high / self.step > MOST_LOG_VALUES):
            raise SpaceError(
                f"Integer from {self.low} to {self.high} has more values than float64 can tell "
                "apart; use a larger step, or Real and round inside the objective"
            )

    @property
    def size(self) -> int:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

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
        return float(self.low), float(self.high)

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

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, 1) of n values: the centres of their bins."""
        ranks = [(self.check(value) - self.low) // self.step for value in values]
        return self._bins.centres(np.array(ranks, dtype=np.intp))

    @property
    def _bins(self) -> Bins:
        return Bins(self.size, (2 * self.low - self.step) / (2 * self.step) if self.log else None)

    def numbers(self, columns: Array) -> Array:
        """Values (n,) at coordinates (n, 1), as floats."""
        ranks = self._bins.ranks(columns)
        return np.asarray(self.low + float(self.step) * ranks, dtype=np.float64)

    def decode(self, columns: Array) -> list[int]:
        """Values at coordinates (n, 1)."""
        return [self.low + self.step * rank for rank in self._bins.ranks(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates moved to the centres of their bins."""
        return self._bins.centres(self._bins.ranks(columns))

    def levels(self) -> Array:
        """Coordinates (size, 1) of every value in order."""
        return self._bins.centres(np.arange(self.size))

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the values nearest to numbers (n,)."""
        ranks = np.rint((np.clip(x, self.low, self.high) - self.low) / self.step)
        return self._bins.centres(ranks.astype(np.intp))

    def examples(self, most: int) -> list[int]:
        """Every value if they are few, else some at equal distances on its axis."""
        u = self.levels() if self.size <= most else np.linspace(0.0, 1.0, most)[:, None]
        return list(dict.fromkeys(self.decode(u)))

    def parse(self, text: str) -> int | float:
        """The number a person wrote; 3.0 is an Integer too, the check decides."""
        x = number_from_text(text)
        return int(text) if is_whole_text(text) else x

    def words(self) -> str:
        """Its range."""
        step = "" if self.step == 1 else f" in steps of {self.step!r}"
        return f"{self.kind}, {self.low!r} to {self.high!r}{step}{', log' if self.log else ''}"


def _whole(value: Any, field: str) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpaceError(f"the {field} of an Integer must be a whole number, got {value!r}")
    number(value, f"the {field} of an Integer")
    return value
