"""Tables as programs save them: bytes in, rows of text out, each with its file and line.

A table may have commas, semicolons or tabs between its cells, decimal points or decimal commas, and
be UTF-8, UTF-16 or Windows-1252; or it is a workbook (`covey.cli.workbooks`). What a table leaves
open is never guessed: the error names the cells that leave it open.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from covey.cli.output import ExitCode, Stop, say, sentence
from covey.errors import HistoryError, SpaceError, did_you_mean, several
from covey.spreadsheets import decimal_mark, unescaped

_LARGEST = 2**26  # bytes of a table, a million rows; a device or a pipe may have no end
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_AS_CSV = "in a spreadsheet, save it as 'CSV UTF-8' or as .xlsx and name that file."
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_HEAD = 2**20  # letters, in which the first line ends
_QUOTED = re.compile(r'"[^"]*"?')
_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # a first line that Excel reads and hides
_POINTED = re.compile(r"[+-]?[0-9]*\.[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_COMMAED = re.compile(r"[+-]?[0-9]*,[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How the numbers of a table are written, and what there is to say about reading it."""

    decimal: str = "."
    separator: str = ","
    notes: list[str] = field(default_factory=list, compare=False)  # filled while it is read


@dataclass(frozen=True)
class Expected:
    """What a reader knows before it reads: names of columns, those of numbers, the decimal mark."""

    names: Collection[str] = ()
    numbers: Container[str] | None = None  # None: any column may hold numbers
    decimal: str | None = None  # where a table leaves it open


@dataclass(frozen=True)
class SheetRow:
    """One row of a table, and its file and line."""

    cells: dict[str, str]
    where: str  # file:line
    dialect: Dialect = field(default_factory=Dialect)
    file: str = ""

    def text(self, column: str) -> str:
        """The text of a cell without the blanks around it; empty if there is no such column."""
        return self.cells.get(column, "").strip()

    def number(self, column: str, hint: str = "") -> float:
        """The number in a cell, finite and of a size that a study takes."""
        text = self.text(column)
        try:
            value = plain_number(text, self.dialect.decimal)
        except SpaceError as error:
            raise self.error(
                f"the {column} {text!r} is no number{hint}.{self._way(text)}"
            ) from error
        from covey.history.checks import MOST

        if not abs(value) <= MOST:
            raise self.error(f"the {column} must be finite, within ±{MOST:g}, got {text}{hint}.")
        return value

    def _way(self, text: str) -> str:
        """What to do about a text that is no number, if it looks like one."""
        from covey.cli.dates import days_in

        if days_in(text):
            return " A spreadsheet makes dates of numbers such as 1.5; type it once more."
        if "," in text and "." in text:
            return " Write it without marks between thousands."
        if self.dialect.decimal == "," and "." in text:
            return " This file has decimal commas; write the number so."
        return " Write decimal numbers with a point." if "," in text else ""

    def error(self, message: str) -> Stop:
        """An error about this line."""
        return Stop(ExitCode.INVALID, f"{self.where}: {sentence(message)} Nothing was recorded.")


@dataclass(frozen=True)
class SheetTable:
    """A table: its file, the names of its columns in order, and its rows."""

    file: str
    columns: list[str]
    rows: list[SheetRow]
    dialect: Dialect

    def say_notes(self) -> None:
        """Say what was noticed when it was read, each thing once."""
        for note, count in Counter(self.dialect.notes).items():
            say(f"{self.file}: {note}{'' if count == 1 else f' ({count} cells)'}")


def plain_number(text: str, decimal: str = ".") -> float:
    """The number in a text; imports `covey.space.names` only when called, so help is quick."""
    from covey.space.names import number_from_text

    if decimal == ",":
        if "." in text:
            raise SpaceError(f"{text!r} is not a number with a decimal comma.")
        text = text.replace(",", ".")
    return number_from_text(text)


