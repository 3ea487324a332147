"""Excel workbooks (.xlsx), read and written by openpyxl, which is an extra: covey[excel]."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covey.errors import CoveyError, HistoryError, MissingExtraError, several

_LARGEST = 2**29  # bytes of a workbook unpacked: a small file may hold terabytes of blanks
_WIDEST = 2**11  # columns of a sheet: one cell far away is a stray one
_EXACT = 10**15  # a spreadsheet keeps fifteen digits of a number
# Control characters that XML cannot hold.
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_TRUTHS = {"=TRUE()": "True", "=FALSE()": "False"}  # LibreOffice has no booleans but these
Finder = Callable[[Sequence[Sequence[str]]], int | None]  # of the line at which a table begins


def require_openpyxl(what: str) -> Any:
    """The package that reads and writes workbooks.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import openpyxl
    except ImportError as error:
        package = f"openpyxl ({what} is an Excel workbook; a .csv file needs nothing)"
        raise MissingExtraError(package, "excel") from error
    return openpyxl


def lines_of_workbook(
    data: bytes, file: str, find: Finder
) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The lines of the sheet that is meant, each with its number, and what there is to say.

    It is the only sheet with something in it, or the only one in which a table is found.
    """
    _require_whole(data, file)
    openpyxl = require_openpyxl(file)
    try:
        # Once for the values that formulas had when it was saved, once for where formulas are.
        values, formulas = (
            openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=only)
            for only in (True, False)
        )
        found = {
            sheet.title: _Sheet.read(sheet, formulas[sheet.title], f"{file}:{sheet.title}")
            for sheet in values.worksheets
        }
        lines = {title: sheet.lines() for title, sheet in found.items()}
        title = _meant(lines, file, find)
        notes = found[title].formula_notes(f"{file}:{title}")
    except CoveyError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers raise
        raise HistoryError(
            f"{file} cannot be read as an Excel workbook ({error}); save it anew."
        ) from error
    if len([one for one in lines.values() if one]) > 1:
        notes.append(f"of its {len(lines)} sheets {title!r} was read")
    return lines[title], notes


def _require_whole(data: bytes, file: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            size = sum(part.file_size for part in parts.infolist())
            is_workbook = "xl/workbook.xml" in parts.namelist()
    except zipfile.BadZipFile as error:
        raise HistoryError(
            f"{file} begins as a workbook and is none; save it anew, or as CSV."
        ) from error
    if size > _LARGEST:
        raise HistoryError(
            f"{file} unpacks to {size / 2**20:.0f} MiB, and {_LARGEST / 2**20:.0f} are enough for "
            "a sheet; save the sheet alone, or as CSV.",
        )
    if not is_workbook:
        raise HistoryError(
            f"{file} is a packed file, but no Excel workbook; save it as .xlsx or as CSV.",
        )


def _meant(lines: Mapping[str, Sequence[tuple[int, list[str]]]], file: str, find: Finder) -> str:
    filled = [title for title, found in lines.items() if found]
    if len(filled) < 2:
        return (filled or list(lines))[0]
    fitting = [t for t in filled if find([line for _, line in lines[t]]) is not None]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(map(repr, fitting or filled))
    raise HistoryError(
        f"{file} has several sheets that may be meant: {names}. Save the one that is meant in a "
        "file of its own. Nothing was recorded.",
    )


@dataclass(frozen=True)
class _Sheet:
    """The cells of a sheet as text, and those that are formulas with the values they had."""

    cells: list[list[str]]
    formulas: list[tuple[str, Any]]  # place, value

    @classmethod
    def read(cls, values: Any, formulas: Any, where: str) -> _Sheet:
        """Both from the same sheet, opened for values and for formulas."""
        for sheet in (values, formulas):
            sheet.reset_dimensions()  # what a file says of its size may be wrong
        cells, found = [], []
        for shown, written in zip(values.iter_rows(), formulas.iter_rows(), strict=False):
            line: list[str] = []
            _refuse_stray(written, where)
            for value, cell in zip(shown, written, strict=False):
                is_formula = getattr(cell, "data_type", "") == "f"
                truth = _TRUTHS.get(str(cell.value)) if is_formula else None
                line.append(_text(value) if truth is None else truth)
                if is_formula and truth is None:
                    found.append((cell.coordinate, value.value))
            cells.append(line[: _end_of(line)])
        return cls(cells[: _end_of(cells)], found)

    def lines(self) -> list[tuple[int, list[str]]]:
        """The lines up to the last with something in it, each up to its last such cell."""
        return list(enumerate(self.cells, 1))

    def formula_notes(self, where: str) -> list[str]:
        """What to say about formulas, whose values were worked out by whoever saved the file."""
        if not self.formulas:
            return []
        if all(value is None for _, value in self.formulas):
            raise HistoryError(
                f"{where}!{self.formulas[0][0]} is a formula, and its value was not saved with it. "
                "Open the file in a spreadsheet and save it there, or write the value. Nothing was "
                "recorded.",
            )
        count = several(len(self.formulas), "formula")
        return [f"{count}, taken by the values they had when it was saved"]


def _end_of(items: Sequence[str | list[str]]) -> int:
    """Return the place behind the last item with something in it."""
    end = len(items)
    while end and not (item.strip() if isinstance(item := items[end - 1], str) else item):
        end -= 1
    return end


def _refuse_stray(row: Sequence[Any], where: str) -> None:
    """Raise if a row goes on far to the right of any table."""
    if len(row) > _WIDEST and (stray := [cell for cell in row[_WIDEST:] if cell.value is not None]):
        raise HistoryError(
            f"{where}!{stray[-1].coordinate} has something in it, and a table has at most "
            f"{_WIDEST} columns. Delete the columns to the right of the table, or save it as CSV. "
            "Nothing was recorded."
        )


def _text(cell: Any) -> str:
    """A cell as a CSV file would have it, but with every digit."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, float | int) and not isinstance(value, bool):
        if "%" in str(cell.number_format):  # 0.73, and shown as 73%
            return f"{value * 100:.10g}%"
        return repr(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def workbook(lines: Sequence[Sequence[Any]]) -> bytes:
    """A workbook of one sheet: numbers as numbers, everything else as text that stays text.

    The first line names the columns. Cells are None, numbers, or text in which nothing begins like
    a formula.
    """
    openpyxl = require_openpyxl("the output")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "batch"
    for row, line in enumerate(lines, start=1):
        for column, value in enumerate(line, start=1):
            _fill(sheet.cell(row=row, column=column), value)
    sheet.freeze_panes = "A2"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _fill(cell: Any, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < _EXACT):
        cell.value = value
    else:
        text = str(value)
        if _UNWRITABLE.search(text):
            raise HistoryError(
                f"{text!r} holds a control character, which a workbook cannot; write a .csv file.",
            )
        cell.value = text
        cell.data_type = "s"
        cell.number_format = "@"  # text: no MAR2 becomes a date when somebody edits the cell
