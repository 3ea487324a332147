"""Files of plate readers: a long table with a row for each well, or a matrix as the plate looks.

`read_readings` makes `Readings` of either; `news` leaves out what a log has already.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.errors import HistoryError, SpaceError, did_you_mean, several
from covey.history import PlateRecord, Point
from covey.plates.layout import Grid, row_name
from covey.plates.wells import csv_lines, number_in
from covey.spreadsheets import decimal_mark

if TYPE_CHECKING:
    from covey.plates.wells import Plate

_LARGEST = 2**24  # bytes of a reader's file
_EMPTY = ("", "-", "--", "nan", "n/a", "na", "none")
_WORDS = {"overflow", "over", "ovrflw", "sat", "#sat", "saturated", "*****", "####"}
_PLACED = {"trial", "role", "run_order"}  # columns that only a table of covey's own has
_CLOSE, _NEAR = 6e-3, 5e-3  # of a number and of its range: what rounding in a sheet may do
_DIGITS = re.compile(r"[+-]?[0-9]*\.?([0-9]*)(?:e([+-]?[0-9]+))?", re.IGNORECASE)
_WELL = ("well", "well position", "well id", "position", "destination well")


@dataclass(frozen=True)
class Readings:
    """What a reader measured on one plate, by well."""

    values: dict[str, float | Point]
    marks: dict[str, str] = field(default_factory=dict)
    plate: str | None = None  # where the file says
    where: dict[str, str] = field(default_factory=dict)  # well -> its cell, for messages
    others: dict[str, int] = field(default_factory=dict)  # other plates -> rows left out
    by_command: bool = False  # told on the command line: messages name commands
    rows: dict[str, dict[str, str]] = field(default_factory=dict)  # of a filled table of wells


@dataclass(frozen=True)
class _File:
    """The cells of a reader's file and how it is to be read."""

    name: str
    lines: list[list[str]]
    separator: str
    decimal: str | None  # the mark that a person says it has

    def place(self, line: int) -> str:
        """A line in a message; ``line`` counts from 0."""
        return f"{self.name}:{line + 1}"

    def mark(self, cells: Iterable[tuple[str, str]]) -> str:
        """The decimal mark, given the cells of numbers and where they are."""
        try:
            named = ((f"{where}: {text!r}", text) for where, text in cells)
            return decimal_mark(named, self.separator, self.decimal)
        except HistoryError as error:
            raise HistoryError(
                f"{error} Say which it is with decimal (--decimal comma or --decimal point). "
                "Nothing was recorded."
            ) from error


def read_readings(
    source: Any,
    grid: Grid,
    outcomes: Sequence[str] = ("value",),
    plate: str | None = None,
    decimal: str | None = None,
) -> Readings:
    """Readings from a file, a text of CSV, a dict by well, or a matrix (rows, columns).

    A long table has a column ``well`` and one for each outcome (a single one may be called value),
    perhaps ``plate`` and ``mark``. A matrix has as many rows and columns as the plate, with or
    without the letters of rows and the numbers of columns. Decimal commas are understood where
    cells are separated by semicolons or tabs; ``decimal`` says the mark where a file leaves it
    open, as one that has nothing but numbers such as 1.234. Readings are returned as they are.
    """
    if isinstance(source, Readings):
        return source
    if decimal not in (None, ".", ","):
        raise HistoryError(f"decimal is '.' or ',', or None to go by the file; got {decimal!r}.")
    if isinstance(source, Mapping):
        values = {grid.name(grid.index(w)): _plain(v, w, outcomes) for w, v in source.items()}
        return Readings(values, where={well: f"well {well}" for well in values})
    if not isinstance(source, str | Path):
        return _from_array(source, grid, outcomes)
    text, name = _text(source)
    lines = csv_lines(text, name)
    if not lines:
        raise HistoryError(f"{name} is empty. Nothing was recorded.")
    file = _File(name, lines, _separators(text), decimal)
    heads = [cell.lower() for cell in lines[0]]
    if any(head in _WELL for head in heads):
        return _long(file, grid, outcomes, plate)
    return _matrix(file, grid, outcomes)


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


def _long(file: _File, grid: Grid, outcomes: Sequence[str], wanted: str | None) -> Readings:
    """Readings of a long table; of one plate, if it has several."""
    lines = file.lines
    heads = [cell.lower() for cell in lines[0]]
    well_at = next(i for i, head in enumerate(heads) if head in _WELL)
    columns = {outcome: _column(lines[0], outcome, outcomes, file.name) for outcome in outcomes}
    rows, plate, others = _rows_of(file, heads, wanted)
    found = Readings({}, plate=plate, others=others)
    mark = file.mark(
        (f"{file.place(number)}, well {full[well_at]}", full[at])
        for number, full in rows
        for at in columns.values()
    )
    for number, full in rows:
        place, line = file.place(number), dict(zip(heads, full, strict=False))
        try:
            well = grid.name(grid.index(full[well_at]))
        except SpaceError as error:
            raise HistoryError(f"{place}: {error} Nothing was recorded.") from error
        values = _numbers(full, columns, mark, f"{place}, well {well}")
        said = line.get("mark", "") or values.pop("", "")
        _take(found, well, values, said, (outcomes, place))
        if well in found.where and _PLACED & {*heads}:
            found.rows[well] = dict(zip(lines[0], full, strict=False))
    return found


