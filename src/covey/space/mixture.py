"""`Mixture`: parts that sum to a whole, some of them perhaps absent, perhaps in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from covey.errors import SpaceError, several
from covey.space.constraints import Linear
from covey.space.names import check_name, listed, number, plain, unknown
from covey.space.parameters import Numeric, Parameter, Real
from covey.space.simplex import Simplex

if TYPE_CHECKING:
    from covey.arrays import Array, Mask
    from covey.space.constraints import Constraint, Predicate

ROUNDING = 1e-9  # of the total: by this much the sum of a point may miss it
_SNUG = Fraction(1, 10**8)  # of a step: three steps of 1/3 make 1
_TRACE = 1e-6  # of the total: the least of a part that is present, if nothing else says so
_MOST_STEPS = 100_000  # of a total; finer ones are as good as none


@dataclass(frozen=True, slots=True)
class Mixture:
    """Parts that sum to a total, such as the ingredients of a recipe.

    Args:
        names: of the parameters, each a Real on a linear scale or an Integer, none below 0.
        total: what they sum to.
        parts: how many of them are present, that is above 0: a number, or the least and the most.
        least: the least amount of a part that is present; absent parts are 0.
        step: all amounts are multiples of it, as decimals.

    >>> print(Mixture(["water", "ethanol"], parts=(1, 2), least=0.05, step=0.01))
    water + ethanol = 1, 1 to 2 parts, each at least 0.05, in steps of 0.01
    """

    kind: ClassVar[str] = "mixture"
    names: Sequence[str]
    total: float = 1.0
    parts: tuple[int, int] | None = None
    least: float | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "total", _positive(self.total, "total"))
        object.__setattr__(self, "parts", _checked_parts(self.parts, len(self.names)))
        if self.least is not None:
            object.__setattr__(self, "least", _positive(self.least, "least"))
            if self.least > self.total:
                raise SpaceError(
                    f"the least={self.least!r} of a part that is present in a Mixture is above its "
                    f"total={self.total!r}, so none could be; lower `least`"
                )
        if self.step is not None:
            object.__setattr__(self, "step", _positive(self.step, "step"))
            _units_of_total(self.total, self.step)

    def __str__(self) -> str:
        text = f"{' + '.join(self.names)} = {self.total:.12g}"
        if self.parts is not None:
            fewest, most = self.parts
            text += f", {several(most, 'part') if fewest == most else f'{fewest} to {most} parts'}"
        text += "" if self.least is None else f", each at least {self.least:.12g}"
        return text + ("" if self.step is None else f", in steps of {self.step:.12g}")

    def validate(self, parameters: Mapping[str, Parameter]) -> None:
        """Raise unless the parts are amounts that can sum to the total."""
        for name in self.names:
            if name not in parameters:
                error = unknown(name, list(parameters), "parameter", "this space")
                raise SpaceError(f"Mixture: {error}")
            self._require_amount(name, parameters[name])
        self.simplex({**parameters, **self.refined(parameters)})

    def _require_amount(self, name: str, parameter: Parameter) -> None:
        if not isinstance(parameter, Numeric) or parameter.log:
            what = "on a log scale" if getattr(parameter, "log", False) else "no number"
            raise SpaceError(
                f"Mixture: the part {name!r} is {what} ({parameter!r}); a part is an amount: a "
                "Real or an Integer, not in logs"
            )
        if parameter.low < 0:
            raise SpaceError(
                f"Mixture: the part {name!r} has low={parameter.low!r}, and no part of a whole is "
                "below 0; raise it, or write Linear with lower == upper instead (in covey.toml "
                "`weights` and `equal`)"
            )

    def refined(self, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
        """The parts with the step of the mixture, where it has one: their multiples only."""
        if self.step is None:
            return {}
        found: dict[str, Parameter] = {}
        for name in self.names:
            part = parameters[name]
            if not isinstance(part, Real) or part.step is not None:
                continue
            first, last = _units(part.low, self.step, ceil), _units(part.high, self.step, floor)
            if first >= last:
                lies = f"lies only {_decimal(first, self.step)!r}" if first == last else "is none"
                raise SpaceError(
                    f"Mixture: of the multiples of step={self.step!r} there {lies} between "
                    f"{part.low!r} and {part.high!r}, the bounds of {name!r}; widen them, or leave "
                    "the part out"
                )
            found[name] = part.in_steps(_decimal(first, self.step), self.step)
        return found

    def unit(self, parameters: Mapping[str, Parameter]) -> float | None:
        """The step of all parts; None if they have none."""
        steps = {name: parameters[name].step for name in self.names}
        if not any(steps.values()):
            return None
        if len(set(steps.values())) > 1 or (
            self.step is not None and self.step not in steps.values()
        ):
            shown = ", ".join(f"{name} {step or 'none'}" for name, step in steps.items())
            raise SpaceError(
                f"Mixture: its parts have different steps ({shown}"
                + (f"; its own is {self.step!r}" if self.step is not None else "")
                + "); give one step, as step= of the Mixture"
            )
        (step,) = set(steps.values())
        for name in self.names:
            low = Fraction(repr(float(parameters[name].span[0]))) / Fraction(repr(float(step or 1)))
            if abs(low - round(low)) > _SNUG:
                raise SpaceError(
                    f"Mixture: the part {name!r} begins at {parameters[name].span[0]!r}, which is "
                    f"no multiple of its step {step!r}; move its low"
                )
        return float(step or 1)

    def simplex(
        self, parameters: Mapping[str, Parameter], fixed: Mapping[str, Any] | None = None
    ) -> Simplex:
        """The amounts that are allowed, with some parts fixed; in steps as whole numbers of them.

        Raises:
            SpaceError: No amounts within the bounds sum to the total; it says which bound.
        """
        unit, held = self.unit(parameters), fixed or {}
        fewest, most = self.parts or (0, len(self.names))
        bounds = [self._bounds(name, parameters[name], unit, held) for name in self.names]
        low, high, optional = (list(column) for column in zip(*bounds, strict=True))
        total = self.total if unit is None else float(_units_of_total(self.total, unit))
        simplex = Simplex(
            np.array(low),
            np.array(high),
            np.array(optional),
            (fewest, most),
            total,
            unit is not None,
        )
        if not simplex.numbers_of_parts():
            self._refuse(simplex, unit or 1.0, held)
        return simplex

    def _bounds(
        self, name: str, parameter: Parameter, unit: float | None, held: Mapping[str, Any]
    ) -> tuple[float, float, bool]:
        """The least and the most of a part that is present, and whether it may be absent."""
        choosy = self.parts is not None or self.least is not None
        first, last = (float(held[name]),) * 2 if name in held else parameter.span
        may = choosy and first == 0.0
        first = max(first, self.least or 0.0)
        if unit is not None:
            first, last = float(_units(first, unit, ceil)), float(_units(last, unit, floor))
        # A part that is present is above 0, else parts=(2, 2) would be met by one alone.
        trace = _TRACE * self.total if unit is None else 1.0
        return (first or trace) if may else first, last, may

    def amounts(self, columns: Array, parameters: Mapping[str, Parameter]) -> Array:
        """Amounts (n, p) at the encoded columns (n, p) of the parts, in units of the simplex."""
        unit = self.unit(parameters)
        x = np.stack(
            [parameters[n].numbers(columns[:, [j]]) for j, n in enumerate(self.names)], axis=1
        )
        return x if unit is None else np.rint(x / unit)

    def placed(self, amounts: Array, parameters: Mapping[str, Parameter]) -> Array:
        """Encoded columns (n, p) of amounts (n, p) in units of the simplex."""
        x = amounts * (self.unit(parameters) or 1.0)
        each = [parameters[n].nearest(x[:, j]) for j, n in enumerate(self.names)]
        return np.hstack(each)

    def every(self, parameters: Mapping[str, Parameter], fixed: Mapping[str, Any]) -> Array:
        """Encoded columns (m, p) of all its mixtures, if it is in steps."""
        return self.placed(self.simplex(parameters, fixed).every(), parameters)

    def _refuse(self, simplex: Simplex, unit: float, held: Mapping[str, Any]) -> NoReturn:
        """Say between which bounds no amounts sum to the total, and what they do sum to."""
        fixed = ", ".join(f"{name}={held[name]!r}" for name in self.names if name in held)
        rows = zip(self.names, simplex.low, simplex.high, simplex.optional, strict=True)
        bounds = listed(
            f"{name} {_span(low, high, unit, may) if high else 0}" for name, low, high, may in rows
        )
        sums = listed(
            f"{_span(low, high, unit)} with {several(m, 'part')}"
            for m, (low, high) in simplex.sums().items()
        )
        least = "" if self.least is None else f", `least` ({self.least!r})"
        raise SpaceError(
            f"Mixture ({self}){f' with {fixed}' if fixed else ''}: no amounts within these bounds "
            f"have that sum: {bounds}. Possible: {sums or 'no number of parts that is allowed'}; "
            f"{'fix less, or ' if fixed else ''}change the low or high of a part{least} or `parts`"
        )

    def holds(self, columns: Mapping[str, Array], parameters: Mapping[str, Parameter]) -> Mask:
        """Whether each of n points satisfies it: the encoded columns (n, 1) by name."""
        x = np.stack([parameters[n].numbers(columns[n]) for n in self.names], axis=1)
        slack = 1.001 * ROUNDING * self.total  # a point accepted once stays so, encoded or not
        kept = np.abs(x.sum(axis=1) - self.total) <= slack
        present = (x > 0.0).sum(axis=1)
        if self.parts is not None:
            kept &= (present >= self.parts[0]) & (present <= self.parts[1])
        if self.least is not None:
            kept &= ((x == 0.0) | (x >= self.least - slack)).all(axis=1)
        return np.asarray(kept)

    def broken(self, point: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> str | None:
        """What is wrong with a checked point: its sum, how many parts it has, or one too small."""
        amounts = {name: float(point[name]) for name in self.names}
        slack = ROUNDING * self.total
        total = float(sum(Fraction(repr(x)) for x in amounts.values()))
        if abs(total - self.total) > slack:
            return f"{self}: the sum is {total!r}"
        present = {name: x for name, x in amounts.items() if x > 0.0}
        if self.parts is not None and not self.parts[0] <= len(present) <= self.parts[1]:
            return f"{self}: {several(len(present), 'part')} are present, {listed(present)}"
        small = [name for name, x in present.items() if x < (self.least or 0.0) - slack]
        return f"{self}: {small[0]} is {present[small[0]]!r}" if small else None

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; what was not said is left out."""
        said = {
            "parts": None if self.parts is None else list(self.parts),
            "least": self.least,
            "step": self.step,
        }
        return {
            "kind": self.kind,
            "names": list(self.names),
            "total": self.total,
            **{key: value for key, value in said.items() if value is not None},
        }


