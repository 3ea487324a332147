"""Trials run otherwise than asked: whether a row has the point asked for, and what was run instead.

Numbers are compared given what a spreadsheet does to them. What was run is a measurement by itself,
and that a trial was run so is a note about both. (The event `Moved` is for points that a machine
rounds: there the trial itself moves.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from covey.errors import SpaceError
from covey.sheets.points import value_in_cell
from covey.sheets.writing import heading
from covey.tables import SheetRow, is_alike, span_of

if TYPE_CHECKING:
    from covey.history import History, Noted, Trial
    from covey.space import Pool, Space


def differing(row: SheetRow, trial: Trial, space: Space | Pool) -> list[tuple[str, str]]:
    """The parameters of which a row says something else than its trial, and what it says.

    An empty cell says nothing; a value of a parameter that the trial lacks is something else.
    """
    found = []
    for name in dict.fromkeys([*trial.point, *space.parameters]):
        cell = row.cells.get(heading(name), "")
        if not cell.strip():
            continue
        if name not in trial.point or not _is_alike(cell, name, trial.point[name], row, space):
            found.append((name, cell.strip()))
    return found


def point_as_run(row: SheetRow, trial: Trial, space: Space | Pool) -> Mapping[str, Any]:
    """The point of a row: what it says where that differs, and what was asked for elsewhere.

    Where that is no point, an empty cell may mean that its parameter was absent.

    Raises:
        SpaceError: The space has no such point.
    """
    point = dict(trial.point)
    for name, cell in differing(row, trial, space):
        point[name] = value_in_cell(space, name, cell, row.dialect)
    try:
        return space.check(point)
    except SpaceError:
        empty = [name for name in point if not row.cells.get(heading(name), "?").strip()]
        if not empty:
            raise
        try:
            return space.check({n: value for n, value in point.items() if n not in empty})
        except SpaceError:
            pass
        raise


def _is_alike(cell: str, name: str, value: Any, row: SheetRow, space: Space | Pool) -> bool:
    """The same value, or what a spreadsheet makes of it: TRUE, 1 for 1.0, a rounded number."""
    if cell == str(value):
        return True
    try:
        read = value_in_cell(space, name, cell, row.dialect)
        if name in space.parameters:
            read = space.parameters[name].check(read)
        if read == value or _is_discrete(space, name):
            return bool(read == value and type(read) is type(value))
    except SpaceError:  # between two steps, say, as a rounded number may be
        pass
    span = span_of(space.parameters[name]) if name in space.parameters else 0.0
    return is_alike(cell, value, span, row.dialect.decimal)


def _is_discrete(space: Space | Pool, name: str) -> bool:
    return name in space.parameters and space.parameters[name].size is not None


_OTHERWISE = "trial {} was run otherwise than asked, {}"


def note_of(asked: int, run: Sequence[int]) -> Noted:
    """The note that a trial was run as these; as none if that failed."""
    from covey.history import Noted

    how = f"as {' and '.join(f'trial {i}' for i in run)}" if run else "and failed"
    return Noted((asked, *run), _OTHERWISE.format(asked, how))


def run_instead(history: History) -> dict[int, list[int]]:
    """By trial that was run otherwise, the trials that hold what was run."""
    from covey.history import Noted

    found: dict[int, list[int]] = {}
    for event in history.events:
        if isinstance(event, Noted) and event == note_of(event.ids[0], event.ids[1:]):
            found.setdefault(event.ids[0], []).extend(event.ids[1:])
    return found
