"""Tables of points and results as CSV, safe to open in a spreadsheet and to read back.

Also values given on the command line, which are read by the same rules.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

import covey
from covey.cli.output import ExitCode, Stop, sentence
from covey.errors import SpaceError, did_you_mean, several

if TYPE_CHECKING:  # help is quick: covey.Pool and the like are loaded when first used
    from covey.space import Parameter, Pool, Space

# Points from the text of a sheet or of the command line.


def plain_number(text: str) -> float:
    """The number in a text; imports `covey.space.names` only when called, so help is quick."""
    from covey.space.names import number_from_text

    return number_from_text(text)


def point_from_text(space: Space | Pool, cells: Mapping[str, str]) -> dict[str, Any]:
    """The point whose parameters are written in these cells; other cells are ignored."""
    if isinstance(space, covey.Pool):
        return space.check({n: _pool_value(space, n, cells) for n in _inputs(space, cells)})
    absent = [name for name in space.names if name not in cells]
    if absent:
        hint = did_you_mean(absent[0], cells)
        raise SpaceError(f"there is no column {absent[0]!r}, a parameter of the space.{hint}")
    return space.check({n: _value(p, n, cells[n]) for n, p in space.parameters.items()})


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


def _read(parse: Callable[[str], Any], name: str, text: str) -> Any:
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


def _pool_value(pool: Pool, name: str, cells: Mapping[str, str]) -> Any:
    example = pool.point(0)[name]
    if isinstance(example, bool):
        return {"true": True, "false": False}.get(cells[name].strip().lower(), cells[name])
    if not isinstance(example, int | float):
        return _pool_text(pool, name, cells[name])
    return _read(plain_number, name, cells[name])


def _pool_text(pool: Pool, name: str, text: str) -> str:
    """The text unchanged if the pool has that value, else without the blanks around it."""
    try:
        pool.check({name: text}, partial=True)
    except SpaceError:
        return text.strip()
    return text


def _number_or_text(text: str) -> Any:
    try:
        return plain_number(text)
    except SpaceError:
        return text


COLUMNS = ("id", "status", "value", "sem", "origin")
"""Columns that are not parameters."""
EXPORT_ONLY = ("batch", "reason", "asked", "ended", "seconds")
"""Columns that only an export has."""
EXPORT_RARE = ("excluded", "notes")
"""Columns that an export has where a trial is excluded, or has a note."""

_LARGEST = 2**26  # bytes of a sheet, a million rows; a device or a pipe may have no end
# A spreadsheet takes a cell that begins like this for a formula. Cells begin where it splits the
# line: one that expects semicolons or tabs splits inside our cells, and ignores quotes there.
_FORMULA = r"(?=['\"]*[=+\-@\t\r\n\0＝＋－＠])"
_START = r"(?:\A|(?<=[;\t\r\n]))"
_BARE = re.compile(_START + _FORMULA)
_ESCAPED = re.compile(_START + "'" + _FORMULA)
_QUOTED = re.compile(r"[\",;\t\r\n\0]|\A\s|\s\Z")
# What a spreadsheet may have saved instead of a CSV file, by its first bytes.
_KINDS = {
    (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"): "an Excel workbook, which covey does not read",
    (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE): "UTF-16, which some programs call Unicode text",
}
_AS_CSV = "in a spreadsheet, save it as 'CSV UTF-8 (comma delimited)' and name that file."


@dataclass(frozen=True)
class SheetRow:
    """One row of a sheet, and its file and line."""

    cells: dict[str, str]
    where: str  # file:line

    def text(self, column: str) -> str:
        """The text of a cell without the blanks around it; empty if there is no such column."""
        return self.cells.get(column, "").strip()

    def number(self, column: str, hint: str = "") -> float:
        """The number in a cell, finite and of a size that a study takes."""
        text = self.text(column)
        try:
            value = plain_number(text)
        except SpaceError as error:
            comma = " Write decimal numbers with a point." if "," in text else ""
            raise self.error(f"the {column} {text!r} is no number{hint}.{comma}") from error
        from covey.history.checks import MOST

        if not abs(value) <= MOST:
            raise self.error(f"the {column} must be finite, within ±{MOST:g}, got {text}{hint}.")
        return value

    def error(self, message: str) -> Stop:
        """An error about this line."""
        return Stop(ExitCode.INVALID, f"{self.where}: {sentence(message)} Nothing was recorded.")


def sheet_text(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """CSV text: numbers exactly, text escaped so that no spreadsheet takes it for a formula."""
    lines = [[_cell(name) for name in names]]
    lines += [[_cell(row.get(name)) for name in names] for row in rows]
    return "".join(_line(cells) + "\n" for cells in lines)


def read_sheet(path: str) -> tuple[list[str], list[SheetRow]]:
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
    names = _names(lines[0][1], name)
    return names, [_row(names, line, f"{name}:{n}") for n, line in lines[1:]]


def _names(cells: list[str], file: str) -> list[str]:
    names = [_plain(cell).strip() for cell in cells]
    while len(names) > 1 and not names[-1]:  # trailing commas
        names.pop()
    for separator, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and separator in names[0]:
            raise Stop(
                ExitCode.INVALID,
                f"{file} separates its columns by {word}; save it with commas, and with a point "
                "in decimal numbers.",
            )
    for name, count in Counter(names).items():
        if not name:
            place = names.index(name) + 1
            raise Stop(ExitCode.INVALID, f"{file}: column {place} of the first line has no name.")
        if count > 1:
            raise Stop(ExitCode.INVALID, f"{file} has two columns named {name!r}; rename one.")
    return names


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
        _says(cell, row.get(name)) or cell in earlier.get(name, ())
        for name, cell in zip(columns, line, strict=True)
    )


def _says(cell: str, value: Any) -> bool:
    """Whether a cell holds this value; numbers in any spelling."""
    if cell == _cell(value):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return plain_number(cell) == value
    except SpaceError:
        return False


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
        text.detach()  # the caller closes the file


def bounded(path: str | Path, most: int) -> bytes:
    """What a file holds, a pipe or a device too; "-" is stdin. More than ``most`` bytes is refused.

    Raises:
        OSError: It cannot be read.
    """
    if path == "-":
        data = sys.stdin.buffer.read(most + 1)
    else:
        with Path(path).open("rb") as stream:
            data = stream.read(most + 1)
    if len(data) > most:
        raise Stop(
            ExitCode.INVALID,
            f"{'stdin' if path == '-' else path} is larger than {most / 2**20:.0f} MiB; is it the "
            "file you meant?",
        )
    return data


def _text(path: str) -> str:
    try:
        data = bounded(path, _LARGEST)
    except FileNotFoundError as error:
        raise Stop(ExitCode.CONFLICT, f"there is no file {path}.") from error
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"cannot read {path}: {error.strerror}.") from error
    for begins, kind in _KINDS.items():
        if data.startswith(begins):
            raise Stop(ExitCode.INVALID, f"{path} is {kind}; {_AS_CSV}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(ExitCode.INVALID, f"{path} is not UTF-8 text; {_AS_CSV}") from error


def _row(names: list[str], line: list[str], where: str) -> SheetRow:
    if len(line) < len(names) or any(cell.strip() for cell in line[len(names) :]):
        raise Stop(
            ExitCode.INVALID,
            f"{where}: {several(len(line), 'cell')}, but {several(len(names), 'column')}. Name "
            "each column in the first line, and put text with a comma in quotes. Nothing was "
            "recorded.",
        )
    return SheetRow({n: _plain(cell) for n, cell in zip(names, line, strict=False)}, where)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    return _BARE.sub("'", str(value))


def _plain(cell: str) -> str:
    return _ESCAPED.sub("", cell)


def _line(cells: Iterable[str]) -> str:
    """A line of CSV; `csv` itself leaves a carriage return unquoted, and then cannot read it."""
    return ",".join(
        f'"{c.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(c) else c for c in cells
    )