def mixtures_of(where: Sequence[Constraint | Predicate]) -> tuple[Mixture, ...]:
    """The mixtures among constraints; a part belongs to one only."""
    found = tuple(rule for rule in where if isinstance(rule, Mixture))
    owner: dict[str, Mixture] = {}
    for mixture in found:
        for name in mixture.names:
            if name in owner:
                raise SpaceError(
                    f"the part {name!r} is in two mixtures ({owner[name]}; {mixture}); a part "
                    "belongs to one. Write the other as a sum with weights: Linear with lower == "
                    "upper, in covey.toml `weights` and `equal`"
                )
            owner[name] = mixture
    return found


def parts_as_given(
    parameters: Mapping[str, Parameter], mixtures: Sequence[Mixture]
) -> dict[str, Parameter]:
    """Parameters without the steps that a mixture of another space gave to parts of these.

    So `Space({**space.parameters}, where=...)` may have another step, or none.
    """
    parts = {name for mixture in mixtures for name in mixture.names}
    return {
        name: parameter.given if name in parts and isinstance(parameter, Real) else parameter
        for name, parameter in parameters.items()
    }


def is_equality(rule: Constraint | Predicate) -> bool:
    """Whether a constraint leaves no volume: a mixture, or Linear with lower == upper."""
    return isinstance(rule, Mixture) or (isinstance(rule, Linear) and rule.lower == rule.upper)


