"""The columns of a sheet of results: which hold ids, outcomes and records, and what a row says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from covey.errors import HistoryError
from covey.sheets.writing import exported, heading
from covey.tables import Expected, SheetRow, SheetTable, no_column

if TYPE_CHECKING:
    from covey.space import Pool, Space
    from covey.study import Study

FAILED = ("failed", "fail", "error", "crashed")  # words for a trial that gave no result
_ROLES = ("role", "type", "control", "id")  # columns that may say which rows are controls
_CONTROL = re.compile(
    r"control:.+|((((positive|negative|pos|neg|positiv|negativ)[\s._-]*)?(control|ctrl|kontrolle))"
    r"|blank|reference|standard|empty|(leer|blind)(wert|probe))[\s._-]*[0-9]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SheetColumns:
    """The columns of a sheet that are read, by what they hold."""

    outcomes: Mapping[str, str]  # name of an outcome -> its column
    id: str | None = None
    sem: str | None = None
    sem_of: str | None = None  # the outcome that a standard error belongs to
    record: Sequence[str] = ()
    roles: Sequence[str] = ()
    excluded: str | None = None
    words: bool = False  # given on the command line: a record alone says something


@dataclass(frozen=True)
class Said:
    """What a row says of its point: values by name and what is recorded beside them, or failed."""

    values: Mapping[str, float] = field(default_factory=dict)
    sem: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False


def is_control(text: str) -> bool:
    """Whether a cell says that its row is a control: no trial, and no measurement of a point.

    >>> is_control("control 3"), is_control("neg. ctrl"), is_control("control:blank")
    (True, True, True)
    >>> is_control("17"), is_control("sample")
    (False, False)
    """
    return _CONTROL.fullmatch(text.strip()) is not None


def expected_in(study: Study, value: str, decimal: str | None) -> Expected:
    """What a table of results of a study has; ``value`` names the column of a single goal."""
    results = list(outcome_columns(study, value).values())
    return Expected(
        {"id", "sem", *results, *study.space.names, *map(heading, study.space.names)},
        numbers_of(study.space, results),
        decimal,
    )


def column_like(names: Sequence[str], wanted: str, file: str) -> str | None:
    """The column of this name, in whatever capitals; None if there is none."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    if len(alike) > 1:
        both = " and ".join(map(repr, alike))
        raise HistoryError(f"{file}: {both} may both be {wanted!r}; rename one.")
    return alike[0] if alike else None


def columns_of(table: SheetTable, study: Study, value: str, *, by_id: bool = True) -> SheetColumns:
    """The columns of a table, in whatever capitals."""
    parameters = {heading(name) for name in study.space.names}
    wanted, names = outcome_columns(study, value), table.columns
    own = [name for name in names if name not in parameters]
    found = {name: column_like(own, column, table.file) for name, column in wanted.items()}
    present = {name: column for name, column in found.items() if column is not None}
    if not present:
        way = " Name the column of the results with value (--value COLUMN)."
        if not study.outcomes.plain:
            way = f" A sheet has a column for each of {', '.join(wanted)}."
        raise no_column(next(iter(wanted.values())), table, way)
    id = column_like(own, "id", table.file) if by_id else None
    _require_points(table, study, has_ids=id is not None)
    record, sem_of = study.outcomes.record, study.outcomes.only or None
    added = exported(names, study.space.names, [*wanted, *record])
    return SheetColumns(
        present,
        id=id,
        sem=None if sem_of is None else column_like(own, "sem", table.file),
        sem_of=sem_of,
        record=[name for name in record if name in names],
        roles=roles_in(table, study.space),
        excluded="excluded" if not by_id and "excluded" in added else None,
    )


def require_no_wells(table: SheetTable, study: Study) -> None:
    """Refuse a table of the wells of a plate of this study: its readings are told with the plate.

    As rows of a sheet, wells would be measurements without the shift that their plate shares.
    """
    names = [column_like(table.columns, name, table.file) for name in ("plate", "well", "role")]
    if None in names:
        return
    plates = {row.text(names[0] or "") for row in table.rows} & {*study.history.plates.records}
    if plates:
        which = sorted(plates)
        raise HistoryError(
            f"{table.file} is a table of the wells of plate {', '.join(which)}. Nothing was "
            f"recorded; tell it with `covey plate tell {table.file} --plate {which[0]}` (in Python "
            f"study.tell_plate({which[0]!r}, {table.file!r}))."
        )


def roles_in(table: SheetTable, space: Space | Pool) -> list[str]:
    """The columns of a table that may say which rows are controls."""
    return [n for n in table.columns if n.lower() in _ROLES and n not in space.names]


