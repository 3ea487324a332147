"""`covey next`: read results from files, write the next batch to a file; a journal if wanted."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.ask import reasons_of
from covey.cli.init import (
    parameters_in_tables,
    parameters_of,
    require_one_space,
    space_lines,
)
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
    Force,
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
from covey.cli.settings import Settings, read_settings, space_of
from covey.cli.show import rehearsal_of
from covey.cli.tell import say_notes, tables_in
from covey.errors import several
from covey.sheets.columns import SheetColumns, unused_columns
from covey.sheets.intake import Intake, Manner, plan
from covey.sheets.points import point_to_json
from covey.sheets.recording import check_intake, record_intake
from covey.sheets.writing import heading, sheet_bytes, sheet_text
from covey.tables import SheetTable

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.space import Pool, Space
    from covey.study import Study


_Table = tuple[SheetTable, SheetColumns]


@dataclass(frozen=True)
class _Form:
    """How files are read, whether a journal is kept, and how the batch is shown."""

    value: str  # column of the results
    decimal: str | None
    kept: bool  # in a journal, whose ids rows may have
    dry_run: bool
    as_json: bool
    explain: bool

    @property
    def writes(self) -> bool:
        """Whether the journal is written."""
        return self.kept and not self.dry_run


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
    force: Force = False,
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
    mixtures = mixtures_from(mixture)
    parameters = with_parts(parameters_of(real, integer, choice, features), mixtures)
    rules = rules_from(rule, parameters_in_tables(parameters, FILE), pool)
    require_one_space(parameters, pool, label, log)
    given: dict[str, Any] = {}
    if parameters:
        given = {"parameters": parameters, "constraints": [*mixtures, *rules]}
    elif pool is not None:
        given = {"pool": {"file": str(pool), "labels": label, "log": log}}
    settings = _settings(given, config)
    of_study = {"goal": goal and goal.value, "strategy": strategy, "seed": seed}
    own = {"batch": batch, "journal": journal}
    settings = replace(settings, **_said(own)).changed(**_said(of_study))
    output = None if out is None or dry_run else _output(settings, results, out, force=force)
    for line in space_lines(settings.space):
        say(line)
    form = _Form(value, mark_of(decimal), journal is not None, dry_run, as_json, explain)
    study = _opened(settings, form)
    tables = tables_in(results, study, value, form.decimal, by_id=form.kept)
    planned = _planned(tables, study, form)
    _say_read(tables, planned, study)
    planned.require_all(skip_unknown=skip_unknown)
    columns = _columns(study.space, [table for table, _ in tables], form)
    if form.writes and study.journal is None:  # all can be taken: the study may start
        check_intake(planned, study)
        study = settings.study()
        planned = _planned(tables, study, form)
    trials = _asked(study, planned, settings)
    _show(study, trials, columns, output, form)


def _show(
    study: Study,
    trials: Sequence[Trial],
    columns: Sequence[str],
    output: Output | None,
    form: _Form,
) -> None:
    """The points: as a file, as JSON or as a sheet, and why they were chosen."""
    sheet = columns, [_cells(trial, columns, form) for trial in trials], form.decimal or "."
    if output is not None:
        output.write(sheet_bytes(output.path, *sheet))
        count = several(len(trials), "point")
        say(f"{count} written to {output.path}; fill in the column {form.value}.")
    elif not form.as_json:
        put_exactly(sheet_text(*sheet))
    why = reasons_of(study.history, trials)
    if form.as_json:
        ids = {"ids": [trial.id for trial in trials]} if form.kept else {}
        points = [point_to_json(study.space, trial.point) for trial in trials]
        put_json("covey.next/1", {"points": points, "why": why, **ids})
    if form.explain:
        for place, said in enumerate(why, start=1):
            say(f"point {place}: {said}")


def _opened(settings: Settings, form: _Form) -> Study:
    """The study on its journal, if that is there to be written; else one in memory."""
    if not form.kept:
        return settings.changed(seed=settings.wanted.seed or 0).on(None)
    if form.writes and settings.journal.exists():
        return settings.study()
    return rehearsal_of(settings)


def _planned(tables: Sequence[_Table], study: Study, form: _Form) -> Intake:
    """What each row of the files is. Without a journal none is known: every row counts."""
    rows = [(columns, row) for table, columns in tables for row in table.rows]
    return plan(rows, study, Manner(by_id=form.kept, again=not form.kept, pending=True))


def _cells(trial: Trial, columns: Sequence[str], form: _Form) -> dict[str, Any]:
    """The cells of a trial's row; its id only if a journal knows it."""
    point = {_column(name, columns): value for name, value in trial.point.items()}
    return {**point, "id": trial.id} if form.kept else point


