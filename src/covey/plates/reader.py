"""Files of plate readers: a long table with a row for each well, or a matrix as the plate looks.

`read_readings` makes `Readings` of either, in whatever way a file was saved (`covey.tables`); what
they mean for a plate is in `covey.plates.telling`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from covey.errors import HistoryError, SpaceError, several
from covey.history import PLAIN, Point
from covey.history.checks import outcome_values
from covey.plates.layout import WELL_NAME, Grid, row_name
from covey.spreadsheets import decimal_mark
from covey.tables import (
    Expected,
    Lines,
    SheetRow,
    SheetTable,
    lines_in,
    lines_of,
    no_column,
    plain_number,
    table_from,
)

_EMPTY = ("", "-", "--", "nan", "n/a", "na", "none")
_WORDS = {"overflow", "over", "ovrflw", "sat", "#sat", "saturated", "*****", "####"}
_PLACED = {"trial", "role", "run_order"}  # columns that only a table of covey's own has
_OURS = {  # columns of such a table that hold no reading
    *("plate", "well", "row", "column", "role", "trial", "replicate", "run order", "predicted"),
    *("mark", "note"),
}
# Names of the column of wells, as readers write them; the first of these that there is.
_WELL = (
    *("well", "wells", "well id", "well position", "well pos", "well name", "well number"),
    *("position", "pos", "location", "destination well", "kavität", "vertiefung", "puits", "pozo"),
)
_ROW, _COLUMN = ("well row", "row"), ("well col", "well column", "col", "column")
_READING = "reading"  # what the cells of a matrix are called in messages


@dataclass(frozen=True)
class Readings:
    """What a reader measured on one plate, by well."""

    values: dict[str, Point]
    marks: dict[str, str] = field(default_factory=dict)
    plate: str | None = None  # where the file says
    where: dict[str, str] = field(default_factory=dict)  # well -> its cell, for messages
    others: dict[str, int] = field(default_factory=dict)  # other plates -> rows left out
    by_command: bool = False  # told on the command line: messages name commands
    rows: dict[str, SheetRow] = field(default_factory=dict)  # of a filled table of wells
    notes: tuple[str, ...] = ()  # what was noticed when a file was read

    def of_wells(self, wells: Collection[str]) -> Readings:
        """Those of some wells."""
        values = {well: value for well, value in self.values.items() if well in wells}
        return replace(
            self, values=values, marks={w: said for w, said in self.marks.items() if w in wells}
        )


@dataclass(frozen=True)
class _Wanted:
    """What is read of a file: the outcomes, of one plate; and what a person says of the file."""

    grid: Grid
    outcomes: tuple[str, ...]
    plate: str | None
    decimal: str | None
    value: str | None  # the column of the only outcome


def read_readings(
    source: Any,
    grid: Grid,
    outcomes: Sequence[str] = ("value",),
    plate: str | None = None,
    decimal: str | None = None,
    value: str | None = None,
) -> Readings:
    """Readings from a file, a text of CSV, a dict by well, or a matrix (rows, columns).

    A file is CSV, with commas, semicolons or tabs, or an Excel workbook; lines above what is
    measured are passed over. A long table has a column of wells (Well, Well ID, Position, ...) and
    one for each outcome, perhaps ``plate`` and ``mark``. The column of a single outcome may be
    called value; ``value`` names another, which is not needed where only one column has numbers. A
    matrix has as many rows and columns as the plate, with or without the letters of rows and the
    numbers of columns. ``decimal`` says the decimal mark where a file leaves it open, as one that
    has nothing but numbers such as 1.234. Readings are returned as they are.
    """
    if isinstance(source, Readings):
        return source
    if decimal not in (None, ".", ","):
        raise HistoryError(f"decimal is '.' or ',', or None to go by the file; got {decimal!r}.")
    if isinstance(source, Mapping):
        names = [grid.name(grid.index(well)) for well in source]
        if len({*names}) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise HistoryError(f"well {twice} comes twice; give each once. Nothing was recorded.")
        given = {n: v for n, v in zip(names, source.values(), strict=True) if v is not None}
        values = {well: _values(value, well, outcomes) for well, value in given.items()}
        return Readings(values, where={well: f"well {well}" for well in values})
    if not isinstance(source, str | Path):
        return _from_array(source, grid, outcomes)
    wanted = _Wanted(grid, tuple(outcomes), plate, decimal, value)
    lines = _lines(source, grid)
    if not any(any(cell.strip() for cell in line) for _, line in lines.cells):
        raise HistoryError(f"{lines.file} is empty. Nothing was recorded.")
    if lines.fits and _is_heading([cell.strip() for cell in lines.cells[lines.top][1]]):
        return _long(lines, wanted)
    return _matrix(lines, wanted)


def plate_named_in(path: Path) -> str | None:
    """The only plate that a long table names; None if it names none or several."""
    try:
        lines = _lines(path, None)
        table = table_from(lines, (), None, loose=True) if lines.fits else None
    except HistoryError:  # no long table; what is wrong is said once it is read
        return None
    at = None if table is None else _like(table.columns, ("plate",))
    if table is None or at is None:
        return None
    named = {row.text(at) for row in table.rows} - {""}
    return named.pop() if len(named) == 1 else None


def _lines(source: str | Path, grid: Grid | None) -> Lines:
    """The cells of a file, or of a text with several lines, from where readings begin."""
    expected = Expected(top=lambda lines: _top(lines, grid))
    if isinstance(source, str) and "\n" in source:
        return lines_of(source.encode(), "the table", expected)
    return lines_in(source, expected)


def _values(value: Any, well: object, outcomes: Sequence[str]) -> Point:
    if not isinstance(value, Mapping) and len(outcomes) > 1:
        raise HistoryError(
            f"well {well}: this study has several outcomes; give them by name, "
            f"{{{', '.join(f'{name!r}: ...' for name in outcomes)}}}."
        )
    named = isinstance(value, Mapping)
    read = outcome_values(
        value, f"well {well}", "Leave the well out until it is measured, or mark it."
    )
    return read if named else Point({outcomes[0]: read[PLAIN]})


def _from_array(source: Any, grid: Grid, outcomes: Sequence[str]) -> Readings:
    if len(outcomes) > 1:
        raise HistoryError("a matrix holds one outcome, and this study has several; use a table.")
    listed = source.tolist() if hasattr(source, "tolist") else source
    lists = (list, tuple)
    if not isinstance(listed, lists) or not all(isinstance(row, lists) for row in listed):
        raise HistoryError(
            "readings are a file, a dict by well, or rows of numbers in the shape of the plate; "
            f"got {str(source)[:80]!r}."
        )
    if len(listed) != grid.rows or any(len(row) != grid.columns for row in listed):
        shape = f"{len(listed)} x {len(listed[0]) if listed else 0}"
        raise HistoryError(
            f"a matrix of readings is {grid.rows} x {grid.columns} as the plate is; got {shape}."
        )
    values: dict[str, Point] = {}
    for r, row in enumerate(listed):
        for c, value in enumerate(row):
            if value is not None and not (isinstance(value, float) and math.isnan(value)):
                well = grid.name(r * grid.columns + c)
                values[well] = _values(value, well, outcomes)
    return Readings(values, where={well: f"well {well}" for well in values})


# Where readings begin in a file, and how.


def _top(lines: Sequence[Sequence[str]], grid: Grid | None) -> int | None:
    """The line that names the columns of a long table, or the first of a matrix."""
    headings = [at for at, line in enumerate(lines) if _is_heading(line)]
    for at in headings:  # a title may have such a word in it; below a heading there are wells
        below = next((line for line in lines[at + 1 :] if any(line)), [])
        wells = [lines[at].index(column) for column in _well_columns(lines[at])]
        if WELL_NAME.fullmatch("".join(below[i] for i in wells if i < len(below))):
            return at
    blocks = [] if grid is None else _lettered(lines, 1 if grid.rows == 1 else 2)
    if blocks:
        return blocks[0][0]
    start = None if grid is None else _bare(lines, grid)
    return next(iter(headings), None) if start is None else start


def _is_heading(line: Sequence[str]) -> bool:
    """Whether a line names columns, that of wells among them."""
    filled = [cell for cell in line if cell]
    return len(filled) > 1 and bool(_well_columns(filled))


def _well_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The column that names wells, or those of their rows and columns; none if there are none."""
    well = _like(columns, _WELL)
    if well is not None:
        return (well,)
    row, column = _like(columns, _ROW), _like(columns, _COLUMN)
    return () if row is None or column is None else (row, column)


