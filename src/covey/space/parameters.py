"""Parameters, and how a value becomes coordinates in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean
from covey.space.names import check_name, is_finite, is_number, is_scalar, listed, number, plain

if TYPE_CHECKING:
    from covey.arrays import Array, Indices

_UNWRITABLE = 10**4300  # Python turns no larger number into digits


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the options, each its own column; with ``ordered`` one column in their order.

    Options may be any objects and come back as they were given (NumPy scalars as Python ones).
    They are told apart by type and value: True, 1 and 1.0 are three options.

    >>> Choice(["adam", "sgd"]).encode(["sgd"])
    array([[0., 1.]])
    >>> Choice(["low", "mid", "high", "top"], ordered=True).encode(["mid"])
    array([[0.375]])
    """

    options: Sequence[Any]
    ordered: bool = False
    _places: dict[tuple[type, Any], int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _listed_options(self.options))
        object.__setattr__(self, "ordered", bool(self.ordered))
        object.__setattr__(self, "_places", {})
        for i, option in enumerate(self.options):
            earlier = self._exact(option, among=i)
            if earlier is not None:
                raise SpaceError(
                    f"options {earlier} and {i} of a Choice are both {option!r}; "
                    "give each option once"
                )
            if _hashable(option):
                self._places[type(option), option] = i

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Choice):
            return NotImplemented
        return (
            self.ordered == other.ordered
            and len(self.options) == len(other.options)
            and all(map(_same, self.options, other.options))
        )

    def __hash__(self) -> int:
        return hash((self.ordered, tuple(type(option) for option in self.options)))

    def __reduce__(self) -> tuple[type[Choice], tuple[Any, ...]]:
        # The look-up table has types as keys, and not every type pickles.
        return Choice, (self.options, self.ordered)

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1 if self.ordered else len(self.options)

    @property
    def size(self) -> int:
        """Number of options."""
        return len(self.options)

    @property
    def numeric(self) -> bool:
        """Whether a linear constraint may weigh it: ordered, and every option a finite number."""
        return self.ordered and all(map(is_finite, self.options))

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest option, when they are numbers."""
        return float(min(self.options)), float(max(self.options))

    def _exact(self, value: Any, among: int) -> int | None:
        if _hashable(value):
            return self._places.get((type(value), value))
        return next((i for i in range(among) if _same(self.options[i], value)), None)

    def index(self, value: Any) -> int:
        """Position of an option, or an error that names the nearest one.

        A number finds an equal number of another type when there is only one: 1 finds 1.0.
        """
        value = plain(value)
        found = self._exact(value, among=self.size)
        if found is not None:
            return found
        if is_number(value):
            equal = [i for i, o in enumerate(self.options) if is_number(o) and o == value]
            if len(equal) == 1:
                return equal[0]
        raise SpaceError(
            f"{value!r} is not an option; the options are {listed(map(repr, self.options))}."
            f"{did_you_mean(value, self.options)}"
        )

    def check(self, value: Any) -> Any:
        """The very option that equals ``value``, or an error."""
        return self.options[self.index(value)]

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, width) of n values."""
        return self._coordinates(np.array([self.index(value) for value in values], dtype=np.intp))

    def _coordinates(self, ranks: Indices) -> Array:
        if self.ordered:
            return ((ranks + 0.5) / self.size)[:, None]
        hot = np.zeros((len(ranks), self.size))
        hot[np.arange(len(ranks)), ranks] = 1.0
        return hot

    def _ranks(self, columns: Array) -> Indices:
        if not self.ordered:
            return np.argmax(columns, axis=1)
        bins = np.floor(np.clip(columns[:, 0], 0.0, 1.0) * self.size)
        return np.minimum(bins, self.size - 1).astype(np.intp)

    def numbers(self, columns: Array) -> Array:
        """Options (n,) at coordinates (n, 1), as floats, when they are numbers."""
        return np.array(self.options, dtype=np.float64)[self._ranks(columns)]

    def decode(self, columns: Array) -> list[Any]:
        """Options at coordinates (n, width): the nearest bin, or the largest column."""
        return [self.options[rank] for rank in self._ranks(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates of the options at ``columns``."""
        return self._coordinates(self._ranks(columns))

    def levels(self) -> Array:
        """Coordinates (size, width) of every option in order."""
        return self._coordinates(np.arange(self.size))

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the options nearest to numbers (n,), when they are numbers."""
        gaps = np.abs(np.array(self.options, dtype=np.float64) - x[:, None])
        return self._coordinates(np.argmin(gaps, axis=1))

    def to_json(self, option: Any) -> Any:
        """A scalar as it is, anything else as ``{"option": index}``."""
        index = self.index(option)
        option = self.options[index]
        return option if is_scalar(option) else {"option": index}

    def from_json(self, value: Any) -> Any:
        """The option that :meth:`to_json` wrote."""
        if not isinstance(value, Mapping):
            return self.check(value)
        index = value.get("option")
        if not isinstance(index, int) or not 0 <= index < self.size:
            raise SpaceError(
                f'{value!r} names no option; expected {{"option": 0}} to '
                f'{{"option": {self.size - 1}}}'
            )
        return self.options[index]

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; an option it cannot hold is only outlined."""
        options = [o if is_scalar(o) else {"opaque": _outline(o)} for o in self.options]
        return {"kind": "choice", "options": options, "ordered": self.ordered}


def _listed_options(options: Any) -> tuple[Any, ...]:
    if isinstance(options, np.ndarray):
        options = list(options)
    if isinstance(options, str | bytes | Mapping | Set) or not isinstance(options, Sequence):
        raise SpaceError(
            f"the options of a Choice must be a list, got {options!r}; "
            "write Choice(['a', 'b']), in the order you want"
        )
    if not options:
        raise SpaceError("a Choice needs at least one option, got none")
    if any(isinstance(o, int) and abs(o) >= _UNWRITABLE for o in options):
        raise SpaceError(
            "an option of a Choice is a whole number of more than 4300 digits, which cannot be "
            "written down; give it as text"
        )
    return tuple(plain(option) for option in options)


def _outline(option: Any) -> str:
    """A text for the fingerprint, the same in every process: no addresses, no order of sets."""
    text = repr(option)
    if isinstance(option, Set) or " at 0x" in text:
        return str(getattr(option, "__qualname__", type(option).__qualname__))
    return text


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a == b)
    except Exception:  # an option may compare as it likes; then only itself is the same
        return False


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
