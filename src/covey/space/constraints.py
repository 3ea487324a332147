"""Known constraints: the `Constraint` protocol, linear ones, any function of the point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

from covey.errors import SpaceError
from covey.space.names import number, plain, unknown
from covey.space.parameters import Parameter

if TYPE_CHECKING:
    from covey.arrays import Array, Mask

Predicate: TypeAlias = Callable[[dict[str, Any]], bool]

_ROUNDING = 1e-12


@runtime_checkable
class Constraint(Protocol):
    """A known constraint that can be written down: a frozen dataclass of JSON values."""

    kind: ClassVar[str]  # its name in a log, and in covey.toml

    @property
    def names(self) -> Sequence[str]:
        """The parameters that it is about."""
        ...

    def validate(self, parameters: Mapping[str, Parameter]) -> None:
        """Raise a SpaceError unless it makes sense for these parameters of a space."""
        ...

    def holds(self, columns: Mapping[str, Array], parameters: Mapping[str, Parameter]) -> Mask:
        """Whether each of n points satisfies it: the encoded columns (n, width) by name."""
        ...

    def broken(self, point: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> str | None:
        """How a checked point breaks it, to follow "breaks the constraint"; None if it does not."""
        ...

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again: its kind and its fields."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    r"""A linear inequality on numeric parameters; an equality where lower == upper.

    .. math:: lower \le \sum_j w_j x_j \le upper

    >>> print(Linear({"x": 1, "y": -2}, upper=1.0))
    x - 2 y <= 1
    """

    kind: ClassVar[str] = "linear"
    weights: Mapping[str, float]
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked_weights(self.weights))
        object.__setattr__(self, "lower", _bound(self.lower, "lower"))
        object.__setattr__(self, "upper", _bound(self.upper, "upper"))
        if self.lower == -math.inf and self.upper == math.inf:
            raise SpaceError(
                "Linear has neither bound; give lower=, upper= or both, "
                "as in Linear({'x': 1, 'y': 1}, upper=1.0)"
            )
        if self.lower > self.upper or math.inf in (self.lower, -self.upper):
            raise SpaceError(
                f"no point satisfies Linear with lower={self.lower!r}, upper={self.upper!r}; "
                "lower must be below upper"
            )

    def __hash__(self) -> int:
        return hash((tuple(self.weights.items()), self.lower, self.upper))

    def __str__(self) -> str:
        terms = " ".join(_term(weight, name) for name, weight in self.weights.items())
        text = terms[2:] if terms.startswith("+ ") else terms
        if self.lower == self.upper:
            return f"{text} = {self.upper:.12g}"
        text = f"{self.lower:.12g} <= {text}" if self.lower > -math.inf else text
        return f"{text} <= {self.upper:.12g}" if self.upper < math.inf else text

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters with a weight."""
        return tuple(self.weights)

    def validate(self, parameters: Mapping[str, Parameter]) -> None:
        """Raise unless every weighed name is a numeric parameter of the space."""
        for name in self.weights:
            if name not in parameters:
                error = unknown(name, list(parameters), "parameter", "this space")
                raise SpaceError(f"Linear: {error}")
            parameter = parameters[name]
            if not parameter.numeric:
                loose = "" if getattr(parameter, "ordered", True) else "unordered "
                what = f"{loose}{type(parameter).__name__}"
                raise SpaceError(
                    f"Linear cannot weigh {name!r}, {'an' if what[0] in 'AEIOUu' else 'a'} {what}; "
                    "it needs Real, Integer or an ordered Choice of numbers. Use a function of the "
                    "point instead."
                )

    def total(self, numbers: Mapping[str, Array]) -> Array:
        """The weighted sum (n,) at n points given by name."""
        return np.asarray(sum(weight * numbers[name] for name, weight in self.weights.items()))

    def holds(self, columns: Mapping[str, Array], parameters: Mapping[str, Parameter]) -> Mask:
        """Whether each of n points satisfies it: the encoded columns (n, 1) by name."""
        return self._keeps({n: parameters[n].numbers(columns[n]) for n in self.weights}, parameters)

    def broken(self, point: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> str | None:
        """The sum at a checked point, if it is outside the bounds."""
        numbers = {name: np.array([float(point[name])]) for name in self.weights}
        if self._keeps(numbers, parameters)[0]:
            return None
        return f"{self}: the sum is {float(self.total(numbers)[0])!r}"

    def _keeps(self, numbers: Mapping[str, Array], parameters: Mapping[str, Parameter]) -> Mask:
        """Whether the numbers (n,) of each of n points satisfy it.

        The bounds are relaxed by the rounding of encode and decode, so that a point accepted once
        is always feasible: by 1e-12 of the summands, and of the lower end of a continuous
        parameter's range. (Our choice.)
        """
        scale: Array = np.zeros(1)
        for name, weight in self.weights.items():
            parameter = parameters[name]
            floor = abs(parameter.span[0]) if parameter.continuous else 0.0
            scale = scale + abs(weight) * np.maximum(np.abs(numbers[name]), floor)
        total, slack = self.total(numbers), _ROUNDING * scale
        return np.asarray((total >= self.lower - slack) & (total <= self.upper + slack))

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; an absent bound is null."""
        return {
            "kind": self.kind,
            "weights": dict(self.weights),
            "lower": self.lower if math.isfinite(self.lower) else None,
            "upper": self.upper if math.isfinite(self.upper) else None,
        }


def title(predicate: Predicate) -> str:
    """The name of a predicate in messages and logs."""
    return str(getattr(predicate, "__qualname__", type(predicate).__qualname__))


def accepts(predicate: Predicate, point: dict[str, Any]) -> bool:
    """The result of the predicate at a point; an exception inside names the point."""
    try:
        verdict = plain(predicate(dict(point)))
    except Exception as error:
        raise SpaceError(
            f"the constraint {title(predicate)!r} raised {type(error).__name__} at {point!r}: "
            f"{error}. It must return True or False for every point of the space."
        ) from error
    if not isinstance(verdict, bool):
        raise SpaceError(
            f"the constraint {title(predicate)!r} returned {verdict!r} at {point!r}; "
            "it must return True or False"
        )
    return verdict


def enforce(
    rule: Constraint | Predicate, point: dict[str, Any], parameters: Mapping[str, Parameter]
) -> None:
    """Raise if a checked point breaks a constraint, saying which and by how much."""
    if isinstance(rule, Constraint):
        # It says nothing about parameters that are absent.
        there = [part for part in singles_of([rule]) if all(name in point for name in part.names)]
        every = (part.broken(point, parameters) for part in there)
        broken = next((how for how in every if how is not None), None)
    else:
        broken = None if accepts(rule, point) else repr(title(rule))
    if broken is not None:
        raise SpaceError(f"point {point!r} breaks the constraint {broken}")


def singles_of(rules: Sequence[Constraint]) -> list[Constraint]:
    """The constraints, each rule about several parameters as one for each of them."""
    return [part for rule in rules for part in getattr(rule, "singles", (rule,))]


def describe_rule(rule: Constraint | Predicate) -> dict[str, Any]:
    """A constraint in JSON: a predicate leaves only its name."""
    if isinstance(rule, Constraint):
        return rule.describe()
    return {"kind": "predicate", "name": title(rule)}


def checked_where(where: Any) -> tuple[Constraint | Predicate, ...]:
    """The constraints of a space, or an error that shows how to write them."""
    if isinstance(where, Constraint) or callable(where):
        raise SpaceError("where must be a list of constraints, got a single one; write where=[...]")
    if isinstance(where, str | Mapping) or not isinstance(where, Sequence):
        raise SpaceError(
            f"where must be a list of Linear, Mixture or functions of the point, got {where!r}"
        )
    for rule in where:
        if isinstance(rule, type) or not (isinstance(rule, Constraint) or callable(rule)):
            raise SpaceError(
                f"a constraint must be Linear, Mixture or a function of the point, got {rule!r}"
            )
    return tuple(where)


def _checked_weights(weights: Any) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise SpaceError(
            f"the weights of Linear must be a dict such as {{'x': 1}}, got {weights!r}"
        )
    checked = {name: number(w, f"the weight of {name!r}") for name, w in weights.items()}
    if not any(checked.values()):
        raise SpaceError(f"Linear needs a weight other than zero, got {checked!r}")
    return checked


def _bound(value: Any, side: str) -> float:
    value = plain(value)
    if isinstance(value, float) and math.isinf(value):
        return value
    return number(value, f"the {side} bound of Linear")


def _term(weight: float, name: str) -> str:
    size = "" if abs(weight) == 1.0 else f"{abs(weight):.12g} "
    return f"{'-' if weight < 0 else '+'} {size}{name}"