def _like(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """The column that has the first of these names, in whatever capitals and signs."""
    by_name = {_bare_name(column): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def _bare_name(column: str) -> str:
    return " ".join(re.sub(r"[_./-]", " ", column).lower().split())


# Long tables.


def _long(lines: Lines, wanted: _Wanted) -> Readings:
    """Readings of a long table; of one plate, if it has several."""
    table = table_from(lines, (), None, loose=True)
    rows, plate, others = _rows_of(table, wanted.plate)
    columns, notes = _columns(table, wanted)
    placed = [_placed(row, table, wanted.grid) for row in rows]
    cells = (
        (f"{row.where}: {column} is {row.text(column)!r}", row.text(column))
        for _, row in placed
        for column in columns.values()
    )
    mark = decimal_mark(cells, table.dialect.separator, wanted.decimal)
    dialect = replace(table.dialect, decimal=mark)
    found = Readings({}, plate=plate, others=others, notes=(*dialect.said(), *notes))
    of = (columns, _like(table.columns, ("mark",)))
    for well, row in placed:
        _take(found, well, replace(row, dialect=dialect), of, wanted)
        if _PLACED & {*table.columns} and (well in found.values or well in found.marks):
            found.rows[well] = row
    return found


def _placed(row: SheetRow, table: SheetTable, grid: Grid) -> tuple[str, SheetRow]:
    """The well that a row is about, and the row with that well in its messages."""
    said = "".join(row.text(name) for name in _well_columns(table.columns))
    try:
        well = grid.name(grid.index(said))
    except SpaceError as error:
        raise row.error(str(error)) from error
    return well, replace(row, where=f"{row.where}, well {well}")


def _rows_of(
    table: SheetTable, wanted: str | None
) -> tuple[list[SheetRow], str | None, dict[str, int]]:
    """The rows of the plate that is wanted; its name; and how many rows others have."""
    at = _like(table.columns, ("plate",)) or ""
    rows, plates, others = list[SheetRow](), dict[str, None](), Counter[str]()
    for row in table.rows:
        mine = row.text(at)
        if mine and wanted is not None and mine != wanted:
            others[mine] += 1
        else:
            plates |= {mine: None} if mine else {}
            rows.append(row)
    if len(plates) > 1:
        raise HistoryError(
            f"{table.file} has readings of {', '.join(plates)}; name the plate that is meant."
        )
    if others and not rows:
        raise HistoryError(
            f"the readings in {table.file} are of plate {', '.join(others)}, not of {wanted}. "
            "Nothing was recorded. Name the plate that the file is of."
        )
    return rows, next(iter(plates), None), dict(others)


def _take(
    found: Readings,
    well: str,
    row: SheetRow,
    of: tuple[Mapping[str, str], str | None],
    wanted: _Wanted,
) -> None:
    """Add one row of a long table, which may be empty."""
    values, mark = _said_in(row, *of)
    if (values or mark) and (well in found.values or well in found.marks):
        raise row.error(f"well {well} comes twice.")
    if not values and not mark:
        found.where.setdefault(well, row.where)
        return
    found.where[well] = row.where
    if mark:
        found.marks[well] = mark
    lacks = [outcome for outcome in wanted.outcomes if outcome not in values]
    if not lacks:
        found.values[well] = Point(values)
    elif values and not mark:
        raise row.error(f"no {lacks[0]}; give it, or mark the well.")


def _said_in(
    row: SheetRow, columns: Mapping[str, str], mark: str | None
) -> tuple[dict[str, float], str]:
    """The values in a row by outcome, and its mark: perhaps what a reader says instead of one."""
    said = row.text(mark) if mark else ""
    values: dict[str, float] = {}
    for outcome, column in columns.items():
        text = row.text(column)
        if text.lower() in _WORDS:
            return {}, said or text
        if text.lower() not in _EMPTY:
            values[outcome] = row.number(column)
    return values, said


def _columns(table: SheetTable, wanted: _Wanted) -> tuple[dict[str, str], list[str]]:
    """The column of each outcome, and what there is to say about them."""
    only = wanted.outcomes[0] if len(wanted.outcomes) == 1 else None
    if wanted.value is not None:
        if only is None:
            raise HistoryError(
                f"value={wanted.value!r}: there are {', '.join(wanted.outcomes)}, each in a column "
                "of its own name. Nothing was recorded."
            )
        return {only: _column(table, wanted.value)}, []
    if only is None:
        return {outcome: _column(table, outcome) for outcome in wanted.outcomes}, []
    named = _like(table.columns, (_bare_name(only), "value"))
    if named is not None:
        return {only: named}, []
    maybe = [column for column in table.columns if _may_be_read(table, column)]
    if len(maybe) == 1:
        return {only: maybe[0]}, [f"the column {maybe[0]!r} was read as the {only}"]
    if not maybe:
        raise no_column(only, table, " If one of them is meant, name it (--value COLUMN).")
    raise HistoryError(
        f"{table.file} has no column {only!r}, and several that may be meant: {', '.join(maybe)}. "
        f"Name one with value (--value {maybe[0]!r}). Nothing was recorded."
    )


def _column(table: SheetTable, name: str) -> str:
    found = _like(table.columns, (_bare_name(name),))
    if found is None:
        raise no_column(name, table)
    return found


def _may_be_read(table: SheetTable, column: str) -> bool:
    """Whether a column, of which nothing else is known, has numbers and nothing but numbers."""
    if _bare_name(column) in _OURS or column in _well_columns(table.columns):
        return False
    texts = [text for row in table.rows if (text := row.text(column)).lower() not in _EMPTY]
    numbers = [text for text in texts if text.lower() not in _WORDS]
    return bool(numbers) and all(_is_number(text) for text in numbers)


def _is_number(text: str) -> bool:
    try:
        plain_number(text.replace(",", "."))
    except SpaceError:
        return False
    return True


# Matrices.


def _matrix(lines: Lines, wanted: _Wanted) -> Readings:
    """Readings of a matrix, perhaps below some lines of a header."""
    grid = wanted.grid
    if len(wanted.outcomes) > 1:
        raise HistoryError(
            f"{lines.file} is a matrix, which holds one outcome, and this study has several; tell "
            "a table with a column for each."
        )
    first, left = _corner(lines, grid)
    cells: dict[str, str] = {}
    where: dict[str, str] = {}
    for r in range(grid.rows):
        number, line = lines.cells[first + r] if first + r < len(lines.cells) else (0, [])
        for c in range(grid.columns):
            well = grid.name(r * grid.columns + c)
            cells[well] = line[left + c].strip() if left + c < len(line) else ""
            where[well] = f"{lines.file}:{number}, well {well}"
    named = ((f"{where[well]}: {cell!r}", cell) for well, cell in cells.items())
    mark = decimal_mark(named, lines.dialect.separator, wanted.decimal)
    dialect = replace(lines.dialect, decimal=mark)
    values: dict[str, Point] = {}
    marks: dict[str, str] = {}
    for well, cell in cells.items():
        if cell.lower() in _WORDS:
            marks[well] = cell
        elif cell.lower() not in _EMPTY:
            number_there = SheetRow({_READING: cell}, where[well], dialect).number(_READING)
            values[well] = _values(number_there, well, wanted.outcomes)
    return Readings(values, marks, None, where, notes=(*lines.dialect.said(),))


def _corner(lines: Lines, grid: Grid) -> tuple[int, int]:
    """Line and column of the first reading of the only matrix in a file."""
    bare = [[cell.strip() for cell in line] for _, line in lines.cells]
    blocks = _lettered(bare, 1 if grid.rows == 1 else 2)
    spans = [f"{lines.cells[a][0]} to {lines.cells[a + n - 1][0]}" for a, n, _ in blocks]
    if len(blocks) > 1:
        raise HistoryError(
            f"{lines.file} has {len(blocks)} matrices, in lines {' and in lines '.join(spans)}; "
            "leave the one that counts in the file, or tell a table with a column 'well'. Nothing "
            "was recorded."
        )
    for first, rows, left in blocks:
        headed, count = _columns_of(bare, first, rows, left)
        wrong = count != grid.columns if headed else count > grid.columns
        if rows != grid.rows or wrong:
            raise HistoryError(
                f"{lines.file} has a matrix of {rows} x {count} in lines {spans[0]}, and the plate "
                f"has {grid.rows} x {grid.columns} wells. Is it the file of this plate? Nothing "
                "was recorded."
            )
        return first, left + 1
    start = _bare(bare, grid)
    if start is not None:
        return start, 0
    width = max(len(line) for line in bare)
    raise HistoryError(
        f"{lines.file} is neither a table with a column 'well' nor a matrix of {grid.rows} x "
        f"{grid.columns}: it has {several(len(bare), 'line')} of up to {several(width, 'cell')}. "
        "Nothing was recorded."
    )


def _lettered(lines: Sequence[Sequence[str]], least: int) -> list[tuple[int, int, int]]:
    """First line, number of rows and column of every run of lines that begin with A, B, C, ..."""
    places = [next((i for i, cell in enumerate(line) if cell), 0) for line in lines]
    heads = [line[at].upper() if line else "" for line, at in zip(lines, places, strict=True)]
    found, at = [], 0
    while at < len(heads):
        rows = 0
        while (
            at + rows < len(heads)
            and heads[at + rows] == row_name(rows)
            and places[at + rows] == places[at]
        ):
            rows += 1
        if rows >= least:
            found.append((at, rows, places[at]))
        at += max(rows, 1)
    return found


def _columns_of(
    lines: Sequence[Sequence[str]], first: int, rows: int, left: int
) -> tuple[bool, int]:
    """Whether the columns of a matrix are numbered, and how many it has."""
    above = next((line for line in reversed(lines[:first]) if any(line)), [])[left + 1 :]
    count = 0
    while count < len(above) and above[count].removesuffix(".0").lstrip("0") == str(count + 1):
        count += 1
    if count:  # behind the last number may stand what was measured, such as a wavelength
        return True, count
    block = (line[left:] for line in lines[first : first + rows])
    filled = (i for line in block for i, cell in enumerate(line) if cell)
    return False, max(filled, default=0)


def _bare(lines: Sequence[Sequence[str]], grid: Grid) -> int | None:
    """The first line of a matrix without letters: all below lines of a title is as it looks."""
    starts = []
    for end in range(len(lines), grid.rows - 1, -1):
        if _is_bare(lines, end - grid.rows, grid):
            starts.append(end - grid.rows)
        if any(lines[end - 1]):  # only blank lines may follow
            break
    return starts[0] if len(starts) == 1 else None


def _is_bare(lines: Sequence[Sequence[str]], start: int, grid: Grid) -> bool:
    """Whether a matrix without letters begins at this line, below titles or numbers of columns."""
    numbers = [str(c + 1) for c in range(grid.columns)]
    block = lines[start : start + grid.rows]
    if any(len(line) != grid.columns for line in block) or list(block[0]) == numbers:
        return False
    if any(cell and not _may_be_cell(cell) for line in block for cell in line):
        return False
    titles = [line for line in lines[:start] if list(line) != numbers]
    return all(sum(map(bool, line)) <= 1 for line in titles)


def _may_be_cell(cell: str) -> bool:
    return _is_number(cell) or cell.lower() in _EMPTY or cell.lower() in _WORDS