def _rows_of(
    file: _File, heads: Sequence[str], wanted: str | None
) -> tuple[list[tuple[int, list[str]]], str | None, dict[str, int]]:
    """The rows of the plate that is wanted, by line; its name; and how many others have."""
    at = heads.index("plate") if "plate" in heads else None
    rows: list[tuple[int, list[str]]] = []
    plates, others = dict[str, None](), Counter[str]()
    for number, cells in enumerate(file.lines[1:], start=1):
        full = [*cells, *[""] * (len(heads) - len(cells))]
        mine = "" if at is None else full[at]
        if mine and wanted is not None and mine != wanted:
            others[mine] += 1
        elif any(cells):
            plates |= {mine: None} if mine else {}
            rows.append((number, full))
    if len(plates) > 1:
        raise HistoryError(
            f"{file.name} has readings of {', '.join(plates)}; name the plate that is meant."
        )
    if others and not rows:
        raise HistoryError(
            f"the readings in {file.name} are of plate {', '.join(others)}, not of {wanted}. "
            "Nothing was recorded. Name the plate that the file is of."
        )
    return rows, next(iter(plates), None), dict(others)


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
    line: Sequence[str], columns: Mapping[str, int], decimal: str, where: str
) -> dict[str, Any]:
    """Values by outcome; under "" what a reader says instead of a number, as a mark."""
    found: dict[str, Any] = {}
    for outcome, at in columns.items():
        cell = line[at]
        if cell.lower() in _EMPTY:
            continue
        if cell.lower() in _WORDS:
            return {"": cell}
        found[outcome] = number_in(cell, decimal, where)
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


def _matrix(file: _File, grid: Grid, outcomes: Sequence[str]) -> Readings:
    """Readings of a matrix, perhaps below some lines of a header."""
    lines = file.lines
    if len(outcomes) > 1:
        raise HistoryError(
            f"{file.name} is a matrix, which holds one outcome, and this study has several; tell "
            "a table with a column for each."
        )
    first, left = _corner(file, grid)
    cells: dict[str, str] = {}
    where: dict[str, str] = {}
    for r in range(grid.rows):
        line = lines[first + r] if first + r < len(lines) else []
        for c in range(grid.columns):
            well = grid.name(r * grid.columns + c)
            cells[well] = line[left + c] if left + c < len(line) else ""
            where[well] = f"{file.place(first + r)}, well {well}"
    mark = file.mark((where[well], cell) for well, cell in cells.items())
    values: dict[str, float | Point] = {}
    marks: dict[str, str] = {}
    for well, cell in cells.items():
        if cell.lower() in _WORDS:
            marks[well] = cell
        elif cell.lower() not in _EMPTY:
            values[well] = _plain(number_in(cell, mark, where[well]), well, outcomes)
    return Readings(values, marks, None, where)


def _corner(file: _File, grid: Grid) -> tuple[int, int]:
    """Line and column of the first reading of the only matrix in a file."""
    lines = file.lines
    blocks = _lettered(lines, 1 if grid.rows == 1 else 2)
    if len(blocks) > 1:
        spans = [f"{first + 1} to {first + rows}" for first, rows in blocks]
        raise HistoryError(
            f"{file.name} has {len(blocks)} matrices, in lines {' and in lines '.join(spans)}; "
            "leave the one that counts in the file, or tell a table with a column 'well'. Nothing "
            "was recorded."
        )
    for first, rows in blocks:
        headed, count = _columns_of(lines, first, rows)
        wrong = count != grid.columns if headed else count > grid.columns
        if rows != grid.rows or wrong:
            raise HistoryError(
                f"{file.name} has a matrix of {rows} x {count} in lines {first + 1} to "
                f"{first + rows}, and the plate has {grid.rows} x {grid.columns} wells. Is it the "
                "file of this plate? Nothing was recorded."
            )
        return first, 1
    numbers = [str(c + 1) for c in range(grid.columns)]
    start = 1 if lines[0] == numbers else 0
    widths = {len(line) for line in lines[start:]}
    if len(lines) - start == grid.rows and widths == {grid.columns}:
        return start, 0
    width = max(len(line) for line in lines)
    raise HistoryError(
        f"{file.name} is neither a table with a column 'well' nor a matrix of {grid.rows} x "
        f"{grid.columns}: it has {several(len(lines), 'line')} of up to {several(width, 'cell')}. "
        "Nothing was recorded."
    )


