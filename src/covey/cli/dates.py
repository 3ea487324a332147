"""Dates that a spreadsheet made of names: MAR2, 2-3 and 1.5 come back as the second of March.

A spreadsheet that opens a CSV file takes such text for a date, in the way of its language. Where
exactly one option can have become the date in a cell, that option is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

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
