"""`covey next`: read results from files, write the next batch to a file; a journal if wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import covey
from covey.cli.ask import reasons_of
from covey.cli.init import parameters_of, require_one_space, space_lines
from covey.cli.mixtures import mixtures_from, with_parts
from covey.cli.options import (
    FILE,
    Batch,
    Choices,
    Config,
    Decimal,
    Direction,
    DryRun,
    Explain,
    FeatureFiles,
    Integers,
    Json,
    Labels,
    Logs,
    Mixtures,
    Out,
    PoolFile,
    Reals,
    Rules,
    SkipUnknown,
    Strategy,
    ValueColumn,
    mark_of,
    parameters_in,
)
from covey.cli.output import ExitCode, Output, Stop, put_exactly, put_json, say
from covey.cli.rules import rules_from
from covey.cli.settings import Settings, read_settings
from covey.cli.show import rehearsal_of
from covey.cli.tell import read_table, say_notes
from covey.errors import HistoryError, SpaceError, several
from covey.sheets.columns import (
    FAILED,
    columns_of,
    is_control,
    numbers_of,
    roles_in,
)
from covey.sheets.intake import Manner, plan
from covey.sheets.points import point_from_text, point_to_json
from covey.sheets.recording import check_intake, record_intake
from covey.sheets.writing import COLUMNS, exported, heading, is_blank, sheet_bytes, sheet_text
from covey.tables import Expected, SheetRow, SheetTable, no_column

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.space import Parameter, Pool, Space
    from covey.space.constraints import Constraint
    from covey.study import Study


_SHOWN = 5  # rows that a message names


@dataclass
class _Rows:
    """The rows of the files of results: with a value, failed, or pending (no value yet)."""

    tables: list[SheetTable] = field(default_factory=list)
    columns: dict[str, None] = field(default_factory=dict)  # in order
    told: list[tuple[dict[str, object], float]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)
    waiting: list[dict[str, object]] = field(default_factory=list)
    controls: list[SheetRow] = field(default_factory=list)
    unknown: list[SheetRow] = field(default_factory=list)  # left out
    waiting_ids: list[str] = field(default_factory=list)  # of the trials that wait, if they say so

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many have a value, failed, and are pending."""
        return len(self.told), len(self.failed), len(self.waiting)


@dataclass(frozen=True)
class _Reading:
    """How files are read."""

    value: str  # column of the results
    decimal: str | None
    skip_unknown: bool
    ids: bool  # whether ids are those of trials, in a journal


