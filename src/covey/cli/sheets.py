"""Sheets of points and results: values from the text of cells, and tables to be written.

What is written is safe to open in a spreadsheet, and reads back as it was. Values given on the
command line are read by the same rules.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

import covey
from covey.errors import CoveyError, SpaceError, did_you_mean
from covey.spreadsheets import days_in, escaped, options_that_became, truth_in
from covey.tables import (
    Dialect,
    Expected,
    SheetTable,
    has_point,
    plain_number,
    table_of,
    with_point,
)

if TYPE_CHECKING:  # help is quick: covey.Pool and the like are loaded when first used
    from covey.space import Choice, Parameter, Pool, Space
    from covey.space.conditions import Presence

# Points from the text of a sheet or of the command line.

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


COLUMNS = ("id", "status", "value", "sem", "origin")
"""Columns that are not parameters."""
EXPORT_ONLY = ("batch", "reason", "asked", "started", "ended", "seconds")
"""Columns that only an export has."""
EXPORT_RARE = ("excluded", "notes")
"""Columns that an export has where a trial is excluded, or has a note."""

_QUOTED = re.compile(r"[\",;\t\r\n\0]|\A\s|\s\Z")


def sheet_text(names: Sequence[str], rows: Iterable[Mapping[str, Any]], decimal: str = ".") -> str:
    """CSV text: numbers exactly, text escaped so that no spreadsheet takes it for a formula.

    With a decimal comma the columns are separated by semicolons.

    >>> print(sheet_text(["T", "solvent"], [{"T": 84.5, "solvent": "=x"}], ","), end="")
    T;solvent
    84,5;'=x
    """
    separator = ";" if decimal == "," else ","
    lines = [[_cell(name, decimal) for name in names]]
    lines += [[_cell(row.get(name), decimal) for name in names] for row in rows]
    return "".join(_line(cells, separator) + "\n" for cells in lines)


def sheet_bytes(
    path: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]], decimal: str = "."
) -> bytes:
    """A file of this name: a workbook, or CSV; with a byte order mark where a letter needs it.

    Excel takes a CSV file without one for the letters of its own country.
    """
    if path.suffix.lower() == ".xlsx":
        from covey.workbooks import workbook

        lines: list[list[Any]] = [list(names)]
        lines += [[row.get(name) for name in names] for row in rows]
        return workbook([[_scalar(value) for value in line] for line in lines])
    text = sheet_text(names, rows, decimal)
    return text.encode("utf-8" if text.isascii() else "utf-8-sig")


def heading(name: str, taken: Sequence[str] = COLUMNS) -> str:
    """The column of a parameter; one that bears the name of another column is ``point.<name>``."""
    return f"point.{name}" if name in taken else name


def export_columns(parameters: Iterable[str], named: Iterable[str] = ()) -> dict[str, str]:
    """The columns that only an export has, renamed where a parameter has the same name.

    Also where one of the ``named`` has it: outcomes and records.
    """
    taken = [*COLUMNS, *map(heading, parameters), *named]
    from covey.history.frame import own_column

    return {name: own_column(name, taken) for name in (*EXPORT_ONLY, *EXPORT_RARE)}


def exported(
    names: Iterable[str], parameters: Iterable[str], named: Iterable[str] = ()
) -> set[str]:
    """The columns that `export` added; none if some of them are missing: those are the user's."""
    added = export_columns(parameters, named)
    always = {added[name] for name in EXPORT_ONLY}
    return set(added.values()) if always <= set(names) else set()


def says_only(
    file: BinaryIO,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    earlier: Mapping[str, Container[str]] = MappingProxyType({}),
) -> bool:
    """Whether a file is a sheet of these columns in which every cell agrees with ``rows``.

    ``earlier`` gives cells that a column may have held before.
    """
    table = _sheet_in(file, columns)
    return table is not None and all(
        _is_known(row.cells, rows, earlier, table.dialect) for row in table.rows
    )


def _is_known(
    cells: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    earlier: Mapping[str, Container[str]],
    dialect: Dialect,
) -> bool:
    id = cells["id"]
    if not (id.isascii() and id.isdecimal() and len(id) < 10 and int(id) < len(rows)):
        return False
    row = rows[int(id)]
    return all(
        _says(cell, row.get(name), dialect) or cell in earlier.get(name, ())
        for name, cell in cells.items()
    )


def _says(cell: str, value: Any, dialect: Dialect) -> bool:
    """Whether a cell holds this value; numbers in any spelling, in workbooks of sixteen digits."""
    if cell == ("" if value is None else str(value)):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isclose(plain_number(cell, dialect.decimal), value, rel_tol=1e-15)
    except SpaceError:
        return False


def is_blank(file: BinaryIO, columns: Sequence[str], value: str) -> bool:
    """Whether a file is a sheet of these columns in which no value is filled in."""
    table = _sheet_in(file, columns)
    return table is not None and not any(row.cells[value] for row in table.rows)


def _sheet_in(file: BinaryIO, columns: Sequence[str]) -> SheetTable | None:
    """The table in a file, if it has these columns in this order and nothing above them."""
    try:
        table = table_of(file.read(), "", Expected(columns))
    except CoveyError:
        return None
    return table if not table.above and table.columns == [n.strip() for n in columns] else None


def _cell(value: Any, decimal: str = ".") -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value).replace(".", decimal)
    return escaped(str(value), ";" if decimal == "," else ",")


def _scalar(value: Any) -> Any:
    """A value for a workbook: a number as it is, anything else as the text of a cell."""
    return value if value is None or isinstance(value, int | float) else _cell(value)


def _line(cells: Iterable[str], separator: str) -> str:
    """A line of CSV; `csv` itself leaves a carriage return unquoted, and then cannot read it."""
    return separator.join(
        f'"{c.replace(chr(34), chr(34) * 2)}"' if _is_quoted(c, separator) else c for c in cells
    )


def _is_quoted(cell: str, separator: str) -> bool:
    """Whether a cell is put in quotes; a number with a decimal comma is not."""
    if separator == ";" and with_point(cell) is not None:
        return False
    return _QUOTED.search(cell) is not None
