"""The `Parameter` protocol, and the registry of its kinds: `register`, `registered`, `kinds`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from covey.errors import SpaceError
from covey.space.conditions import described
from covey.space.names import check_name
from covey.spreadsheets import number_from_text

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

    def allows(self, value: Any) -> bool:
        """Whether it is a value."""
        try:
            self.check(value)
        except SpaceError:
            return False
        return True

    def place(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, width) of values that need not be its own, if its scale has them."""
        return self.encode(values)

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

    @property
    def when(self) -> Mapping[str, Any] | None:
        """The values of other parameters under which it is present; None: always."""
        return None

    # As text and JSON: in logs, in sheets, on the command line.

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again: its kind and the fields of the dataclass."""
        mine = fields(self)  # type: ignore[arg-type]
        told = {f.name: getattr(self, f.name) for f in mine if f.init and f.name != "when"}
        return {"kind": self.kind, **told, **described(self.when)}

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


def checked_parameters(parameters: Any) -> dict[str, Parameter]:
    """The parameters of a space by name, or an error that shows how to write them."""
    example = "Space({'x': Real(0, 1)})"
    if not isinstance(parameters, Mapping):
        raise SpaceError(f"a Space needs a dict such as {example}, got {parameters!r}")
    if not parameters:
        raise SpaceError(f"a Space needs at least one parameter, got none; try {example}")
    for name, parameter in parameters.items():
        check_name(name, "parameter")
        if isinstance(parameter, type) or not isinstance(parameter, Parameter):
            raise SpaceError(
                f"parameter {name!r} must be Real, Integer or Choice, got {parameter!r}; "
                f"try {example}"
            )
    return dict(parameters)


def all_levels(parameter: Parameter) -> Array:
    """Coordinates (size, width) of every value; an error for a kind that forgot to list them."""
    levels = parameter.levels()
    if levels is None:
        raise SpaceError(
            f"{parameter!r} says that it has {parameter.size} values, and levels() gives none; "
            "write that method of its class"
        )
    return levels
