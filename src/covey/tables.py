"""Tables as programs save them: bytes in, rows of text out, each with its file and line.

A table may have commas, semicolons or tabs between its cells, decimal points or decimal commas, and
be UTF-8, UTF-16 or Windows-1252; or it is a workbook (`covey.workbooks`). Lines above the one that
names the columns are passed over, and that is said. What a table leaves open is never guessed: the
error names the cells that leave it open. Sheets of results, files of plate readers, tables of
wells, of stocks and of rules, descriptors and pools are all read here: `records_of` gives the
records of a file one by one, `lines_of` all of them, `table_of` a table.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import io
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from covey.disk import warning_late
from covey.errors import HistoryError, SpaceError, did_you_mean, sentence, several
from covey.spreadsheets import (
    days_in,
    decimal_mark,
    number_from_text,
    options_that_became,
    truth_in,
    unescaped,
)

if TYPE_CHECKING:
    from covey.space import Parameter

_log = logging.getLogger("covey")
_SILENT = (
    "%s is a pipe, and waits for a program that writes into it and ends. Ctrl-C ends the wait."
)
LARGEST = 2**26  # bytes of a table, a million rows; a device or a pipe may have no end
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
WHERE_OPEN = "If it is open in Excel or another program, close it there, and try again."
_AS_CSV = "in a spreadsheet, save it as 'CSV UTF-8' or as .xlsx and name that file."
PACKED, _OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # begin a workbook, and one of the old kind
_MOST_CELLS = 2**24  # of a table
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_HEAD = 2**20  # letters, in which the first lines end
_PEEK = 400  # lines among which a table begins
_PLACES = 5  # of a note that a message names
_QUOTED = re.compile(r'"[^"]*"?')
_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # a first line that Excel reads and hides
_POINTED = re.compile(r"[+-]?[0-9]*\.[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_COMMAED = re.compile(r"[+-]?[0-9]*,[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_DIGITS = re.compile(r"[+-]?[0-9]*[.,]?([0-9]*)(?:e([+-]?[0-9]+))?", re.IGNORECASE)
_CLOSE, _NEAR = 6e-3, 5e-3  # of a number and of its range: what rounding in a sheet may do


@dataclass(frozen=True)
class Dialect:
    """How the numbers of a table are written, and what there is to say about reading it."""

    decimal: str = "."
    separator: str = ","
    notes: dict[str, dict[str, None]] = field(default_factory=dict, compare=False)  # with places
    where: str = field(default="", compare=False)  # the row that is read

    def note(self, text: str) -> None:
        """Keep something to say, with the row it is about, once for each row."""
        self.notes.setdefault(text, {})[self.where] = None

    def said(self) -> Iterator[str]:
        """What there is to say, each thing once with the places it is true of."""
        for text, every in self.notes.items():
            places = [where for where in every if where]
            more = f", and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
            yield f"{text} ({', '.join(places[:_PLACES])}{more})" if places else text


@dataclass(frozen=True)
class Expected:
    """What a reader knows before it reads: names of columns, those of numbers, the decimal mark.

    ``top`` finds the line, among lines of cells, at which what is wanted begins; without it, that
    is the first line that has names of columns.
    """

    names: Collection[str] = ()
    numbers: Container[str] | None = None  # None: any column may hold numbers
    decimal: str | None = None  # where a table leaves it open
    top: Callable[[Sequence[Sequence[str]]], int | None] | None = None

    def find(self, lines: Sequence[Sequence[str]]) -> int | None:
        """The line at which a table begins, among lines of cells; None if none looks like it."""
        bare = [[cell.strip() for cell in line] for line in lines]
        return _named(bare, self.names) if self.top is None else self.top(bare)


def _named(lines: Sequence[Sequence[str]], names: Collection[str]) -> int | None:
    """The first line with two known names; or the first of all, with one of several cells."""
    known = {name.lower() for name in names}
    for at, line in enumerate(lines):
        filled = [cell for cell in line if cell]
        count = sum(cell.lower() in known for cell in filled)
        is_first = not any(any(above) for above in lines[:at])
        if count > 1 or (count and is_first and len(filled) > 1):
            return at
    return None


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
        from covey.arrays import MOST

        if not abs(value) <= MOST:
            raise self.error(f"the {column} must be finite, within ±{MOST:g}, got {text}{hint}.")
        return value

    def _way(self, text: str) -> str:
        """What to do about a text that is no number, if it looks like one."""
        if days_in(text):
            return " A spreadsheet makes dates of numbers such as 1.5; type it once more."
        if "," in text and "." in text:
            return " Write it without marks between thousands."
        if self.dialect.decimal == ",":
            return " This file has decimal commas; write the number so." if "." in text else ""
        if "," in text and self.file.lower().endswith(".xlsx"):  # Excel may want the comma
            return " The cell is a text; format it as a number, and type it as the others there."
        return " Write decimal numbers with a point." if "," in text else ""

    def error(self, message: str) -> HistoryError:
        """An error about this line."""
        return HistoryError(f"{self.where}: {sentence(message)} Nothing was recorded.")


@dataclass(frozen=True)
class SheetTable:
    """A table: its file, the names of its columns in order, and its rows."""

    file: str
    columns: list[str]
    rows: list[SheetRow]
    dialect: Dialect
    above: int = 0  # lines above that which names the columns


def no_column(wanted: str, table: SheetTable, way: str = "") -> HistoryError:
    """The error for a column that a table lacks."""
    return HistoryError(
        f"{table.file} has no column {wanted!r}; it has {', '.join(table.columns)}."
        f"{did_you_mean(wanted, table.columns)}{way} Nothing was recorded."
    )


@dataclass(frozen=True)
class Lines:
    """The cells of a file, line by line with their numbers, blank ones too, and the first of use.

    ``top`` is its place among them; ``fits`` says whether it begins what was expected.
    """

    file: str
    cells: list[tuple[int, list[str]]]
    dialect: Dialect
    top: int = 0
    fits: bool = False
    ragged: bool = False  # lines end at their last cell with something in it


def plain_number(text: str, decimal: str = ".") -> float:
    """The number in a text, by the decimal mark of its file."""
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


def span_of(parameter: Parameter) -> float:
    """The length of a range on which differences count; 0 where only ratios do, or there is none.

    It is what `is_alike` compares roundings with.
    """
    low, high = parameter.span
    return float(high - low) if parameter.scale != "log" and low < high else 0.0


def is_alike(cell: str, value: Any, span: float, decimal: str = ".") -> bool:
    """Whether a cell says this value, or what a spreadsheet makes of it.

    That is TRUE or WAHR for True, a date for a name such as MAR2, 1 for 1.0, or the number rounded
    to the digits that it has and not by much, within ``span``, the length of its range.

    >>> is_alike("84.89", 84.88568, 100.0), is_alike("130", 128.75, 9.0), is_alike("WAHR", True, 0)
    (True, False, True)
    """
    said, wanted = cell.strip(), str(value).strip()
    if said.lower() == wanted.lower() or truth_in(said) == wanted:
        return True
    if options_that_became(said, [value]):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        gap = abs(plain_number(said, decimal) - value)
    except SpaceError:
        return False
    digits = _DIGITS.fullmatch(said)
    if gap <= 1e-9 * abs(value) or digits is None or isinstance(value, int):
        return gap <= 1e-9 * abs(value)
    unit = 10.0 ** (int(digits[2] or 0) - len(digits[1]))
    return gap <= 0.5000001 * unit and (gap <= _CLOSE * abs(value) or gap <= _NEAR * span)


@contextlib.contextmanager
def as_space_errors() -> Iterator[None]:
    """Raise what is wrong with a table that describes a space as a `SpaceError`."""
    try:
        yield
    except HistoryError as error:  # nothing would have been recorded
        raise SpaceError(str(error).removesuffix(" Nothing was recorded.")) from error


# From bytes to records, lists of cells.

Reader: TypeAlias = Any  # csv.reader, whose type has no public name, or what reads as it does


class _SheetReader:
    """Reads the lines of a workbook's sheet as csv.reader reads those of a file."""

    def __init__(self, lines: Iterable[tuple[int, list[str]]]) -> None:
        self.line_num = 0
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self.line_num, line = next(self._lines)
        return line


