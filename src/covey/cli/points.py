"""Points from text: what a sheet or a command line says, as values of a space."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from covey.errors import SpaceError, did_you_mean
from covey.space import Choice, Integer, Pool, Real, Space

# Stricter than float(), which takes 1_000 and the digits of every script.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)", re.I)
_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")  # of more digits, Python reads none; no space has such


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
    """The number a person wrote, in a cell or in a word of the command line; perhaps no finite one.

    Raises:
        SpaceError: It is no number; 1_000, which Python would read, is a slip of the pen.
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise SpaceError(f"{text!r} is not a number.")
    return float(text)


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
        return _option(parameter, name, text)
    number = _number(name, text)
    if isinstance(parameter, Integer) and _WHOLE.fullmatch(text.strip()):
        return int(text)
    return number  # 3.0 is an Integer too; the space decides


def _number(name: str, text: str) -> float:
    try:
        return number_from_text(text)
    except SpaceError as error:
        raise SpaceError(f"{name}: {error}") from error


def _option(choice: Choice, name: str, text: str) -> Any:
    """The option that a cell names: as it is written in a sheet, or as a spreadsheet writes it."""
    for alike in (_written, _written_in_blanks, _rewritten):
        found = [option for option in choice.options if alike(option, text)]
        if len(found) > 1:
            both = ", ".join(map(repr, found))
            raise SpaceError(f"{name}: {text!r} may be any of {both}, which look alike in a sheet.")
        if found:
            return found[0]
    options = ", ".join(map(str, choice.options))
    hint = did_you_mean(text, choice.options)
    raise SpaceError(f"{name}: {text!r} is not an option; the options are {options}.{hint}")


def _written(option: Any, text: str) -> bool:
    return text == ("" if option is None else str(option))


def _written_in_blanks(option: Any, text: str) -> bool:
    return _written(option, text.strip())


def _rewritten(option: Any, text: str) -> bool:
    """TRUE for True, 1 for 1.0; and the same for texts that are spelled so."""
    text = text.strip()
    if option is None or isinstance(option, bool):
        return text.lower() == str(option).lower()
    try:
        return number_from_text(text) == float(option)
    except (TypeError, ValueError, OverflowError):
        return False


def _inputs(pool: Pool, cells: Mapping[str, str]) -> list[str]:
    absent = [name for name in pool.inputs if name not in cells]
    if absent:
        hint = did_you_mean(absent[0], cells)
        raise SpaceError(f"there is no column {absent[0]!r}, an input of the pool.{hint}")
    return list(pool.inputs)


def _pool_value(pool: Pool, name: str, cells: Mapping[str, str]) -> Any:
    example = pool.point(0)[name]
    if isinstance(example, bool):
        return {"true": True, "false": False}.get(cells[name].strip().lower(), cells[name])
    if not isinstance(example, int | float):
        return _pool_text(pool, name, cells[name])
    return _number(name, cells[name])


def _pool_text(pool: Pool, name: str, text: str) -> str:
    """The text as it stands, if the pool has it so; else without the blanks around it."""
    try:
        pool.check({name: text}, partial=True)
    except SpaceError:
        return text.strip()
    return text


def _number_or_text(text: str) -> Any:
    try:
        return number_from_text(text)
    except SpaceError:
        return text
