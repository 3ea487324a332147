"""Rebuild a space or a pool from its description in a log."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.constraints import Constraint, Linear
from covey.space.features import Features
from covey.space.mixture import Mixture
from covey.space.parameters import Parameter, Real, registered
from covey.space.pool import Pool
from covey.space.rules import Implies
from covey.space.space import Space

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Properties of a pool's file that must not have changed, the most telling first.
_TOLD = {"columns": "for columns", "n": "distinct rows", "sha256": "for content"}


def space_from_description(description: Mapping[str, Any]) -> Space | Pool:
    """Rebuild what ``describe()`` described.

    Raises:
        SpaceError: if the description is opaque (a function, an object or an array in it cannot
            be written down), damaged, or its file has changed.
    """
    kind = description.get("kind")
    if kind not in ("space", "pool"):
        raise SpaceError(f"a description must be of kind 'space' or 'pool', got {kind!r}")
    if description.get("opaque", False):
        raise SpaceError(
            f"this {kind} holds what a log cannot (functions, objects or rows in memory); pass "
            "`space=` again, the one the study began with"
        )
    try:
        return _space(description) if kind == "space" else _pool(description)
    except (KeyError, TypeError) as error:
        raise SpaceError(
            f"the description of a {kind} is damaged: {type(error).__name__} {error}; "
            "pass `space=` again"
        ) from error


def _space(description: Mapping[str, Any]) -> Space:
    parameters = {entry["name"]: parameter_from(entry) for entry in description["parameters"]}
    where = [constraint_from(entry) for entry in description["where"]]
    # A part was written with the step of its mixture, which gives it the same again.
    steps = {n: rule.step for rule in where if isinstance(rule, Mixture) for n in rule.names}
    for name, step in steps.items():
        part = parameters.get(name)
        if isinstance(part, Real) and step is not None and part.step == step:
            parameters[name] = replace(part, step=None)
    return Space(parameters, where=where)


def parameter_from(entry: Mapping[str, Any]) -> Parameter:
    """The parameter that an entry of a description describes."""
    kind = registered(entry["kind"])
    if kind is None:
        raise SpaceError(
            f"the description of a space is damaged: KeyError {entry['kind']!r}, no kind of "
            "parameter that is known here. Import the module that registers it, or pass `space=` "
            "again"
        )
    given = {k: v for k, v in entry.items() if k not in ("name", "kind")}
    if kind is Choice:  # what a log does not say to be ordered is not
        given.setdefault("ordered", False)
        if given.get("features") is not None:
            given["features"] = Features.from_description(given["features"], len(given["options"]))
    return kind(**given)


def as_described(space: Space | Pool, description: Mapping[str, Any]) -> Space | Pool:
    """The space with the order of options that a log holds, where the space leaves it to Covey.

    In 0.1 numbers had no order unless told, and a study keeps the encoding that it began with. So
    it does with features, which another machine may compute with other rounding errors.
    """
    if isinstance(space, Pool):
        return space
    written = {entry.get("name"): entry for entry in description.get("parameters", ())}
    parameters = {
        name: _as_written(parameter, written.get(name, {}))
        for name, parameter in space.parameters.items()
    }
    same = all(parameters[name] is parameter for name, parameter in space.parameters.items())
    return space if same else Space(parameters, where=space.where)


def _as_written(parameter: Parameter, entry: Mapping[str, Any]) -> Parameter:
    if isinstance(parameter, Choice) and parameter.features is not None and "features" in entry:
        written = Features.from_description(entry["features"], len(entry.get("options", ())))
        changed = written != parameter.features and written.near(parameter.features)
        when = parameter.when
        return Choice(parameter.options, features=written, when=when) if changed else parameter
    if not isinstance(parameter, Choice) or parameter.order_was_told or not parameter.ordered:
        return parameter
    then = entry.get("options")
    when = parameter.when
    if not isinstance(then, list) or not then or Choice(then, when=when) != parameter:
        return parameter
    made = Choice(then, ordered=bool(entry.get("ordered", False)), when=when)
    return parameter if made == parameter else made


def constraint_from(entry: Mapping[str, Any]) -> Constraint:
    """The constraint that an entry of a description describes."""
    kinds: dict[str, Callable[[Mapping[str, Any]], Constraint]] = {
        Linear.kind: _linear,
        Mixture.kind: _mixture,
        Implies.kind: _implies,
    }
    if entry["kind"] not in kinds:
        raise SpaceError(
            f"a constraint of kind {entry['kind']!r} is not known here; it was written by a newer "
            "covey, please upgrade"
        )
    return kinds[entry["kind"]](entry)


def _linear(entry: Mapping[str, Any]) -> Linear:
    lower, upper = entry["lower"], entry["upper"]
    return Linear(
        entry["weights"],
        lower=-math.inf if lower is None else lower,
        upper=math.inf if upper is None else upper,
    )


def _mixture(entry: Mapping[str, Any]) -> Mixture:
    return Mixture(**{key: value for key, value in entry.items() if key != "kind"})


def _implies(entry: Mapping[str, Any]) -> Implies:
    return Implies(entry["when"], entry["then"])


def _pool(description: Mapping[str, Any]) -> Pool:
    inputs = description["inputs"]
    labels = [name for name in description["columns"] if name not in inputs]
    log = description.get("log", ())
    pool = Pool(description["path"], inputs=inputs, labels=labels, log=log)
    now = pool.describe()
    odd = next((key for key in _TOLD if description[key] != now[key]), None)
    if odd is not None:
        what = f"it has {now[odd]} {_TOLD[odd]}, and had {description[odd]}"
        raise SpaceError(
            f"{description['path']} is not the file this pool came from: its content has changed"
            f"{'' if odd == 'sha256' else f' ({what})'}. The log is as it was. Put the file back, "
            "or pass `space=` again: a covey.Pool of a copy of the file as it was."
        )
    return pool
