"""Files of plate readers: a long table with a row for each well, or a matrix as the plate looks.

`read_readings` makes `Readings` of either; `news` leaves out what a log has already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from covey.errors import HistoryError, SpaceError, did_you_mean, several
from covey.history import PlateRecord, Point
from covey.plates.layout import Grid, row_name
from covey.plates.wells import csv_lines, number_in

_LARGEST = 2**24  # bytes of a reader's file
_EMPTY = ("", "-", "--", "nan", "n/a", "na", "none")
_WORDS = {"overflow", "over", "ovrflw", "sat", "#sat", "saturated", "*****", "####"}
_WELL = ("well", "well position", "well id", "position", "destination well")


@dataclass(frozen=True)
class Readings:
    """What a reader measured on one plate, by well."""

    values: dict[str, float | Point]
    marks: dict[str, str] = field(default_factory=dict)
    plate: str | None = None  # where the file says
    where: dict[str, str] = field(default_factory=dict)  # well -> its cell, for messages


def read_readings(
    source: Any, grid: Grid, outcomes: Sequence[str] = ("value",), plate: str | None = None
) -> Readings:
    """Readings from a file, a text of CSV, a dict by well, or a matrix (rows, columns).

    A long table has a column ``well`` and one for each outcome (a single one may be called value),
    perhaps ``plate`` and ``mark``. A matrix has as many rows and columns as the plate, with or
    without the letters of rows and the numbers of columns. Decimal commas are understood where
    cells are separated by semicolons or tabs.
    """
    if isinstance(source, Mapping):
        values = {grid.name(grid.index(w)): _plain(v, w, outcomes) for w, v in source.items()}
        return Readings(values, where={well: f"well {well}" for well in values})
    if not isinstance(source, str | Path):
        return _from_array(source, grid, outcomes)
    text, name = _text(source)
    lines = csv_lines(text, name)
    if not lines:
        raise HistoryError(f"{name} is empty. Nothing was recorded.")
    comma = "," not in _separators(text)
    heads = [cell.lower() for cell in lines[0]]
    if any(head in _WELL for head in heads):
        return _long(lines, name, grid, outcomes, (plate, comma))
    return _matrix(lines, name, grid, outcomes, comma)


def _plain(value: Any, well: object, outcomes: Sequence[str]) -> float | Point:
    if isinstance(value, Mapping):
        return Point(value)
    if len(outcomes) > 1:
        raise HistoryError(
            f"well {well}: this study has several outcomes; give them by name, "
            f"{{{', '.join(f'{name!r}: ...' for name in outcomes)}}}."
        )
    return value if outcomes[0] == "value" else Point({outcomes[0]: value})


def _text(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return source, "the table"
    path = Path(source)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise HistoryError(f"cannot read {path}: {error.strerror}.") from error
    if len(data) > _LARGEST:
        raise HistoryError(f"{path} is larger than {_LARGEST} bytes, which no plate fills.")
    for encoding in (
        ("utf-16", "utf-8-sig")
        if data[:2] in (b"\xff\xfe", b"\xfe\xff")
        else (
            "utf-8-sig",
            "latin-1",
        )
    ):
        try:
            return data.decode(encoding), str(path)
        except UnicodeDecodeError:
            continue
    raise HistoryError(f"{path} is no text that could be read. Save it as CSV.")


def _separators(text: str) -> str:
    head = text.partition("\n")[0]
    return max(",;\t", key=head.count)


def _from_array(source: Any, grid: Grid, outcomes: Sequence[str]) -> Readings:
    if len(outcomes) > 1:
        raise HistoryError("a matrix holds one outcome, and this study has several; use a table.")
    rows = source.tolist() if hasattr(source, "tolist") else [list(row) for row in source]
    if len(rows) != grid.rows or any(len(row) != grid.columns for row in rows):
        shape = f"{len(rows)} x {len(rows[0]) if rows else 0}"
        raise HistoryError(
            f"a matrix of readings is {grid.rows} x {grid.columns} as the plate is; got {shape}."
        )
    values: dict[str, float | Point] = {}
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            if value is not None and not math.isnan(value):
                well = grid.name(r * grid.columns + c)
                values[well] = _plain(value, well, outcomes)
    return Readings(values, where={well: f"well {well}" for well in values})


def _long(
    lines: list[list[str]],
    name: str,
    grid: Grid,
    outcomes: Sequence[str],
    how: tuple[str | None, bool],
) -> Readings:
    """Readings of a long table; of one plate, if it has several."""
    wanted, comma = how
    heads = [cell.lower() for cell in lines[0]]
    well_at = next(i for i, head in enumerate(heads) if head in _WELL)
    columns = {outcome: _column(lines[0], outcome, outcomes, name) for outcome in outcomes}
    found, plates = Readings({}), dict[str, None]()
    for number, cells in enumerate(lines[1:], start=2):
        line = dict(zip(heads, [*cells, *[""] * len(heads)], strict=False))
        mine = line.get("plate", "")
        if not any(cells) or (mine and wanted is not None and mine != wanted):
            continue
        plates |= {mine: None} if mine else {}
        place = f"{name}:{number}"
        try:
            well = grid.name(grid.index(cells[well_at]))
        except (SpaceError, IndexError) as error:
            raise HistoryError(f"{place}: {error} Nothing was recorded.") from error
        values = _numbers([*cells, *[""] * len(heads)], columns, comma, f"{place}, well {well}")
        mark = line.get("mark", "") or values.pop("", "")
        _take(found, well, values, mark, (outcomes, place))
    if len(plates) > 1:
        raise HistoryError(
            f"{name} has readings of {', '.join(plates)}; name the plate that is meant."
        )
    return replace(found, plate=next(iter(plates), None))


def _take(
    found: Readings,
    well: str,
    values: Mapping[str, float],
    mark: str,
    of: tuple[Sequence[str], str],
) -> None:
    """Add one row of a long table, which may be empty."""
    outcomes, place = of
    if not values and not mark:
        return
    if well in found.where:
        raise HistoryError(f"{place}: well {well} comes twice. Nothing was recorded.")
    found.where[well] = f"{place}, well {well}"
    if mark:
        found.marks[well] = mark
    lacks = [outcome for outcome in outcomes if outcome not in values]
    if not lacks:
        plain = tuple(outcomes) == ("value",)
        found.values[well] = values["value"] if plain else Point(values)
    elif values and not mark:
        raise HistoryError(f"{found.where[well]}: no {lacks[0]}. Nothing was recorded.")


def _numbers(
    line: Sequence[str], columns: Mapping[str, int], comma: bool, where: str
) -> dict[str, Any]:
    """Values by outcome; under "" what a reader says instead of a number, as a mark."""
    found: dict[str, Any] = {}
    for outcome, at in columns.items():
        cell = line[at]
        if cell.lower() in _EMPTY:
            continue
        if cell.lower() in _WORDS:
            return {"": cell}
        found[outcome] = number_in(cell, comma, where)
    return found


def _column(heads: Sequence[str], outcome: str, outcomes: Sequence[str], name: str) -> int:
    lower = [head.lower() for head in heads]
    if outcome.lower() in lower:
        return lower.index(outcome.lower())
    if len(outcomes) == 1 and "value" in lower:
        return lower.index("value")
    raise HistoryError(
        f"{name} has no column {outcome!r}; it has {', '.join(heads)}."
        f"{did_you_mean(outcome, heads)} Nothing was recorded."
    )


def _matrix(
    lines: list[list[str]], name: str, grid: Grid, outcomes: Sequence[str], comma: bool
) -> Readings:
    """Readings of a matrix, perhaps below some lines of a header."""
    if len(outcomes) > 1:
        raise HistoryError(
            f"{name} is a matrix, which holds one outcome, and this study has several; tell a "
            "table with a column for each."
        )
    first, left = _corner(lines, grid, name)
    values: dict[str, float | Point] = {}
    marks: dict[str, str] = {}
    where: dict[str, str] = {}
    for r in range(grid.rows):
        cells = lines[first + r] if first + r < len(lines) else []
        for c in range(grid.columns):
            cell = cells[left + c] if left + c < len(cells) else ""
            well = grid.name(r * grid.columns + c)
            where[well] = f"{name}:{first + r + 1}, well {well}"
            if cell.lower() in _EMPTY:
                continue
            if cell.lower() in _WORDS:
                marks[well] = cell
                continue
            number = number_in(cell, comma, where[well])
            values[well] = _plain(number, well, outcomes)
    return Readings(values, marks, None, where)


def _corner(lines: list[list[str]], grid: Grid, name: str) -> tuple[int, int]:
    """Line and column of the first reading of a matrix."""
    letters = [row_name(r) for r in range(grid.rows)]
    for first in range(len(lines)):
        block = [line[0].upper() if line else "" for line in lines[first : first + grid.rows]]
        if block == letters:
            return first, 1
    numbers = [str(c + 1) for c in range(grid.columns)]
    start = 1 if lines[0][: grid.columns] == numbers else 0
    widths = {len(line) for line in lines[start:]}
    if len(lines) - start == grid.rows and widths == {grid.columns}:
        return start, 0
    width = max(len(line) for line in lines)
    raise HistoryError(
        f"{name} is neither a table with a column 'well' nor a matrix of {grid.rows} x "
        f"{grid.columns}: it has {several(len(lines), 'line')} of up to {several(width, 'cell')}. "
        "Nothing was recorded."
    )


def news(found: Readings, record: PlateRecord, *, part: bool = False) -> Readings:
    """What a log does not have yet of these readings; readings of empty wells are passed over.

    Raises:
        HistoryError: A well in use has none (unless only a ``part`` is told), or was told another.
    """
    for well in (*found.values, *found.marks):
        known = record.readings.get(well)
        if well in found.values and known is not None and known != found.values[well]:
            raise HistoryError(
                f"{found.where.get(well, well)}: {_said(found.values[well])}, but plate "
                f"{record.name} was told {_said(known)} there already. Nothing was recorded. "
                f"{_way_to_correct(record.uses[well].trial)}"
            )
        if well in found.marks and known is not None and well not in record.marks:
            raise HistoryError(
                f"{found.where.get(well, f'well {well}')}: marked, but plate {record.name} was "
                f"told {_said(known)} there already. Nothing was recorded. "
                f"{_way_to_correct(record.uses[well].trial)}"
            )
    done = {*record.readings, *record.marks}
    lacking = [w for w in record.missing if w not in found.values and w not in found.marks]
    if lacking and not part:
        shown = ", ".join(lacking[:8]) + (" ..." if len(lacking) > 8 else "")
        raise HistoryError(
            f"plate {record.name}: {several(len(lacking), 'well')} without a reading: {shown}. "
            "Nothing was recorded. Mark what went wrong, or tell a part of the plate with "
            "part=True (--part)."
        )
    new = [w for w in record.uses if w not in done and (w in found.values or w in found.marks)]
    values = {well: found.values[well] for well in new if well in found.values}
    marks = {well: found.marks[well] for well in new if well in found.marks}
    return Readings(values, marks, found.plate, found.where)


def _way_to_correct(trial: int | None) -> str:
    """What to do about a well that was told wrongly: its trial has one value, the mean."""
    if trial is None:
        return "It is a control, and what was told of one stays."
    return (
        f"It is a well of trial {trial}: correct the mean of its wells with study.amend({trial}, "
        f"value, reason) or `covey amend {trial}=VALUE --reason WHY`, or leave the trial out with "
        f"study.exclude({trial}, reason) or `covey exclude {trial} --reason WHY`."
    )


def _said(value: float | Point) -> str:
    if isinstance(value, Point):
        return ", ".join(f"{name} {one:g}" for name, one in value.items())
    return f"{value:g}"


def plate_named_in(path: Path) -> str | None:
    """The only plate that a long table names; None if it names none or several."""
    lines = csv_lines(_text(path)[0], str(path))
    heads = [cell.lower() for cell in lines[0]] if lines else []
    if "plate" not in heads:
        return None
    at = heads.index("plate")
    named = {line[at] for line in lines[1:] if len(line) > at and line[at]}
    return named.pop() if len(named) == 1 else None