@dataclass(frozen=True)
class Records:
    """The records of a file, which may be read as often as wanted: how they are written."""

    file: str  # its name in messages
    open: Callable[[], BinaryIO]
    dialect: Dialect
    encoding: str = "utf-8-sig"
    strict: bool = True  # whether quotes that are out of place are errors
    skipped: int = 0  # lines before the first record
    sheet: list[tuple[int, list[str]]] | None = None  # the lines of a workbook
    top: int | None = None  # the record at which what was expected begins, if one looks like it

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        """A reader of all records, blank ones too; `line_of` says on which line the last ended."""
        if self.sheet is not None:
            yield _SheetReader(self.sheet)
            return
        with io.TextIOWrapper(self.open(), self.encoding, newline="") as stream:
            for _ in range(self.skipped):
                stream.readline()
            reader = csv.reader(stream, delimiter=self.dialect.separator, strict=self.strict)
            try:
                yield reader
            except csv.Error as error:
                raise HistoryError(
                    f"{self.file}:{self.line_of(reader)}: not CSV ({error})."
                ) from error

    def line_of(self, reader: Reader) -> int:
        """The line of the file, counted from 1, on which the record ends that was read last."""
        return int(reader.line_num) + self.skipped

    def separated_by(self, separator: str) -> Records:
        """The same file, with its cells separated so."""
        return replace(self, dialect=replace(self.dialect, separator=separator))

    def peek(self) -> list[list[str]]:
        """The first records, as far as they can be read."""
        found: list[list[str]] = []
        with contextlib.suppress(HistoryError), self.reader() as reader:  # those above an error do
            for line in islice(reader, _PEEK):
                found.append([unescaped(cell, self.dialect.separator) for cell in line])
        return found


