"""Spaces from and to Ax's search spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from covey import Integer, Linear, Mixture, Real, Space
from covey.errors import SpaceError, installed
from covey.integrations.spaces import inexpressible, refuse_conditions, refuse_features
from covey.space import Choice, Parameter

with installed("ax-platform", "ax"):
    from ax.core import parameter as ax
    from ax.core.parameter_constraint import ParameterConstraint
    from ax.core.search_space import SearchSpace


_MOST_STEPS = 1000  # of a Real in steps that are no digits, each of which becomes an option
_KINDS = {
    bool: ax.ParameterType.BOOL,
    int: ax.ParameterType.INT,
    float: ax.ParameterType.FLOAT,
    str: ax.ParameterType.STRING,
}


def space_from_ax(search_space: SearchSpace) -> Space:
    """The space of what Ax may vary: range and choice parameters, with their linear constraints.

    Fixed and derived parameters follow from those and are left out. A float with ``digits`` becomes
    a Real in steps.

    >>> x = ax.RangeParameter("x", ax.ParameterType.FLOAT, 0.1, 10.0, log_scale=True)
    >>> space_from_ax(SearchSpace([x]))
    Space({'x': Real(low=0.1, high=10.0, log=True)})

    Raises:
        SpaceError: a parameter depends on another, is a fidelity or a task, or is on a logit scale.
    """
    if not isinstance(search_space, SearchSpace):
        raise SpaceError(f"this needs an Ax SearchSpace; got {type(search_space).__name__}.")
    parameters = {}
    for name, parameter in search_space.parameters.items():
        if isinstance(parameter, ax.DerivedParameter):
            continue
        try:
            _refuse(parameter)
            if not isinstance(parameter, ax.FixedParameter):
                parameters[name] = _parameter(parameter)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    if not parameters:
        raise SpaceError("nothing may vary in this search space: every parameter is fixed.")
    return Space(parameters, [_linear(row) for row in search_space.parameter_constraints])


def space_to_ax(space: Space) -> SearchSpace:
    """The search space of a Space; one value only becomes a fixed parameter.

    Raises:
        SpaceError: a constraint is a function, or options are of several kinds, or of one that Ax
            does not know.
    """
    if not isinstance(space, Space):
        raise SpaceError(f"only a covey.Space has parameters; got {type(space).__name__}.")
    refuse_conditions(
        space,
        "Ax as Covey reads and writes it",
        "search each branch by itself, or use a covey.Study of the space.",
    )
    if len(space.linear) + len(space.mixtures) < len(space.where):
        odd = "a function" if space.predicates else "none"
        raise SpaceError(f"Ax has linear constraints only, and one of `where` is {odd}.")
    parameters = []
    for name, parameter in space.parameters.items():
        try:
            parameters.append(_ax_parameter(name, parameter))
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    rules = [*space.linear, *(_sum_of(mixture) for mixture in space.mixtures)]
    return SearchSpace(parameters, [row for rule in rules for row in _rows(rule)])


def _refuse(parameter: ax.Parameter) -> None:
    """Raise for what a Space cannot express."""
    if parameter.is_hierarchical:
        raise SpaceError(
            "other parameters depend on it; write the Space yourself, with `when` in those."
        )
    if parameter.is_fidelity:
        raise SpaceError("it is a fidelity, and Covey compares points at one only. Fix it.")
    if isinstance(parameter, ax.ChoiceParameter) and parameter.is_task:
        raise SpaceError("it is a task, and Covey learns one at a time. Fix it.")
    if isinstance(parameter, ax.RangeParameter) and parameter.logit_scale:
        raise SpaceError("it is on a logit scale; use a linear one or a log scale.")


def _parameter(parameter: ax.Parameter) -> Parameter:
    if isinstance(parameter, ax.ChoiceParameter):
        return Choice(parameter.values, ordered=parameter.is_ordered)
    if not isinstance(parameter, ax.RangeParameter):
        raise SpaceError(f"it is a {type(parameter).__name__}, which is not known.")
    low, high, log = parameter.lower, parameter.upper, parameter.log_scale
    if parameter.parameter_type is ax.ParameterType.INT:
        return Integer(int(low), int(high), log=log)
    digits = None if log else parameter.digits
    step = None if digits is None else float(f"1e{-digits}")
    return Real(float(low), float(high), log=log, step=step)


def _linear(row: ParameterConstraint) -> Linear:
    weights = {name: float(weight) for name, weight in row.constraint_dict.items()}
    lower = float(row.bound) if getattr(row, "is_equality", False) else -math.inf
    return Linear(weights, lower=lower, upper=float(row.bound))


def _ax_parameter(name: str, parameter: Parameter) -> ax.Parameter:
    if isinstance(parameter, Real):
        return _ax_float(name, parameter)
    if isinstance(parameter, Choice):
        refuse_features(parameter, "Ax")
        return _one_of(name, parameter.options, parameter.ordered)
    if not isinstance(parameter, Integer):
        raise inexpressible(parameter, "Ax")
    if parameter.size > 1 and parameter.step == 1:
        return ax.RangeParameter(
            name, ax.ParameterType.INT, parameter.low, parameter.high, log_scale=parameter.log
        )
    if parameter.log and parameter.size > 1:
        raise SpaceError("Ax has no integers in logs with a step; leave log or step out.")
    return _one_of(name, range(parameter.low, parameter.high + 1, parameter.step), ordered=True)


def _ax_float(name: str, parameter: Real) -> ax.Parameter:
    """A range; with digits if its steps are digits, else a choice among its values."""
    (low, high), step, kind = parameter.span, parameter.step, ax.ParameterType.FLOAT
    if step is None:
        return ax.RangeParameter(name, kind, low, high, log_scale=parameter.log)
    digits = -round(math.log10(step))
    if (
        digits >= 0
        and step == float(f"1e{-digits}")
        and not parameter.log
        and round(low, digits) == low
    ):
        return ax.RangeParameter(name, kind, low, high, digits=digits)
    if parameter.log or (parameter.size or 0) > _MOST_STEPS:
        raise SpaceError(
            "Ax has floats in steps of 1, 0.1, 0.01, ..., not in logs, or a list of at most "
            f"{_MOST_STEPS} values; leave step out."
        )
    return _one_of(name, parameter.examples(_MOST_STEPS), ordered=True)


def _one_of(name: str, options: Sequence[Any], ordered: bool) -> ax.Parameter:
    """A choice among options of one type; in Ax ordered numbers must be sorted."""
    kinds = {type(option) for option in options}
    kind = _KINDS.get(next(iter(kinds))) if len(kinds) == 1 else None
    if kind is None:
        raise SpaceError(
            "Ax takes options that are all str, all int, all float or all bool; got "
            f"{list(options)!r}."
        )
    if len(options) == 1:
        return ax.FixedParameter(name, kind, options[0])
    if ordered and kind.is_numeric and list(options) != sorted(options):
        raise SpaceError(f"Ax orders numbers by size; got {list(options)!r}.")
    return ax.ChoiceParameter(
        name,
        kind,
        list(options),
        is_ordered=ordered,
        sort_values=ordered and kind.is_numeric,
        log_scale=False,
    )


def _sum_of(mixture: Mixture) -> Linear:
    """A mixture as a sum; Ax cannot say how many parts are present, nor keep a sum in steps."""
    if mixture.parts is not None or mixture.least is not None or mixture.step is not None:
        raise SpaceError(
            f"Ax knows that parts sum up, and nothing of parts=, least= or step=: {mixture}. "
            "Leave them out, or let Covey choose the points."
        )
    return Linear(dict.fromkeys(mixture.names, 1.0), lower=mixture.total, upper=mixture.total)


def _rows(rule: Linear) -> list[ParameterConstraint]:
    """A rule as Ax has it: an equality, or one row for each bound."""
    total = " + ".join(f"{weight!r} * {name}" for name, weight in rule.weights.items())
    if rule.lower == rule.upper:
        try:
            return [ParameterConstraint(equality=f"{total} == {rule.upper!r}")]
        except TypeError as error:
            raise SpaceError(
                f"this version of Ax has inequalities only, and {rule} is none; upgrade ax-platform"
            ) from error
    lines = [f"{total} <= {rule.upper!r}"] if rule.upper < math.inf else []
    lines += [f"{total} >= {rule.lower!r}"] if rule.lower > -math.inf else []
    return [ParameterConstraint(inequality=line) for line in lines]
