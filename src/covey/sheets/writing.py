"""Tables to be written: safe to open in a spreadsheet, and read back as they were."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from covey.spreadsheets import escaped
from covey.tables import with_point

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
