"""Numbers in text, and what spreadsheets do to text: formulas, decimal marks, truths, and dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from covey.errors import HistoryError, SpaceError

# Stricter than float(), which takes 1_000 and the digits of every script.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)", re.I)
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


def number_from_text(text: str) -> float:
    """The number in a cell or on the command line; it may be infinite or nan.

    Raises:
        SpaceError: It is no number; 1_000, which Python would read, is taken for a mistake.
    """
    if not text.strip():
        raise SpaceError("it is empty; give a number.")
    if not _NUMBER.fullmatch(text.strip()):
        way = f" Write {text.strip().replace(',', '.')}." if _COMMA.fullmatch(text.strip()) else ""
        raise SpaceError(f"{text!r} is not a number.{way}")
    return float(text)


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


_ASK = "Say which it is with --decimal comma or --decimal point (in Python decimal)."


def decimal_mark(
    cells: Iterable[tuple[str, str]], separator: str, said: str | None, way: str = _ASK
) -> str:
    """The decimal mark of a file, as far as its numbers say; a point where they do not.

    Args:
        cells: what may be numbers: where each is, in words, and its text.
        separator: of the cells of the file.
        said: the mark that a person says it has, where the file leaves it open.
        way: what to do where it is left open, in words.

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
        both = f"{settled[',']}, and {settled['.']}; a file has one decimal mark."
        raise HistoryError(f"{both} {way} Nothing was recorded.")
    doubt = f"{doubtful}, which may be a decimal mark or one of thousands."
    raise HistoryError(f"{doubt} {way} Nothing was recorded.")


# True and False, as spreadsheets in other languages write them.

_TRUTHS = {
    **dict.fromkeys(("TRUE", "WAHR", "VRAI", "VERO", "VERDADERO", "WAAR"), "True"),
    **dict.fromkeys(("FALSE", "FALSCH", "FAUX", "FALSO", "ONWAAR"), "False"),
}


def truth_in(text: str) -> str | None:
    """The text True or False for what a spreadsheet made of it; None for any other text.

    >>> truth_in("WAHR"), truth_in("false"), truth_in("THF")
    ('True', 'False', None)
    """
    return _TRUTHS.get(text.strip().upper())


# Dates. A spreadsheet that opens a CSV file takes MAR2, 2-3 and 1.5 for dates, in the way of its
# language. Where exactly one option can have become the date in a cell, that option is meant.

_MONTHS = {  # by the first letters, in English, German, French, Spanish, Italian and Dutch
    1: ("jan", "jän", "ene", "gen"),
    2: ("feb", "fév", "fev"),
    3: ("mar", "mär", "mrz", "maa", "mrt"),
    4: ("apr", "avr", "abr"),
    5: ("may", "mai", "mei", "mag"),
    6: ("jun", "juin", "giu"),
    7: ("jul", "juil", "lug"),
    8: ("aug", "aoû", "ago"),
    9: ("sep", "set"),
    10: ("oct", "okt", "out", "ott"),
    11: ("nov",),
    12: ("dec", "dez", "déc", "dic"),
}
_STEMS = {stem: month for month, stems in _MONTHS.items() for stem in stems}
_WORD = r"(?P<month>[^\W\d_]{3,9})\.?"
_DAY = r"(?P<day>[0-9]{1,2})\.?"
_YEAR = r"(?:[\s./-]*(?P<year>[0-9]{4}|[0-9]{2}))?"
_NAMED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (rf"{_WORD}[\s./-]*{_DAY}{_YEAR}", rf"{_DAY}[\s./-]*{_WORD}{_YEAR}")
]
_PAIR = re.compile(r"(?P<one>[0-9]{1,2})[./-](?P<two>[0-9]{1,2})(?:[./-](?:[0-9]{4}|[0-9]{2})|\.)?")
_ISO = re.compile(r"[0-9]{4}-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[T ]00:00(:00)?)?")


def days_in(text: str) -> frozenset[tuple[int, int]]:
    """The days (month, day) that a date in a cell may mean; none if the text is no date.

    Of two numbers such as 3/2/2026 either may be the month; without a year they are no date here.

    >>> sorted(days_in("2-Mar")), sorted(days_in("02. Mrz")), sorted(days_in("3/2/2026"))
    ([(3, 2)], [(3, 2)], [(2, 3), (3, 2)])
    >>> sorted(days_in("2026-03-02")), sorted(days_in("1.5")), sorted(days_in("THF"))
    ([(3, 2)], [], [])
    """
    text = text.strip()
    pair = _PAIR.fullmatch(text)
    if pair is not None:
        has_year = len(re.findall(r"[0-9]+", text)) > 2
        return _either(pair) if has_year else frozenset()
    return _named(text)


def days_made_of(name: str) -> frozenset[tuple[int, int]]:
    """The days that a spreadsheet may make of a name, in any language.

    >>> sorted(days_made_of("MAR2")), sorted(days_made_of("2-3")), sorted(days_made_of("1.5"))
    ([(3, 2)], [(2, 3), (3, 2)], [(1, 5), (5, 1)])
    >>> sorted(days_made_of("THF"))
    []
    """
    pair = _PAIR.fullmatch(name.strip())
    return _named(name.strip()) if pair is None else _either(pair)


def options_that_became(text: str, options: Sequence[Any]) -> list[Any]:
    """The options that a spreadsheet can have turned into the date in this cell.

    >>> options_that_became("2-Mar", ["MAR2", "SEPT7", "THF"])
    ['MAR2']
    """
    days = days_in(text)
    return [option for option in options if days & days_made_of(str(option))] if days else []


def _named(text: str) -> frozenset[tuple[int, int]]:
    if iso := _ISO.fullmatch(text):
        return _valid(int(iso["month"]), int(iso["day"]))
    for pattern in _NAMED:
        found = pattern.fullmatch(text)
        month = None if found is None else _month(found["month"])
        if found is not None and month is not None:
            return _valid(month, int(found["day"]))
    return frozenset()


def _month(word: str) -> int | None:
    lowered = word.lower()
    return next((month for stem, month in _STEMS.items() if lowered.startswith(stem)), None)


def _either(pair: re.Match[str]) -> frozenset[tuple[int, int]]:
    one, two = int(pair["one"]), int(pair["two"])
    return _valid(one, two) | _valid(two, one)


def _valid(month: int, day: int) -> frozenset[tuple[int, int]]:
    return frozenset({(month, day)}) if 1 <= month <= 12 and 1 <= day <= 31 else frozenset()