def _lettered(lines: Sequence[Sequence[str]], least: int) -> list[tuple[int, int]]:
    """First line and number of rows of every run of lines that begin with A, B, C, ..."""
    heads = [line[0].upper() if line else "" for line in lines]
    found, at = [], 0
    while at < len(heads):
        rows = 0
        while at + rows < len(heads) and heads[at + rows] == row_name(rows):
            rows += 1
        if rows >= least:
            found.append((at, rows))
        at += max(rows, 1)
    return found


def _columns_of(lines: Sequence[Sequence[str]], first: int, rows: int) -> tuple[bool, int]:
    """Whether the columns of a matrix are numbered, and how many it has."""
    above = next((line for line in reversed(lines[:first]) if any(line)), [])
    count = 0
    while count + 1 < len(above) and above[count + 1].lstrip("0") == str(count + 1):
        count += 1
    if count:  # behind the last number may stand what was measured, such as a wavelength
        return True, count
    filled = (i for line in lines[first : first + rows] for i, cell in enumerate(line) if cell)
    return False, max(filled, default=0)


def require_as_placed(found: Readings, plate: Plate, spans: Mapping[str, float]) -> None:
    """Raise if a filled table of wells has another trial or point in a well than the plate.

    Empty cells say nothing; numbers may be rounded, within ``spans``, as sheets show them.
    """
    for well, row in found.rows.items():
        there = plate.well(well)
        wanted: dict[str, tuple[Any, float]] = {"trial": (there.trial, 0.0)}
        for name, value in (there.point or {}).items():
            wanted[plate.heading(name)] = (value, spans.get(name, 0.0))
        asked = {plate.heading(name): value for name, value in (there.asked or {}).items()}
        for column, (value, span) in wanted.items():
            cell = row.get(column, "")
            if cell and not _is_alike(cell, value, span):
                if column in asked and _is_alike(cell, asked[column], span):
                    continue  # volumes were rounded since the table was written
                here = "no trial" if value is None else f"{column} {value}"
                raise HistoryError(
                    f"{found.where[well]}: {column} is {cell!r}, but plate {plate.name} has {here} "
                    "there. Nothing was recorded. Is it the table of this plate? Put back what was "
                    "there, or tell a file with the columns of wells and values alone."
                )


def _is_alike(cell: str, value: Any, span: float) -> bool:
    """The same value, or what a spreadsheet makes of it: TRUE, 1 for 1.0, a rounded number."""
    if cell.removeprefix("'").lower() == str(value).removeprefix("'").strip().lower():
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    text = cell.replace(",", ".")
    digits = _DIGITS.fullmatch(text)
    try:
        gap = abs(float(text) - value)
    except ValueError:
        return False
    if gap <= 1e-9 * abs(value) or digits is None or isinstance(value, int):
        return gap <= 1e-9 * abs(value)
    unit = 10.0 ** (int(digits[2] or 0) - len(digits[1]))
    return gap <= 0.5000001 * unit and (gap <= _CLOSE * abs(value) or gap <= _NEAR * span)


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
                f"{_way_to_correct(well, record.name, found)}"
            )
        if well in found.marks and known is not None and well not in record.marks:
            raise HistoryError(
                f"{found.where.get(well, f'well {well}')}: marked, but plate {record.name} was "
                f"told {_said(known)} there already. Nothing was recorded. "
                f"{_way_to_correct(well, record.name, found)}"
            )
        if well in record.marks and known is None and well not in found.marks:
            raise HistoryError(
                f"{found.where.get(well, f'well {well}')}: {_said(found.values[well])}, but plate "
                f"{record.name} has this well marked already ({record.marks[well]}), and a marked "
                "well does not count. Nothing was recorded. Leave its cell empty. "
                f"{_way_to_correct(well, record.name, found)}"
            )
    done = {*record.readings, *record.marks}
    lacking = [w for w in record.missing if w not in found.values and w not in found.marks]
    if lacking and not part:
        shown = ", ".join(lacking[:8]) + (" ..." if len(lacking) > 8 else "")
        raise HistoryError(
            f"plate {record.name}: {several(len(lacking), 'well')} without a reading: {shown}. "
            "Nothing was recorded. Mark what went wrong, or tell a part of the plate with "
            f"{'--part' if found.by_command else 'part=True'}."
        )
    new = [w for w in record.uses if w not in done and (w in found.values or w in found.marks)]
    values = {well: found.values[well] for well in new if well in found.values}
    marks = {well: found.marks[well] for well in new if well in found.marks}
    return Readings(values, marks, found.plate, found.where)


def _way_to_correct(well: str, plate: str, found: Readings) -> str:
    """What to do about a well that was told wrongly."""
    if found.by_command:
        return (
            f"A wrong reading is corrected with `covey plate amend {plate} {well}=VALUE --reason "
            f"WHY`, one that is worth nothing is left out with `covey plate mark {plate} {well} "
            f"--reason WHY`, and `covey plate unmark` takes that back."
        )
    return (
        f"A wrong reading is corrected with study.amend_wells({plate!r}, {{{well!r}: value}}, "
        f"reason), one that is worth nothing is left out with study.mark_wells({plate!r}, "
        f"{well!r}, reason), and study.unmark_wells takes that back."
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
