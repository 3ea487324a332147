"""Spaces from and to Optuna's distributions; `suggest` is a define-by-run space from a Space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from covey import Integer, Real, Space
from covey.errors import SpaceError, installed
from covey.integrations.spaces import conditioned
from covey.space import Choice, Parameter

with installed("optuna", "optuna"):
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )


_MOST_STEPS = 10_000  # of options in equal steps
_STORED = (bool, int, float, str, type(None))
_OFF_GRID = 1e-8  # of a step: how far Optuna lets a value lie from its grid


def space_from_optuna(
    distributions: Mapping[str, BaseDistribution],
    when: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Space:
    """The space of distributions by name, such as ``study.best_trial.distributions``.

    A float of one value only becomes a Choice. ``when`` gives the conditions of parameters that a
    define-by-run objective does not always suggest; `covey.integrations.spaces.optuna_trials`
    finds them in the trials of a study.

    >>> space_from_optuna({"lr": FloatDistribution(1e-4, 1.0, log=True)})
    Space({'lr': Real(low=0.0001, high=1.0, log=True)})
    >>> space_from_optuna({"p": FloatDistribution(0.1, 0.4, step=0.1)})
    Space({'p': Real(low=0.1, high=0.4, log=False, step=0.1)})

    Raises:
        SpaceError: a distribution is of another kind, its steps are too many, or Optuna takes two
            of its choices for one.
    """
    if not isinstance(distributions, Mapping):
        raise SpaceError(
            f"distributions are a dict such as {{'x': FloatDistribution(0, 1)}}; "
            f"got {distributions!r}."
        )
    parameters: dict[str, Parameter] = {}
    for name, distribution in distributions.items():
        try:
            made = _parameter(distribution)
            parameters[name] = conditioned(made, when[name]) if name in when else made
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    return Space(parameters)


def space_to_optuna(space: Space) -> dict[str, BaseDistribution]:
    """The distributions of a space by name, as ``study.ask`` takes them.

    >>> space_to_optuna(Space({"p": Choice([0.1, 0.2, 0.3], ordered=True)}))
    {'p': FloatDistribution(high=0.3, log=False, low=0.1, step=0.1)}

    Raises:
        SpaceError: the space has constraints, numbers in logs with a step, options in an uneven
            order, or options Optuna cannot store or tell apart.
    """
    if not isinstance(space, Space):
        raise SpaceError(f"only a covey.Space has distributions; got {type(space).__name__}.")
    conditional = [name for name, parameter in space.parameters.items() if parameter.when]
    if conditional:
        raise SpaceError(
            f"a dict of distributions cannot say that {', '.join(map(repr, conditional))} may be "
            "absent (`when`); call suggest(trial, space) in the objective, which asks for what is "
            "present."
        )
    return _distributions(space)


def suggest(trial: Any, space: Space) -> dict[str, Any]:
    """The point of a space that a trial suggests: what is absent is not asked for.

    >>> import optuna
    >>> depth = Integer(1, 9, when={"model": "tree"})
    >>> space = Space({"model": Choice(["tree", "net"]), "depth": depth})
    >>> suggest(optuna.trial.FixedTrial({"model": "tree", "depth": 3}), space)
    {'model': 'tree', 'depth': 3}
    >>> suggest(optuna.trial.FixedTrial({"model": "net"}), space)
    {'model': 'net'}
    """
    if not isinstance(space, Space):
        raise SpaceError(f"only a covey.Space can be suggested; got {type(space).__name__}.")
    distributions = _distributions(space)
    presence, point = space.presence, dict[str, Any]()
    for name in space.names if presence is None else presence.order:
        if presence is None or presence.in_point(point, name):
            parameter = space.parameters[name]
            value = _suggested(trial, name, distributions[name])
            point[name] = parameter.check(told_value(parameter, value))
    return {name: point[name] for name in space.names if name in point}


def point_from_optuna(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a space with a trial's parameters; parameters outside the space are left out.

    >>> space = Space({"p": Choice([0.1, 0.2, 0.3, 0.4], ordered=True)})
    >>> point_from_optuna(space, {"p": 0.1 + 0.2, "q": 7})
    {'p': 0.3}

    Raises:
        SpaceError: one is missing, or outside the space.
    """
    known = {
        name: told_value(p, params[name]) for name, p in space.parameters.items() if name in params
    }
    if space.presence is not None:
        checked = {name: space.parameters[name].check(value) for name, value in known.items()}
        known = space.presence.trimmed(checked)
    return space.check(known)


