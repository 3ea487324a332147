"""Sheets: tables of points and results as CSV, safe to open in a spreadsheet and to read back."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from covey.cli.exits import ExitCode, Stop

COLUMNS = ("id", "status", "value", "sem", "origin")
"""Columns that are not parameters."""

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")


@dataclass(frozen=True)
class Row:
    """One line of a sheet, and where it stands."""

    cells: dict[str, str]
    where: str  # file:line

    def error(self, message: str) -> Stop:
        """An error about this line."""
        return Stop(ExitCode.INVALID, f"{self.where}: {message} Nothing was recorded.")


def write(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """CSV text: numbers exactly, text so that no spreadsheet takes it for a formula."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow([_cell(name) for name in names])
    for row in rows:
        sheet.writerow([_cell(row.get(name)) for name in names])
    return out.getvalue()


def read(path: str) -> tuple[list[str], list[Row]]:
    """Column names and rows of a CSV file; "-" is stdin."""
    text = _text(path)
    name = "stdin" if path == "-" else path
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader if any(c.strip() for c in line)]
    except csv.Error as error:
        raise Stop(ExitCode.INVALID, f"{name}:{reader.line_num}: not CSV ({error}).") from error
    if not lines:
        raise Stop(ExitCode.INVALID, f"{name} is empty; its first line names the columns.")
    names = [_plain(cell.strip()) for cell in lines[0][1]]
    if len(names) == 1 and ";" in names[0]:
        raise Stop(
            ExitCode.INVALID,
            f"{name} separates its columns by semicolons; save it with commas, and with a point "
            "in decimal numbers.",
        )
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise Stop(ExitCode.INVALID, f"{name} has two columns named {sorted(twice)[0]!r}.")
    return names, [_row(names, line, f"{name}:{n}") for n, line in lines[1:]]


def heading(name: str, taken: Sequence[str] = COLUMNS) -> str:
    """The column of a parameter; one that bears the name of another column is ``point.<name>``."""
    return f"point.{name}" if name in taken else name


def says_only(
    file: BinaryIO,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    earlier: Mapping[str, Container[str]] = MappingProxyType({}),
) -> bool:
    """Whether a file is a sheet of these columns that says only what the rows of its ids say.

    ``earlier`` names the cells that a column may have held before.
    """
    try:
        lines = _lines(file)
        if next(lines, None) != [_cell(name) for name in columns]:
            return False
        return all(_is_known(line, columns, rows, earlier) for line in lines if line)
    except (csv.Error, UnicodeDecodeError):
        return False


def _is_known(
    line: list[str],
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    earlier: Mapping[str, Container[str]],
) -> bool:
    if len(line) != len(columns):
        return False
    id = line[columns.index("id")]
    if not (id.isascii() and id.isdecimal() and len(id) < 10 and int(id) < len(rows)):
        return False
    row = rows[int(id)]
    return all(
        cell == _cell(row.get(name)) or cell in earlier.get(name, ())
        for name, cell in zip(columns, line, strict=True)
    )


def is_blank(file: BinaryIO, columns: Sequence[str], value: str) -> bool:
    """Whether a file is a sheet of these columns in which no value is filled in."""
    place = columns.index(value)
    try:
        lines = _lines(file)
        if next(lines, None) != [_cell(name) for name in columns]:
            return False
        return all(len(line) == len(columns) and not line[place] for line in lines if line)
    except (csv.Error, UnicodeDecodeError):
        return False


def _lines(file: BinaryIO) -> Iterator[list[str]]:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        yield from csv.reader(text, strict=True)
    finally:
        text.detach()  # whoever opened the file closes it


def _text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise Stop(ExitCode.CONFLICT, f"there is no file {path}.") from error
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Stop(ExitCode.INVALID, f"{path} is not UTF-8 text; save it as UTF-8.") from error


def _row(names: list[str], line: list[str], where: str) -> Row:
    if len(line) != len(names):
        raise Stop(
            ExitCode.INVALID,
            f"{where}: {len(line)} cells, but {len(names)} columns. Nothing was recorded.",
        )
    cells = {n: _plain(cell.strip()) for n, cell in zip(names, line, strict=True)}
    return Row(cells, where)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