def _said(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given."""
    return {name: value for name, value in flags.items() if value is not None}


def _asked(study: Study, planned: Intake, settings: Settings) -> list[Trial]:
    """Record what is new in the files; the next batch, or the last one if nothing is new."""
    again = [trial for trial in study.history.pending if trial.origin == "asked"]
    before = study.history.events
    record_intake(planned, study)
    if again and study.history.events == before:
        say(f"nothing new in the files: {several(len(again), 'trial')} still open, shown again")
        return again
    say(f"choosing {several(settings.batch, 'point')}, goal {settings.wanted.goal} ...")
    trials = study.ask(settings.batch)
    if study.journal is not None:
        say(f"{several(len(trials), 'trial')} recorded in {settings.journal}")
    return trials


def _settings(given: Mapping[str, Any], config: Path) -> Settings:
    """Settings from the tables that flags give, or from covey.toml."""
    from covey.arguments import StudyArguments

    if given:
        return Settings(config, StudyArguments(space_of(given, FILE), seed=0))
    settings = read_settings(config)
    if not settings.outcomes.plain:
        raise Stop(
            ExitCode.INVALID,
            f"{config} has outcomes by name, and `covey next` knows one value. Use `covey ask "
            "--out batch.csv` and `covey tell batch.csv`.",
        )
    return settings


def _output(settings: Settings, results: Sequence[str], out: Path, *, force: bool) -> Output:
    """The sheet to write; an error if it cannot be written there."""
    read = [Path(path) for path in results if path != "-"]
    output = Output(out, (*read, *settings.files), force)
    output.require_sheet()
    output.require_free()
    return output


def _say_read(tables: Sequence[_Table], planned: Intake, study: Study) -> None:
    """Say what was read from each file, and what is not used."""
    for table, _ in tables:
        entries = [entry for entry in planned.entries if entry.row.file == table.file]
        told = several(sum(bool(entry.values) for entry in entries), "result")
        failed = several(sum("failed" in (entry.kind, entry.says) for entry in entries), "failure")
        rows = several(sum(entry.kind == "open" for entry in entries), "row")
        say(f"{told}, {failed} and {rows} without one read from {table.file}")
        say_notes(table.file, table.dialect)
    for line in planned.left_out():
        say(line)
    found = [name for table, columns in tables for name in unused_columns(table, columns, study)]
    if found:
        say(f"not used: {', '.join(dict.fromkeys(found))}. No parameter has this name.")


def _columns(space: Space | Pool, tables: Sequence[SheetTable], form: _Form) -> list[str]:
    """The columns of the files in their order, so that rows can be appended; then missing ones."""
    present = dict.fromkeys(name for table in tables for name in table.columns)
    said = [name for name in parameters_in(sys.argv) if name in space.names]
    lacking = [
        heading(name, (form.value,))
        for name in dict.fromkeys([*said, *space.names])
        if not present.keys() & {heading(name, (form.value,)), f"point.{name}"}
    ]
    # Ids come first, unless the first file has them elsewhere.
    first = ["id"] if form.kept and not (tables and "id" in tables[0].columns) else []
    return list(dict.fromkeys([*first, *present, *lacking, form.value]))


def _column(name: str, columns: Sequence[str]) -> str:
    """The column of a parameter in this sheet."""
    return f"point.{name}" if f"point.{name}" in columns else name
