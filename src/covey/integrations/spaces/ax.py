"""Spaces from Ax's search spaces."""

from __future__ import annotations

import math

from covey import Integer, Linear, Real, Space
from covey.errors import SpaceError, installed
from covey.space import Choice, Parameter

with installed("ax-platform", "ax"):
    from ax.core import parameter as ax
    from ax.core.parameter_constraint import ParameterConstraint
    from ax.core.search_space import SearchSpace


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
