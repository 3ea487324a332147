"""What spreadsheets do to text: cells that look like formulas, and the decimal marks of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from covey.errors import HistoryError

# A spreadsheet takes a cell that begins like this for a formula. Cells begin where it splits the
# line: one that expects another separator than the file has splits inside our cells, and ignores
# quotes there.
_FORMULA = r"(?=['\"]*[=+\-@\t\r\n\0＝＋－＠])"
_START = {",": r"(?:\A|(?<=[;\t\r\n]))", ";": r"(?:\A|(?<=[,;\t\r\n]))"}
_BARE = {separator: re.compile(start + _FORMULA) for separator, start in _START.items()}
_ESCAPED = {separator: re.compile(start + "'" + _FORMULA) for separator, start in _START.items()}

_MARKED = re.compile(r"[+-]?[0-9]*[.,][0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")  # 1.234 may be 1234: a mark of thousands


def escaped(text: str, separator: str = ",") -> str:
    """Text for a cell, with an apostrophe wherever a spreadsheet would see a formula begin.

    >>> escaped("=1+1"), escaped("a;@x"), escaped("a-b")
    ("'=1+1", "a;'@x", 'a-b')
    """
    return _BARE[";" if separator == ";" else ","].sub("'", text)


def unescaped(cell: str, separator: str = ",") -> str:
    """The text that `escaped` made a cell of."""
    return _ESCAPED[";" if separator == ";" else ","].sub("", cell)


def decimal_mark(cells: Iterable[tuple[str, str]], separator: str, said: str | None) -> str:
    """The decimal mark of a file, as far as its numbers say; a point where they do not.

    Args:
        cells: what may be numbers: where each is, in words, and its text.
        separator: of the cells of the file.
        said: the mark that a person says it has, where the file leaves it open.

    Raises:
        HistoryError: Both marks occur; or every number with a mark may also be one with thousands
            apart; and nothing is said.
    """
    settled: dict[str, str] = {}  # mark -> a cell that has it for certain
    doubtful = ""
    for where, text in cells:
        if not _MARKED.fullmatch(text):
            continue
        if _GROUPED.fullmatch(text):
            doubtful = doubtful or where
        else:
            settled.setdefault("," if "," in text else ".", where)
    if separator == ",":  # a comma ends a cell, unless it is in quotes
        return said if said and set(settled) == {","} else "."
    if len(settled) == 1:
        return next(iter(settled))
    if said is not None or not (settled or doubtful):
        return said or "."
    if settled:
        raise HistoryError(f"{settled[',']}, and {settled['.']}; a file has one decimal mark.")
    raise HistoryError(f"{doubtful}, which may be a decimal mark or one of thousands.")