def _span(low: float, high: float, unit: float, absent: bool = False) -> str:
    ends = dict.fromkeys(f"{end * unit:.12g}" for end in (low, high))
    return ("0 or " if absent else "") + " to ".join(ends)


def _units(x: float, step: float, rounding: Any) -> int:
    """How many steps a number is, from the decimals that people write: 0.15 is 3 steps of 0.05."""
    count = Fraction(repr(float(x))) / Fraction(repr(float(step)))
    near = round(count)
    return near if abs(count - near) <= _SNUG else int(rounding(count))


def _decimal(units: int, step: float) -> float:
    return float(Fraction(repr(float(step))) * units)


def _units_of_total(total: float, step: float) -> int:
    count = _units(total, step, floor)
    exact = Fraction(repr(float(total))) / Fraction(repr(float(step)))
    if count < 1 or abs(exact - count) > _SNUG:
        raise SpaceError(
            f"a Mixture in steps of {step!r} never sums to total={total!r}; the nearest totals are "
            f"{_decimal(max(floor(exact), 1), step)!r} and {_decimal(floor(exact) + 1, step)!r}"
        )
    if count > _MOST_STEPS:
        raise SpaceError(
            f"a Mixture of total={total!r} in steps of {step!r} has {count} of them; at most "
            f"{_MOST_STEPS} make sense. Use a larger step, or none"
        )
    return count


def _checked_names(names: Any) -> tuple[str, ...]:
    example = "Mixture(['water', 'ethanol'], total=1.0)"
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) < 2:
        raise SpaceError(
            f"a Mixture needs a list of two parts or more, as in {example}; got {names!r}"
        )
    for name in names:
        check_name(name, "part")
    if len(set(names)) < len(names):
        raise SpaceError(f"a Mixture has each part once, got {list(names)!r}")
    return tuple(names)


def _positive(value: Any, what: str) -> float:
    found = number(value, f"the {what} of a Mixture")
    if found <= 0.0:
        raise SpaceError(f"the {what} of a Mixture must be above 0, got {found!r}")
    return found


def _checked_parts(parts: Any, count: int) -> tuple[int, int] | None:
    if parts is None:
        return None
    parts = plain(parts)
    pair = (parts, parts) if isinstance(parts, int) else parts
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        pair = (None, None)
    fewest, most = (plain(n) for n in pair)
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (fewest, most))
    if not whole or not 1 <= fewest <= most <= count:
        raise SpaceError(
            f"the parts of a Mixture are how many are present, from 1 to {count}: a number, or the "
            f"least and the most such as (1, 2); got {parts!r}"
        )
    return fewest, most
