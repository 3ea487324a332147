"""Points and values from the text of cells, in a sheet or on the command line."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import covey
from covey.errors import SpaceError, did_you_mean
from covey.spreadsheets import days_in, options_that_became, truth_in
from covey.tables import Dialect, has_point, plain_number, with_point

if TYPE_CHECKING:  # help is quick: covey.Pool and the like are loaded when first used
    from covey.space import Choice, Parameter, Pool, Space
    from covey.space.conditions import Presence

_PLAIN = Dialect()


def point_from_text(
    space: Space | Pool, cells: Mapping[str, str], dialect: Dialect = _PLAIN
) -> dict[str, Any]:
    """The point whose parameters are written in these cells; other cells are ignored."""
    if isinstance(space, covey.Pool):
        return space.check(
            {n: _pool_value(space, n, cells[n], dialect) for n in _inputs(space, cells)}
        )
    if space.presence is not None:
        return space.check(_values_present(space, cells, space.presence, dialect))
    absent = [name for name in space.names if name not in cells]
    if absent:
        hint = did_you_mean(absent[0], cells)
        raise SpaceError(f"there is no column {absent[0]!r}, a parameter of the space.{hint}")
    return space.check({n: value_in_cell(space, n, cells[n], dialect) for n in space.names})


def value_in_cell(space: Space | Pool, name: str, text: str, dialect: Dialect = _PLAIN) -> Any:
    """The value of one parameter in a cell; whether the space has it, its check decides."""
    if isinstance(space, covey.Pool):
        return _pool_value(space, name, text, dialect)
    parameter = space.parameters[name]
    if isinstance(parameter, covey.Choice):
        return _option(parameter, name, text, dialect)
    if dialect.decimal == ",":
        if has_point(text):
            raise SpaceError(f"{name}: {text!r} has a decimal point, and this file decimal commas.")
        text = with_point(text) or text
    return _value(parameter, name, text)


def _option(parameter: Choice, name: str, text: str, dialect: Dialect) -> Any:
    """The option that a cell names: as it stands, or as a spreadsheet may have changed it."""
    said = text.strip()
    comma = with_point(text) if dialect.decimal == "," else None
    wrong = None
    for spelling in (text, comma, truth_in(said)):
        try:
            if spelling is not None:
                return parameter.parse(spelling)
        except SpaceError as error:
            wrong = wrong or error
    found = options_that_became(said, parameter.options)
    if len(found) == 1:
        dialect.note(f"{name}: the date {said} was made of {found[0]!r}, and so read")
        return found[0]
    if found or days_in(said):
        which = f"may have been {' or '.join(map(repr, found))}" if found else "is a date"
        raise SpaceError(
            f"{name}: {said!r} {which}: spreadsheets make dates of such names. Write the name into "
            "the cell, formatted as text."
        ) from wrong
    raise SpaceError(f"{name}: {wrong}") from wrong


def _values_present(
    space: Space, cells: Mapping[str, str], presence: Presence, dialect: Dialect
) -> dict[str, Any]:
    """The values in cells; a parameter that is absent has an empty one, or no column."""
    found: dict[str, Any] = {}
    for name in presence.order:
        there = presence.in_point(found, name)
        if name not in cells and there:
            hint = did_you_mean(name, cells)
            raise SpaceError(f"there is no column {name!r}, a parameter of the space.{hint}")
        if there or cells.get(name, "").strip():
            value = value_in_cell(space, name, cells[name], dialect)
            found[name] = _read(space.parameters[name].check, name, value)
    return found


def fixed_from_text(space: Space | Pool, given: Mapping[str, str]) -> dict[str, Any]:
    """Parameters held fixed, from text such as ``--fix opt=adam``."""
    if isinstance(space, covey.Pool):
        return {name: _number_or_text(text) for name, text in given.items()}
    for name in given:
        space.columns_of(name)  # raises, naming the parameters there are
    return {name: _value(space.parameters[name], name, text) for name, text in given.items()}


def point_to_json(space: Space | Pool, point: Mapping[str, Any]) -> dict[str, Any]:
    """The point for JSON output; an option that is no scalar is given by its value.

    (The journal holds its index among the options, which is exact but tells a reader nothing.)
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


def _value(parameter: Parameter, name: str, text: str) -> Any:
    return _read(parameter.parse, name, text)


def _read(parse: Callable[[Any], Any], name: str, text: Any) -> Any:
    try:
        return parse(text)
    except SpaceError as error:
        raise SpaceError(f"{name}: {error}") from error


def _inputs(pool: Pool, cells: Mapping[str, str]) -> list[str]:
    absent = [name for name in pool.inputs if name not in cells]
    if absent:
        hint = did_you_mean(absent[0], cells)
        raise SpaceError(f"there is no column {absent[0]!r}, an input of the pool.{hint}")
    return list(pool.inputs)


def _pool_value(pool: Pool, name: str, text: str, dialect: Dialect) -> Any:
    example = pool.point(0)[name]
    if isinstance(example, bool):
        said = text.strip()
        truth = (truth_in(said) or said).lower()
        return {"true": True, "false": False}.get(truth, text)
    if not isinstance(example, int | float):
        return _pool_text(pool, name, text)
    return _read(partial(plain_number, decimal=dialect.decimal), name, text)


def _pool_text(pool: Pool, name: str, text: str) -> str:
    """The first spelling that the pool has: as it stands, without blanks, as True or False."""
    said = text.strip()
    truth = truth_in(said)
    for spelling in (text, said, truth):
        try:
            if spelling is not None:
                pool.check({name: spelling}, partial=True)
                return spelling
        except SpaceError:
            continue
    return said


def _number_or_text(text: str) -> Any:
    try:
        return plain_number(text)
    except SpaceError:
        return text