def next(
    results: Annotated[
        list[str],
        typer.Option("--in", metavar="FILE", help="Results (CSV, .xlsx), repeatable; - for stdin."),
    ] = [],
    config: Config = FILE,
    real: Reals = [],
    integer: Integers = [],
    choice: Choices = [],
    mixture: Mixtures = [],
    rule: Rules = [],
    features: FeatureFiles = [],
    pool: PoolFile = None,
    label: Labels = [],
    log: Logs = [],
    value: ValueColumn = "value",
    batch: Batch = None,
    goal: Annotated[Direction | None, typer.Option(help="max or min.")] = None,
    strategy: Strategy = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed.")] = None,
    out: Out = None,
    journal: Annotated[
        Path | None, typer.Option(help="Keep a journal in this file; the batch gets ids.")
    ] = None,
    skip_unknown: SkipUnknown = False,
    decimal: Decimal = None,
    explain: Explain = False,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Files only: results in, the next batch out; a journal only with --journal.

    The space comes from the parameters given here, from --pool, or from covey.toml with all it
    says. Rows without a value count as pending; --in may be given several times.

    \b
    covey next --in results.csv --real lr=1e-5:0.1:log --batch 96 --out plate.csv
    covey next --in results.csv --value value --batch 4
    covey next --in results.csv --batch 4 --journal plates.jsonl
    covey next --mixture 'water+ethanol=1:step=0.01' --batch 4
    covey next --choice solvent=THF,DMF --real T=20:120 --rule 'solvent=THF: T<=60' --batch 4
    covey next --pool candidates.csv --batch 3
    covey next --pool candidates.csv --label id --batch 3
    """
    named = {"labels": tuple(label), "log": tuple(log)}
    mixtures = mixtures_from(mixture)
    parameters = with_parts(parameters_of(real, integer, choice, features), mixtures)
    where: list[Constraint] = [*mixtures, *rules_from(rule, parameters, pool)]
    settings = _settings(parameters, where, pool, named, config)
    wanted = {
        "goal": None if goal is None else goal.value,
        "batch": batch,
        "strategy": strategy,
        "seed": seed,
    }
    settings = _with(settings, journal=journal, **wanted)
    output = None if out is None or dry_run else _output(settings, results, out)
    for line in space_lines(settings.space):
        say(line)
    reading = _Reading(value, mark_of(decimal), skip_unknown, journal is not None)
    found = _read(settings.space, results, reading)
    columns = _columns(settings.space, found, reading)
    _require_blank(output, columns, value)
    study, trials = _chosen(settings, found, reading, dry_run=dry_run)
    sheet = columns, [_cells(t, columns, reading) for t in trials], reading.decimal or "."
    if output is not None:
        output.write(sheet_bytes(output.path, *sheet))
        count = several(len(trials), "point")
        say(f"{count} written to {output.path}; fill in the column {value}.")
    elif not as_json:
        put_exactly(sheet_text(*sheet))
    why = reasons_of(study.history, trials)
    if as_json:
        ids = {"ids": [trial.id for trial in trials]} if reading.ids else {}
        points = [point_to_json(study.space, trial.point) for trial in trials]
        put_json("covey.next/1", {"points": points, "why": why, **ids})
    if explain:
        _say_why(why)


def _say_why(why: Sequence[str]) -> None:
    for place, said in enumerate(why, start=1):
        say(f"point {place}: {said}")


def _chosen(
    settings: Settings, found: _Rows, reading: _Reading, *, dry_run: bool
) -> tuple[Study, list[Trial]]:
    """The study, in memory or on a journal, and the batch."""
    if not reading.ids:
        study = _study(settings, found)
        return study, _asked(study, settings)
    study = rehearsal_of(settings) if dry_run else settings.study()
    return study, _asked_on_journal(study, settings, found, reading)


def _cells(trial: Trial, columns: Sequence[str], reading: _Reading) -> dict[str, Any]:
    """The cells of a trial's row; its id only if a journal knows it."""
    point = {_column(name, columns): value for name, value in trial.point.items()}
    return {**point, "id": trial.id} if reading.ids else point


def _with(settings: Settings, **wanted: Any) -> Settings:
    """The settings with what flags say."""
    return replace(settings, **{name: v for name, v in wanted.items() if v is not None})


def _asked(study: Study, settings: Settings) -> list[Trial]:
    say(f"choosing {several(settings.batch, 'point')}, goal {settings.goal} ...")
    return study.ask(settings.batch)


def _settings(
    parameters: dict[str, Parameter],
    where: Sequence[Constraint],
    pool: Path | None,
    roles: Mapping[str, Sequence[str]],
    config: Path,
) -> Settings:
    """Settings from the flags, from a pool, or from covey.toml."""
    require_one_space(parameters, pool, **roles)
    if parameters:
        return Settings(config, covey.Space(parameters, where=where), seed=0)
    if pool is not None:
        return Settings(config, covey.Pool(pool, **roles), seed=0)
    settings = read_settings(config)
    if settings.outcomes is not None:
        raise Stop(
            ExitCode.INVALID,
            f"{config} has outcomes by name, and `covey next` knows one value. Use `covey ask "
            "--out batch.csv` and `covey tell batch.csv`.",
        )
    return settings


def _study(settings: Settings, found: _Rows) -> Study:
    """A study in memory with the results of the files."""
    study = covey.Study(settings.space, settings.goal, settings.strategy, settings.seed or 0)
    if found.told:
        study.add([point for point, _ in found.told], [number for _, number in found.told])
    if found.failed:
        study.fail(study.enqueue(found.failed))
    if found.waiting:
        study.enqueue(found.waiting)
    return study


def _asked_on_journal(
    study: Study, settings: Settings, found: _Rows, reading: _Reading
) -> list[Trial]:
    """Record what is new in the files; the next batch, or the last one if nothing is new."""
    rows = [
        (columns_of(table, study, reading.value), row)
        for table in found.tables
        for row in table.rows
    ]
    planned = plan(rows, study, Manner())
    wrong = planned.of("refused", "deviates", *(() if reading.skip_unknown else ("unknown",)))
    if wrong:
        raise wrong[0].error()
    check_intake(planned, study)
    pending = study.history.pending
    open_points = [study.space.to_json(trial.point) for trial in pending]
    ids = {str(trial.id) for trial in study.history.trials}
    waiting = [
        point
        for point, id in zip(found.waiting, found.waiting_ids, strict=True)
        if id not in ids and study.space.to_json(point) not in open_points
    ]
    record_intake(planned, study)
    if waiting:
        study.enqueue(waiting)
    news = planned.told or planned.added or planned.failed or planned.failed_points or waiting
    again = [trial for trial in pending if trial.origin == "asked"]
    if again and not news:
        say(f"nothing new in the files: {several(len(again), 'trial')} still open, shown again")
        return again
    trials = _asked(study, settings)
    say(f"{several(len(trials), 'trial')} recorded in {settings.journal}")
    return trials


def _output(settings: Settings, results: Sequence[str], out: Path) -> Output:
    """The sheet to write. Without a journal its content could be lost: none is replaced."""
    read = [Path(path) for path in results if path != "-"]
    output = Output(out, (*read, *settings.files))
    output.require_place()
    output.require_sheet()
    return output


def _require_blank(output: Output | None, columns: Sequence[str], value: str) -> None:
    """Refuse to write over filled-in values; whether the batch is the same is known only later."""
    if output is None:
        return
    blank = partial(is_blank, columns=columns, value=value)
    replace(output, ours=blank).require_free()


def _read(space: Space | Pool, results: Sequence[str], reading: _Reading) -> _Rows:
    """Read the files: rows with a value are results, rows without one are pending."""
    found = _Rows()
    places = [path if path == "-" else os.path.realpath(path) for path in results]
    expected = Expected(
        {reading.value, *space.names, *(f"point.{name}" for name in space.names)},
        numbers_of(space, [reading.value]),
        reading.decimal,
    )
    for path, place in zip(results, places, strict=True):
        if places.count(place) > 1:
            raise Stop(ExitCode.USAGE, f"{path} is given twice; its results would count twice.")
        before = found.counts
        table = read_table(path, expected)
        if reading.value not in table.columns:
            raise no_column(reading.value, table, " Name it with --value.")
        found.tables.append(table)
        found.columns |= dict.fromkeys(table.columns)
        roles = roles_in(table, space)
        for row in table.rows:
            _classify(found, row, roles, space, reading)
        new = [a - b for a, b in zip(found.counts, before, strict=True)]
        told, failed, waiting = map(several, new, ("result", "failure", "row"))
        say(f"{told}, {failed} and {waiting} without one read from {table.file}")
        say_notes(table.file, table.dialect)
    _say_left_out(space, found, reading)
    return found


def _say_left_out(space: Space | Pool, found: _Rows, reading: _Reading) -> None:
    for rows, what in ((found.controls, "controls"), (found.unknown, "no valid points")):
        if rows:
            places = ", ".join(row.where for row in rows[:_SHOWN])
            more = ", ..." if len(rows) > _SHOWN else ""
            say(f"{several(len(rows), 'row')} left out, as {what}: {places}{more}")
    known = _known(space, found, reading.value)
    unknown = [name for name in found.columns if name not in known]
    if unknown:
        say(f"not used: {', '.join(unknown)}. No parameter has this name.")


def _classify(
    found: _Rows, row: SheetRow, roles: Sequence[str], space: Space | Pool, reading: _Reading
) -> None:
    if any(is_control(row.text(name)) for name in roles):
        found.controls.append(row)
        return
    text = row.text(reading.value)
    # With a journal, rows with an id may leave out their points; the plan looks them up.
    if reading.ids and row.text("id") and (text or row.text("status") == "failed"):
        found.told.append(({}, 0.0)) if text.lower() not in FAILED else found.failed.append({})
        return
    try:
        point = _point(space, row, reading.value)
    except HistoryError:
        if not reading.skip_unknown:
            raise
        found.unknown.append(row)
        return
    if text.lower() in FAILED or row.text("status") == "failed":
        found.failed.append(point)
    elif text:
        found.told.append((point, row.number(reading.value, "; write failed if it crashed")))
    else:
        found.waiting.append(point)
        found.waiting_ids.append(row.text("id") if reading.ids else "")


def _known(space: Space | Pool, found: _Rows, value: str) -> set[str]:
    """The columns that are recognised; of those that `export` writes, all but sem."""
    own = {value, *COLUMNS} - {"sem"}
    own |= {role for table in found.tables for role in roles_in(table, space)}
    own |= {*space.names, *(f"point.{name}" for name in space.names)}
    return own | exported(found.columns, space.names)


def _point(space: Space | Pool, row: SheetRow, value: str) -> dict[str, object]:
    cells = {k: v for k, v in row.cells.items() if k != value}
    cells |= {n: cells[f"point.{n}"] for n in space.names if f"point.{n}" in cells}
    try:
        return point_from_text(space, cells, row.dialect)
    except SpaceError as error:
        raise row.error(str(error)) from error


def _first_columns(found: _Rows) -> list[str]:
    return found.tables[0].columns if found.tables else []


def _columns(space: Space | Pool, found: _Rows, reading: _Reading) -> list[str]:
    """The columns of the files in their order, so that rows can be appended; then missing ones."""
    said = [name for name in parameters_in(sys.argv) if name in space.names]
    names = dict.fromkeys([*said, *space.names])
    given = [heading(name, (reading.value,)) for name in names]
    lacking = [
        column
        for name, column in zip(names, given, strict=True)
        if column not in found.columns and f"point.{name}" not in found.columns
    ]
    # Ids come first, unless the first file has them elsewhere.
    first = ["id"] if reading.ids and "id" not in _first_columns(found) else []
    return list(dict.fromkeys([*first, *found.columns, *lacking, reading.value]))


def _column(name: str, columns: Sequence[str]) -> str:
    """The column of a parameter in this sheet."""
    return f"point.{name}" if f"point.{name}" in columns else name
