"""Points from text: what a sheet or a command line says, as values of a space."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from covey.errors import SpaceError, did_you_mean
from covey.space import Choice, Integer, Pool, Real, Space


def point_from_text(space: Space | Pool, cells: Mapping[str, str]) -> dict[str, Any]:
    """The point whose parameters are written in these cells; other cells are passed over."""
    if isinstance(space, Pool):
        return space.check({n: _pool_value(space, n, cells) for n in _inputs(space, cells)})
    absent = [name for name in space.names if name not in cells]
    if absent:
        hint = did_you_mean(absent[0], cells)
        raise SpaceError(f"there is no column {absent[0]!r}, a parameter of the space.{hint}")
    return space.check({n: _value(p, n, cells[n]) for n, p in space.parameters.items()})


def fixed_from_text(space: Space | Pool, given: Mapping[str, str]) -> dict[str, Any]:
    """Some parameters held at values, as ``--fix opt=adam`` gives them."""
    if isinstance(space, Pool):
        return {name: _number_or_text(text) for name, text in given.items()}
    for name in given:
        space.columns_of(name)  # which says what there is
    return {name: _value(space.parameters[name], name, text) for name, text in given.items()}


def number_from_text(text: str) -> float:
    """The number a person wrote; 1_000, which Python would read, is a slip of the pen.

    Raises:
        ValueError: It is no number.
    """
    return float(text.replace("_", "?"))


def point_to_json(space: Space | Pool, point: Mapping[str, Any]) -> dict[str, Any]:
    """The point for whoever reads our JSON: an option that is no scalar by its value.

    (The journal holds its place among the options, which is exact and tells a reader nothing.)
    """
    written = space.to_json(point)
    return {name: v if v == point[name] else _readable(point[name]) for name, v in written.items()}


def _readable(option: Any) -> Any:
    if isinstance(option, datetime.date | datetime.time):
        return option.isoformat()
    if isinstance(option, Mapping):
        return {str(key): _readable(value) for key, value in option.items()}
    if isinstance(option, list | tuple):
        return [_readable(value) for value in option]
    return option if isinstance(option, str | int | float | bool | None) else str(option)


def _value(parameter: Real | Integer | Choice, name: str, text: str) -> Any:
    if isinstance(parameter, Choice):
        for option in parameter.options:
            if str(option) == text:
                return option
        options = ", ".join(map(str, parameter.options))
        hint = did_you_mean(text, parameter.options)
        raise SpaceError(f"{name}: {text!r} is not an option; the options are {options}.{hint}")
    try:
        if isinstance(parameter, Integer) and text.strip().lstrip("+-").isdecimal():
            return int(text)
        return number_from_text(text)  # 3.0 is an Integer too; the space decides
    except ValueError as error:
        raise SpaceError(f"{name}: {text!r} is not a number.") from error


def _inputs(pool: Pool, cells: Mapping[str, str]) -> list[str]:
    absent = [name for name in pool.inputs if name not in cells]
    if absent:
        hint = did_you_mean(absent[0], cells)
        raise SpaceError(f"there is no column {absent[0]!r}, an input of the pool.{hint}")
    return list(pool.inputs)


def _pool_value(pool: Pool, name: str, cells: Mapping[str, str]) -> Any:
    example = pool.point(0)[name]
    if isinstance(example, bool):
        return {"true": True, "false": False}.get(cells[name].lower(), cells[name])
    if not isinstance(example, int | float):
        return cells[name]
    try:
        return number_from_text(cells[name])
    except ValueError as error:
        raise SpaceError(f"{name}: {cells[name]!r} is not a number.") from error


def _number_or_text(text: str) -> Any:
    try:
        return number_from_text(text)
    except ValueError:
        return text
