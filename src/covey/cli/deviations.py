"""Whether a row has the point that was asked for, given what a spreadsheet does to numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import covey
from covey.cli import sheets
from covey.cli.tables import Dialect, SheetRow, plain_number
from covey.errors import SpaceError

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.space import Pool, Space

_CLOSE = 6e-3  # relative: three digits of a number
_SAME = 5e-3  # of a range: half of what a batch's points are apart by default
_DIGITS = re.compile(r"[+-]?[0-9]*[.,]?([0-9]*)(?:e([+-]?[0-9]+))?", re.IGNORECASE)


def differing(row: SheetRow, trial: Trial, space: Space | Pool) -> list[tuple[str, str]]:
    """The parameters of which a row says something else than its trial, and what it says.

    An empty cell says nothing; a value of a parameter that the trial lacks is something else.
    """
    found = []
    for name in dict.fromkeys([*trial.point, *_parameters(space)]):
        cell = row.cells.get(sheets.heading(name), "")
        if not cell.strip():
            continue
        if name not in trial.point or not _is_alike(cell, name, trial.point[name], row, space):
            found.append((name, cell.strip()))
    return found


def _parameters(space: Space | Pool) -> Sequence[str]:
    return () if isinstance(space, covey.Pool) else space.names


def point_as_run(row: SheetRow, trial: Trial, space: Space | Pool) -> Mapping[str, Any]:
    """The point of a row: what it says where that differs, and what was asked for elsewhere.

    Where that is no point, an empty cell may mean that its parameter was absent.

    Raises:
        SpaceError: The space has no such point.
    """
    point = dict(trial.point)
    for name, cell in differing(row, trial, space):
        point[name] = sheets.value_in_cell(space, name, cell, row.dialect)
    try:
        return space.check(point)
    except SpaceError:
        empty = [name for name in point if not row.cells.get(sheets.heading(name), "?").strip()]
        if not empty:
            raise
        try:
            return space.check({n: value for n, value in point.items() if n not in empty})
        except SpaceError:
            pass
        raise


def _is_alike(cell: str, name: str, value: Any, row: SheetRow, space: Space | Pool) -> bool:
    """The same value, or what a spreadsheet makes of it: TRUE, 1 for 1.0, a rounded number."""
    said = cell.strip()
    if cell == str(value):
        return True
    try:
        read = sheets.value_in_cell(space, name, cell, row.dialect)
        if isinstance(space, covey.Space):
            read = space.parameters[name].check(read)
        if read == value or _is_discrete(space, name):
            return bool(read == value and type(read) is type(value))
    except SpaceError:  # between two steps, say, as a rounded number may be
        from covey.cli.dates import options_that_became

        if said.lower() == str(value).strip().lower() or options_that_became(said, [value]):
            return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return _is_rounded(said, float(value), _span(space, name), row.dialect)


def _is_discrete(space: Space | Pool, name: str) -> bool:
    return isinstance(space, covey.Space) and space.parameters[name].size is not None


def _span(space: Space | Pool, name: str) -> float:
    """The length of a range on which differences count; 0 where only ratios do."""
    if isinstance(space, covey.Pool):
        return 0.0
    parameter = space.parameters[name]
    low, high = parameter.span
    return 0.0 if getattr(parameter, "log", False) or math.isnan(low) else high - low


def _is_rounded(said: str, value: float, span: float, dialect: Dialect) -> bool:
    """Whether a text is this number, rounded to the digits that it has and not by much.

    >>> _is_rounded("84.89", 84.88568, 100.0, Dialect()), _is_rounded("130", 128.75, 9.0, Dialect())
    (True, False)
    """
    try:
        number = plain_number(said, dialect.decimal)
    except SpaceError:
        return False
    gap = abs(number - value)
    if gap <= 1e-9 * abs(value):
        return True
    digits = _DIGITS.fullmatch(said)
    if digits is None or not (gap <= _CLOSE * abs(value) or gap <= _SAME * span):
        return False
    unit = 10.0 ** (int(digits[2] or 0) - len(digits[1]))
    return gap <= 0.5000001 * unit