def numbers_of(space: Space | Pool, results: Sequence[str]) -> set[str]:
    """The columns of a sheet that hold numbers, where a decimal mark counts."""
    import covey

    found = {*results, "sem"}
    for name in space.names:
        if isinstance(space, covey.Pool):
            example = space.point(0).get(name)
            numeric = isinstance(example, int | float) and not isinstance(example, bool)
        else:
            numeric = space.parameters[name].numeric
        if numeric:
            found |= {name, f"point.{name}"}
    return found


def outcome_columns(study: Study, value: str) -> dict[str, str]:
    """The column of each outcome; ``value`` names that of a single goal.

    Raises:
        HistoryError: It names a parameter, or there are several goals.
    """
    goals, only = study.outcomes.goals, study.outcomes.only
    columns = {name: name for name in study.outcomes.names}
    if value != "value":
        if not only:
            raise HistoryError(
                f"--value {value}: there are {', '.join(goals)}, each in a column of its own "
                "name; leave value out."
            )
        if value in map(heading, study.space.names):
            raise HistoryError(f"--value {value}: that is a parameter, not a result.")
        columns[only] = value
    return columns


def _require_points(table: SheetTable, study: Study, *, has_ids: bool) -> None:
    """Refuse a table that says neither ids nor points."""
    space = study.space
    # A parameter that may be absent need not have a column.
    needed = [n for n in space.inputs if space.presence is None or n not in space.presence]
    lacking = [n for n in needed if n not in table.columns and f"point.{n}" not in table.columns]
    if lacking and not has_ids:
        way = " Rows without an id need a column for each parameter; `covey ask --out` writes ids."
        raise no_column(lacking[0], table, way)


def said_in(row: SheetRow, columns: SheetColumns, *, status: bool = False) -> Said | None:
    """What a row says; None where its result is still to come.

    With ``status``, that column may say that it failed, as in an export.

    Raises:
        HistoryError: A cell cannot be read.
    """
    cells = {n: row.text(c) for n, c in columns.outcomes.items() if row.text(c)}
    record = {name: row.text(name) for name in columns.record if row.text(name)}
    if not cells:
        if status and row.text("status").lower() == "failed":
            return Said(failed=True)
        return Said(record=record) if record and columns.words else None
    failed = [name for name, text in cells.items() if text.lower() in FAILED]
    if failed:
        _require_all_failed(row, failed[0], [name for name in cells if name not in failed])
        return Said(failed=True)
    hint = "; write failed if it crashed, nothing if it is to come"
    values = {name: row.number(columns.outcomes[name], hint) for name in cells}
    return Said(values, _sem_in(row, columns, values), record)


def _sem_in(row: SheetRow, columns: SheetColumns, values: Mapping[str, float]) -> float | None:
    """The standard error in a row; None where it is unknown.

    It is unknown, too, where a sheet has 0: that comes of repeats that happen to be equal, and they
    do not prove that there is no noise.
    """
    if columns.sem is None or not row.text(columns.sem) or columns.sem_of not in values:
        return None
    sem = row.number(columns.sem)
    if sem < 0:
        raise row.error(f"the {columns.sem} must not be negative, got {sem:g}.")
    if sem == 0:
        row.dialect.note(f"a {columns.sem} of 0 counts as unknown: equal repeats do not prove it")
        return None
    return sem


def _require_all_failed(row: SheetRow, failed: str, others: Sequence[str]) -> None:
    """Raise if a trial that failed has values of other outcomes."""
    if others:
        raise row.error(
            f"{failed} failed, but there are values of {' and '.join(others)}; only a whole trial "
            "fails. Leave the cell empty if its value comes later, or take the other values out."
        )


def say_unused(table: SheetTable, columns: SheetColumns, study: Study) -> str:
    """Say which columns hold something that is not recorded; nothing where all of it is."""
    unused = unused_columns(table, columns, study)
    if not unused:
        return ""
    way = "A journal has no place for it; keep the sheet."
    if not study.outcomes.plain:
        way = "A study keeps what its record names."
    return f"not recorded: {', '.join(unused)}. {way}"


def unused_columns(table: SheetTable, columns: SheetColumns, study: Study) -> list[str]:
    """The columns that hold something, and that neither the study nor an export knows."""
    plain, filled_in = study.outcomes.plain, [*columns.outcomes.values(), *columns.record]
    known = {columns.id, columns.sem, "status", "origin", *filled_in, *columns.roles}
    known |= set() if plain else {"value", "sem"}
    for name in study.space.names:
        known |= {heading(name), name}
    known |= exported(table.columns, study.space.names, () if plain else filled_in)
    return [n for n in table.columns if n not in known and any(row.text(n) for row in table.rows)]
