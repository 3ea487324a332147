"""Spaces from ConfigSpace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from covey import Integer, Real, Space
from covey.errors import SpaceError, installed
from covey.integrations.spaces import conditioned
from covey.space import Choice, Parameter

with installed("ConfigSpace", "configspace"):
    import ConfigSpace


_MOST_LEVELS = 10_000  # of numbers in steps, which ConfigSpace has to list
_COMPARED = (
    ConfigSpace.GreaterThanCondition,
    ConfigSpace.LessThanCondition,
    ConfigSpace.NotEqualsCondition,
)


@dataclass(frozen=True)
class Allowed:
    """A forbidden clause of ConfigSpace as a constraint of Covey: True where it does not hold."""

    clause: Any

    def __post_init__(self) -> None:
        # The name of the constraint in messages, and in the log to tell two of them apart.
        object.__setattr__(self, "__qualname__", str(self.clause))

    def __call__(self, point: dict[str, Any]) -> bool:
        """Whether the clause does not forbid the point."""
        return not self.clause.is_forbidden_value(point)


def space_from_configspace(given: ConfigSpace.ConfigurationSpace) -> Space:
    """The space of a ConfigurationSpace, with its conditions.

    A condition is an equality, a membership or a conjunction of these; larger, smaller and unequal
    become the values that are, where they can be listed; a disjunction is refused. A constant
    becomes a Choice of one option, so that every point is a whole configuration, and a forbidden
    clause a function in ``where``. Default values and ``meta`` are not carried over.

    >>> given = ConfigSpace.ConfigurationSpace({"x": (0.0, 1.0), "kind": ["a", "b"]})
    >>> space_from_configspace(given)  # doctest: +NORMALIZE_WHITESPACE
    Space({'kind': Choice(options=('a', 'b'), ordered=False),
           'x': Real(low=0.0, high=1.0, log=False)})
    """
    if not isinstance(given, ConfigSpace.ConfigurationSpace):
        raise SpaceError(f"a ConfigSpace.ConfigurationSpace is needed; got {type(given).__name__}.")
    parameters: dict[str, Parameter] = {}
    for name, hyperparameter in given.items():
        try:
            parameters[name] = _parameter(hyperparameter)
            when: dict[str, list[Any]] = {}
            for condition in given.parent_conditions_of[name]:
                _add(condition, when)
            if when:
                parameters[name] = conditioned(parameters[name], when)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    return Space(parameters, where=[Allowed(clause) for clause in given.forbidden_clauses])


def _add(condition: Any, when: dict[str, list[Any]]) -> None:
    """Add what a condition of ConfigSpace says to a ``when``."""
    if isinstance(condition, ConfigSpace.AndConjunction):
        for part in condition.components:
            _add(part, when)
        return
    parent: Any = getattr(condition, "parent", None)
    if isinstance(condition, ConfigSpace.EqualsCondition):
        values = [condition.value]
    elif isinstance(condition, ConfigSpace.InCondition):
        values = list(condition.values)
    elif isinstance(condition, _COMPARED):
        values = [
            v
            for v in _few_values(parent, condition)
            if condition.satisfied_by_value({parent.name: v})
        ]
    else:
        raise SpaceError(
            f"its condition {condition} cannot be expressed: a parameter of Covey is present where "
            "every one of its conditions holds, an equality or one of some values each."
        )
    known = when.get(parent.name, values)
    when[parent.name] = [value for value in values if value in known]


def _few_values(parent: Any, condition: Any) -> list[Any]:
    """The values of a parent, where they can be listed."""
    made = _parameter(parent)
    if made.size is None or made.size > _MOST_LEVELS:
        raise SpaceError(
            f"its condition {condition} compares a parameter that has too many values to list; "
            "use one with few."
        )
    return made.examples(_MOST_LEVELS)


def _parameter(given: Any) -> Parameter:
    if isinstance(given, ConfigSpace.UniformFloatHyperparameter):
        return Real(given.lower, given.upper, log=given.log)
    if isinstance(given, ConfigSpace.UniformIntegerHyperparameter):
        return Integer(given.lower, given.upper, log=given.log)
    if isinstance(given, ConfigSpace.OrdinalHyperparameter):
        return Choice(given.sequence, ordered=True)
    if isinstance(given, ConfigSpace.Constant):
        return Choice([given.value], ordered=False)
    if isinstance(given, ConfigSpace.CategoricalHyperparameter):
        if given.weights is not None and len(set(given.weights)) > 1:
            raise SpaceError(
                f"its weights {given.weights} cannot be expressed; use .to_uniform() of it."
            )
        return Choice(given.choices, ordered=False)
    raise SpaceError(
        f"a {type(given).__name__} cannot be expressed: Covey looks everywhere between two bounds "
        "alike; use a uniform one over the range you believe in."
    )