def with_point(text: str) -> str | None:
    """A number with a decimal comma, written with a point; None if the text is none.

    >>> with_point("1,5"), with_point("1,4-dioxane")
    ('1.5', None)
    """
    return text.replace(",", ".") if _COMMAED.fullmatch(text.strip()) else None


def has_point(text: str) -> bool:
    """Whether a text is a number with a decimal point."""
    return _POINTED.fullmatch(text.strip()) is not None


def read_table(path: str, expected: Expected | None = None) -> SheetTable:
    """The table in a file; "-" is stdin. What was noticed on the way is in its notes."""
    name = "stdin" if path == "-" else path
    try:
        data = bounded(path, _LARGEST)
    except FileNotFoundError as error:
        raise Stop(ExitCode.CONFLICT, f"there is no file {path}.") from error
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"cannot read {path}: {error.strerror}.") from error
    return table_of(data, name, expected or Expected())


def table_of(data: bytes, file: str, expected: Expected) -> SheetTable:
    """The table in these bytes; ``file`` is its name in messages."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Stop(
            ExitCode.INVALID, f"{file} is an Excel workbook of the old kind (.xls); {_AS_CSV}"
        )
    if data.startswith(b"PK\x03\x04"):
        from covey.cli.workbooks import lines_of_workbook

        found = lines_of_workbook(data, file, expected.names)
        return _table(file, found.lines, Dialect(notes=found.notes))
    text, notes = _decoded(data, file)
    separator, text, skipped = _separated(text, file, expected)
    lines = [(n + skipped, line) for n, line in _lines(text, separator, file)]
    table = _table(file, lines, Dialect(separator=separator, notes=notes))
    decimal = _decimal(table, expected)
    if decimal == ".":
        return table
    dialect = replace(table.dialect, decimal=decimal)
    return replace(
        table, rows=[replace(row, dialect=dialect) for row in table.rows], dialect=dialect
    )


def _decoded(data: bytes, file: str) -> tuple[str, list[str]]:
    encoding = next((name for mark, name in _BOMS.items() if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding), []
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            name = "UTF-16" if encoding == "utf-16" else "UTF-8"
            raise Stop(
                ExitCode.INVALID, f"{file} begins as {name} and is none; {_AS_CSV}"
            ) from error
    try:
        return data.decode("cp1252"), ["not UTF-8; its letters were read as Windows-1252 (Latin-1)"]
    except UnicodeDecodeError as error:
        raise Stop(
            ExitCode.INVALID, f"{file} is neither UTF-8 nor Windows-1252 text; {_AS_CSV}"
        ) from error


def _separated(text: str, file: str, expected: Expected) -> tuple[str, str, int]:
    """What separates the cells, the text that is left to read, and the lines taken off it."""
    if hint := _HINT.match(text):
        return hint[1], text[hint.end() :], 1
    unquoted = _QUOTED.sub("_", text[:_HEAD])
    first = next((line for line in unquoted.splitlines() if line.strip(" ,;\t")), "")
    found = [mark for mark in _SEPARATORS if mark in first]
    if len(found) < 2:
        return (found or [","])[0], text, 0
    # Names of columns may hold the other marks: what makes every line alike is the separator.
    fitting = [mark for mark in found if _is_even(text, mark)]
    if len(fitting) != 1:
        known = {
            mark: sum(name.strip() in expected.names for name in _first(text, mark))
            for mark in fitting or found
        }
        most = max(known.values())
        fitting = [mark for mark, count in known.items() if count == most and most]
    if len(fitting) != 1:
        both = " and ".join(_SEPARATORS[mark] for mark in found)
        raise Stop(
            ExitCode.INVALID,
            f"{file}:1: the first line has {both}, and either may separate the columns. Put names "
            "that hold such a sign in quotes. Nothing was recorded.",
        )
    return fitting[0], text, 0


def _first(text: str, separator: str) -> list[str]:
    """The first line, separated so; empty if that cannot be."""
    try:
        return next(_lines(text, separator, ""))[1]
    except Stop:
        return []


def _is_even(text: str, separator: str) -> bool:
    """Whether every line has as many cells as the first."""
    try:
        lines = [line for _, line in _lines(text, separator, "")]
    except Stop:
        return False
    return len({len(line) for line in lines}) == 1


def _lines(text: str, separator: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The lines with something in them, each with its number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for line in reader:
            if any(cell.strip() for cell in line):
                yield reader.line_num, line
    except csv.Error as error:
        raise Stop(ExitCode.INVALID, f"{file}:{reader.line_num}: not CSV ({error}).") from error


def _table(file: str, lines: Sequence[tuple[int, list[str]]], dialect: Dialect) -> SheetTable:
    if not lines:
        raise Stop(ExitCode.INVALID, f"{file} is empty; its first line names the columns.")
    names = _names(lines[0][1], file, dialect.separator)
    rows = [_row(names, line, file, n, dialect) for n, line in lines[1:]]
    return SheetTable(file, names, rows, dialect)


def _names(cells: list[str], file: str, separator: str) -> list[str]:
    names = [unescaped(cell, separator).strip() for cell in cells]
    while len(names) > 1 and not names[-1]:  # trailing commas
        names.pop()
    for name, count in Counter(names).items():
        if not name:
            place = names.index(name) + 1
            raise Stop(ExitCode.INVALID, f"{file}: column {place} of the first line has no name.")
        if count > 1:
            raise Stop(ExitCode.INVALID, f"{file} has two columns named {name!r}; rename one.")
    return names


def _row(names: list[str], line: list[str], file: str, number: int, dialect: Dialect) -> SheetRow:
    where = f"{file}:{number}"
    if len(line) < len(names) or any(cell.strip() for cell in line[len(names) :]):
        raise Stop(
            ExitCode.INVALID,
            f"{where}: {several(len(line), 'cell')}, but {several(len(names), 'column')}. Name "
            "each column in the first line, and put text with a comma in quotes. Nothing was "
            "recorded.",
        )
    cells = {n: unescaped(cell, dialect.separator) for n, cell in zip(names, line, strict=False)}
    return SheetRow(cells, where, dialect, file)


def _decimal(table: SheetTable, expected: Expected) -> str:
    """The decimal mark of a table, as far as its numbers say; a point where they do not.

    Raises:
        Stop: Both marks occur; or every number with a mark may also be one with thousands apart;
            and nothing is expected.
    """
    try:
        cells = _number_cells(table, expected.numbers)
        return decimal_mark(cells, table.dialect.separator, expected.decimal)
    except HistoryError as error:
        raise Stop(
            ExitCode.INVALID,
            f"{error} Say which it is with --decimal comma or --decimal point. Nothing was "
            "recorded.",
        ) from error


def _number_cells(table: SheetTable, numbers: Container[str] | None) -> Iterator[tuple[str, str]]:
    """Where there are numbers with a mark in them, and their text."""
    wanted = [name for name in table.columns if numbers is None or name in numbers]
    for row in table.rows:
        for name in wanted:
            text = row.text(name)
            if has_point(text) or with_point(text) is not None:
                yield f"{row.where}: {name} is {text!r}", text


def column_like(names: Sequence[str], wanted: str, file: str) -> str | None:
    """The column of this name, in whatever capitals; None if there is none."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    if len(alike) > 1:
        both = " and ".join(map(repr, alike))
        raise Stop(ExitCode.INVALID, f"{file}: {both} may both be {wanted!r}; rename one.")
    return alike[0] if alike else None


def no_column(wanted: str, table: SheetTable, way: str = "") -> Stop:
    """The error for a column that a table lacks."""
    return Stop(
        ExitCode.INVALID,
        f"{table.file} has no column {wanted!r}; it has {', '.join(table.columns)}."
        f"{did_you_mean(wanted, table.columns)}{way} Nothing was recorded.",
    )


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