def told_value(parameter: Parameter, value: Any) -> Any:
    """A trial's value as the equal value of the parameter; an unknown one is unchanged."""
    if not isinstance(parameter, Choice):
        return value
    options = parameter.options
    if _is_nan(value):  # a stored nan does not equal the parameter's nan
        return next(filter(_is_nan, options), value)
    if parameter.numeric and isinstance(value, float) and math.isfinite(value):
        gap = (options[-1] - options[0]) / max(len(options) - 1, 1) or 1.0
        rank = round(min(max((value - options[0]) / gap, 0), len(options) - 1))
        if abs(options[rank] - value) < _OFF_GRID * gap:
            return options[rank]
    return value


def _suggested(trial: Any, name: str, distribution: BaseDistribution) -> Any:
    match distribution:
        case IntDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_int(name, low, high, step=step, log=log)
        case FloatDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, step=step, log=log)
        case CategoricalDistribution(choices=choices):
            return trial.suggest_categorical(name, choices)
    raise SpaceError(f"parameter {name!r}: {distribution!r} cannot be suggested.")


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    if space.where:
        raise SpaceError(
            "distributions cannot hold constraints (`where`): "
            f"{', '.join(map(str, space.where))}. Leave them out, and return early in the "
            "objective with trial.set_constraint."
        )
    distributions: dict[str, BaseDistribution] = {}
    for name, parameter in space.parameters.items():
        try:
            distributions[name] = _distribution(parameter)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    return distributions


def _parameter(distribution: BaseDistribution) -> Parameter:
    match distribution:
        case IntDistribution():
            d = distribution
            return Integer(d.low, d.high, log=d.log, step=d.step)
        case FloatDistribution(low=low, high=high, log=log, step=step) if low < high:
            return Real(low, high, log=log, step=step)
        case FloatDistribution(low=low):
            return Choice([low], ordered=True)
        case CategoricalDistribution(choices=choices):
            _told_apart(choices)
            return Choice(choices, ordered=False)
    raise SpaceError(
        f"it must be a FloatDistribution, IntDistribution or CategoricalDistribution; "
        f"got {distribution!r}."
    )


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Real):
        if parameter.log and parameter.step is not None:
            raise SpaceError("Optuna has no floats in logs with a step; leave log or step out.")
        return FloatDistribution(*parameter.span, log=parameter.log, step=parameter.step)
    if isinstance(parameter, Choice):
        if parameter.features is not None:
            raise SpaceError(
                "Optuna has no features of options; leave them out, Choice(options), to search the "
                "options there as equally different."
            )
        return _stepped(parameter.options) if parameter.ordered else _categories(parameter.options)
    if not isinstance(parameter, Integer):
        raise SpaceError(
            f"Optuna cannot express the kind {parameter.kind!r}, only real, integer and choice; "
            "search one of these there, and convert it in the objective."
        )
    if parameter.log and parameter.step != 1:
        raise SpaceError(
            f"Optuna has no integers in logs with a step; got step={parameter.step}. "
            "Leave log or step out."
        )
    return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def _grid(low: float, high: float, step: float) -> list[float]:
    """The values low, low + step, ..., high, as decimals: 0.3, not 0.30000000000000004."""
    first, gap = Decimal(str(low)), Decimal(str(step))
    count = int((Decimal(str(high)) - first) / gap) + 1
    return [float(first + rank * gap) for rank in range(count)]


def _stepped(options: Sequence[Any]) -> BaseDistribution:
    """Numbers at equal distances are the one order that Optuna knows."""
    kinds = {type(option) for option in options}
    if kinds in ({int}, {float}) and all(map(math.isfinite, options)):
        low, high = options[0], options[-1]
        step = 1 if len(options) == 1 else Decimal(str(options[1])) - Decimal(str(low))
        if step > 0 and len(options) <= _MOST_STEPS:
            if kinds == {int} and list(range(low, high + 1, int(step))) == list(options):
                return IntDistribution(low, high, step=int(step))
            if kinds == {float} and _grid(low, high, float(step)) == list(options):
                return FloatDistribution(low, high, step=float(step))
    raise SpaceError(
        "Optuna has no order of options but that of ints or floats in equal steps; got "
        f"{list(options)!r}. Use Choice(..., ordered=False)."
    )


def _categories(options: Sequence[Any]) -> BaseDistribution:
    for option in options:
        if not isinstance(option, _STORED):
            raise SpaceError(
                f"Optuna stores choices that are None, bool, int, float or str; got {option!r}. "
                "Use its name instead."
            )
    _told_apart(options)
    return CategoricalDistribution(list(options))


def _told_apart(options: Sequence[Any]) -> None:
    """Optuna finds a choice by equality: of True, 1 and 1.0 it would store the first for all."""
    for place, option in enumerate(options):
        same = [other for other in options[:place] if _equal(other, option)]
        if same:
            raise SpaceError(
                f"Optuna takes the choices {same[0]!r} and {option!r} for one; give one of them "
                "another name."
            )


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (_is_nan(a) and _is_nan(b))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