def bounded(path: str | Path, most: int) -> bytes:
    """What a file holds, a pipe or a device too. More than ``most`` bytes is refused.

    While nobody writes into a pipe it is waited for, and after some seconds a warning says so.

    Raises:
        OSError: It cannot be read.
        HistoryError: It is too large, or its name none.
    """
    path = Path(path)
    if "\0" in str(path):
        raise HistoryError(f"cannot read {str(path)!r:.80}: no file's name has a null character.")
    waiting = (
        warning_late(lambda: _log.warning(_SILENT, path))
        if path.is_fifo()
        else contextlib.nullcontext()
    )
    with waiting, path.open("rb") as stream:
        return read_within(stream, most, str(path))


def read_within(stream: BinaryIO, most: int, name: str) -> bytes:
    """What is left in a stream, of at most so many bytes."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise HistoryError(
            f"{name} is larger than {most / 2**20:.0f} MiB; is it the file you meant?"
        )
    return data


def lines_in(path: str | Path, expected: Expected) -> Lines:
    """The lines of a file.

    Raises:
        HistoryError: It cannot be read.
    """
    try:
        data = bounded(path, LARGEST)
    except OSError as error:
        raise HistoryError(unreadable(path, error)) from error
    return lines_of(data, str(path), expected)


def unreadable(path: str | Path, error: OSError) -> str:
    """Why a file cannot be read, and what to do, in words."""
    if error.errno == errno.ENAMETOOLONG:  # of which nothing else can be asked
        return f"cannot read {str(path)[:60]}...: {error.strerror}."
    if isinstance(error, PermissionError) and not Path(path).is_dir():
        return f"cannot read {path}: {error.strerror}. {WHERE_OPEN}"
    if Path(path).is_dir():  # which Windows calls a lack of permission
        return f"cannot read {path}: it is a folder; name a file in it."
    return f"cannot read {path}: {error.strerror}."


def lines_of(data: bytes, file: str, expected: Expected) -> Lines:
    """The lines in these bytes; ``file`` is its name in messages."""
    records = records_of(partial(io.BytesIO, data), file, expected)
    separator = records.dialect.separator
    with records.reader() as reader:
        cells = [(records.line_of(reader), [unescaped(c, separator) for c in r]) for r in reader]
    first = next((at for at, (_, line) in enumerate(cells) if is_filled(line)), 0)
    top, ragged = records.top, records.sheet is not None
    return Lines(
        file, cells, records.dialect, first if top is None else top, top is not None, ragged
    )


def records_of(open_file: Callable[[], BinaryIO], file: str, expected: Expected) -> Records:
    """The records of a file that may be opened as often as wanted; ``file`` is its name."""
    if Path(file).name.startswith("~$"):
        raise HistoryError(
            f"{file} only says that a workbook is open in Excel; name the workbook itself, "
            f"{Path(file).name.removeprefix('~$')}."
        )
    with open_file() as stream:
        head = stream.read(len(_OLD))
    if head == _OLD:
        raise HistoryError(f"{file} is an Excel workbook of the old kind (.xls); {_AS_CSV}")
    if head == PACKED:
        records = _records_of_workbook(open_file, file, expected)
    else:
        dialect = Dialect()
        records = Records(file, open_file, dialect, _encoding(open_file, file, dialect))
        records = _separated(records, expected)
    return replace(records, top=expected.find(records.peek()))


def _records_of_workbook(
    open_file: Callable[[], BinaryIO], file: str, expected: Expected
) -> Records:
    from covey.workbooks import lines_of_workbook

    with open_file() as stream:
        found, notes = lines_of_workbook(read_within(stream, LARGEST, file), file, expected.find)
    dialect = Dialect()
    for note in notes:
        dialect.note(note)
    return Records(file, open_file, dialect, sheet=found)


def _encoding(open_file: Callable[[], BinaryIO], file: str, dialect: Dialect) -> str:
    with open_file() as stream:
        head = stream.read(4)
    encoding = next((name for mark, name in _BOMS.items() if head.startswith(mark)), "utf-8")
    if encoding == "utf-8" and 0 in head[:2]:  # no text has such a letter: every second byte is 0
        encoding = "utf-16-be" if head[0] == 0 else "utf-16-le"
    if _is_text(open_file, encoding):
        return encoding
    if encoding != "utf-8":
        name = "UTF-16" if encoding.startswith("utf-16") else "UTF-8"
        raise HistoryError(f"{file} begins as {name} and is none; {_AS_CSV}")
    if not _is_text(open_file, "cp1252"):
        raise HistoryError(f"{file} is neither UTF-8 nor Windows-1252 text; {_AS_CSV}")
    dialect.note("not UTF-8; its letters were read as Windows-1252 (Latin-1)")
    return "cp1252"


def _is_text(open_file: Callable[[], BinaryIO], encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with open_file() as stream:
            while piece := stream.read(_HEAD):
                decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _separated(records: Records, expected: Expected) -> Records:
    """The records of a text file, their cells separated as its first lines say."""
    with io.TextIOWrapper(records.open(), records.encoding, newline="") as stream:
        head = stream.read(_HEAD)
    if hint := _HINT.match(head):
        return replace(records.separated_by(hint[1]), skipped=1)
    unquoted = _QUOTED.sub("_", head)
    there = {mark: records.separated_by(mark) for mark in _SEPARATORS if mark in unquoted}
    fitting = [mark for mark in there if expected.find(there[mark].peek()) is not None]
    if len(fitting) == 1:
        return there[fitting[0]]
    first = next((line for line in unquoted.splitlines() if line.strip(" ,;\t")), "")
    found = fitting or [mark for mark in there if mark in first]
    if len(found) < 2:
        return records.separated_by((found or [","])[0])
    # Names of columns may hold the other marks: what makes every line alike is the separator.
    fitting = [mark for mark in found if _is_even(there[mark])]
    if len(fitting) != 1:
        known = {
            mark: sum(name.strip() in expected.names for name in _first(there[mark]))
            for mark in fitting or found
        }
        most = max(known.values())
        fitting = [mark for mark, count in known.items() if count == most and most]
    if len(fitting) != 1:
        both = " and ".join(_SEPARATORS[mark] for mark in found)
        raise HistoryError(
            f"{records.file}:1: the first line has {both}, and either may separate the columns. "
            "Put names that hold such a sign in quotes. Nothing was recorded."
        )
    return there[fitting[0]]


def _first(records: Records) -> list[str]:
    """The first record with something in it; empty if there is none."""
    return next(filter(is_filled, records.peek()), [])


def _is_even(records: Records) -> bool:
    """Whether every record has as many cells as the first."""
    try:
        with records.reader() as reader:
            return len({len(record) for record in reader if is_filled(record)}) == 1
    except HistoryError:
        return False


def is_filled(line: Iterable[str]) -> bool:
    """Whether a line has something in it."""
    return any(cell.strip() for cell in line)


# From lines to a table.


def table_of(data: bytes, file: str, expected: Expected) -> SheetTable:
    """The table in these bytes; ``file`` is its name in messages."""
    return table_from(lines_of(data, file, expected), expected.numbers, expected.decimal)


def table_from(
    lines: Lines, numbers: Container[str] | None, decimal: str | None, *, loose: bool = False
) -> SheetTable:
    """The table that begins at the top of these lines.

    ``numbers`` are the columns by which the decimal mark is found, unless ``decimal`` says it. With
    ``loose``, as machines write, rows may be short, and columns without a name are passed over.
    """
    filled = [(n, line) for n, line in lines.cells[lines.top :] if is_filled(line)]
    file, dialect = lines.file, lines.dialect
    if not filled:
        raise HistoryError(f"{file} is empty; its first line names the columns.")
    names = _names(filled[0], file, loose=loose)
    if len(names) * len(filled) > _MOST_CELLS:
        raise HistoryError(
            f"{file} has {several(len(names), 'column')} and {several(len(filled) - 1, 'row')}, "
            f"more than {_MOST_CELLS} cells; is it the file you meant? Nothing was recorded."
        )
    above = [(n, line) for n, line in lines.cells[: lines.top] if is_filled(line)]
    note_above(above, dialect)
    may_end = loose or lines.ragged
    cells = [_cells(names, line, f"{file}:{n}", may_end=may_end) for n, line in filled[1:]]
    rows = [SheetRow(c, f"{file}:{n}") for c, (n, _) in zip(cells, filled[1:], strict=True)]
    mark = _decimal(SheetTable(file, names, rows, dialect), numbers, decimal)
    dialect = replace(dialect, decimal=mark)
    rows = [SheetRow(r.cells, r.where, replace(dialect, where=r.where), file) for r in rows]
    return SheetTable(file, [name for name in names if name], rows, dialect, len(above))


def note_above(above: Sequence[tuple[int, Sequence[str]]], dialect: Dialect) -> None:
    """Say that lines above the names of the columns were not read."""
    if above:
        number, line = above[0]
        what = next(cell.strip() for cell in line if cell.strip())[:40]
        also = "" if len(above) == 1 else f" and {several(len(above) - 1, 'line')} below it"
        verb = "was" if len(above) == 1 else "were"
        text = f"line {number} ({what}){also} above the names of the columns {verb} not read"
        dialect.notes.setdefault(text, {})


def _names(line: tuple[int, list[str]], file: str, *, loose: bool) -> list[str]:
    number, cells = line
    names = [cell.strip() for cell in cells]
    while len(names) > 1 and not names[-1]:  # trailing commas
        names.pop()
    for name, count in Counter(names).items():
        if not name and not loose:
            place, of = names.index(name) + 1, "the first line" if number == 1 else f"line {number}"
            raise HistoryError(f"{file}: column {place} of {of} has no name.")
        if name and count > 1:
            raise HistoryError(f"{file} has two columns named {name!r}; rename one.")
    return names


def _cells(names: list[str], line: list[str], where: str, *, may_end: bool) -> dict[str, str]:
    """Return the cells of a line by column; it ``may_end`` before the last column."""
    short = len(line) < len(names)
    if (short and not may_end) or is_filled(line[len(names) :]):
        raise HistoryError(
            f"{where}: {several(len(line), 'cell')}, but {several(len(names), 'column')}. Name "
            "each column in the first line, and put text with a comma in quotes. Nothing was "
            "recorded."
        )
    full = [*line, *[""] * (len(names) - len(line))]
    return {name: cell for name, cell in zip(names, full, strict=False) if name}


def _decimal(table: SheetTable, numbers: Container[str] | None, said: str | None) -> str:
    """The decimal mark of a table, as far as its numbers say; a point where they do not."""
    wanted = [name for name in table.columns if name and (numbers is None or name in numbers)]
    cells = (
        (f"{row.where}: {name} is {row.text(name)!r}", row.text(name))
        for row in table.rows
        for name in wanted
    )
    return decimal_mark(cells, table.dialect.separator, said)
