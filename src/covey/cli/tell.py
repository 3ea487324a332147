"""`covey tell` and `covey add`: results from sheets, from stdin, or one by one; all or none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.options import FILE, Config, Decimal, DryRun, Json, SkipUnknown, ValueColumn, mark_of
from covey.cli.outcomes import best_line, in_part, rows_in_words, value_columns
from covey.cli.output import ExitCode, Stop, put, put_json, say, table
from covey.cli.settings import Settings, read_settings
from covey.cli.show import end, look_at, next_command
from covey.errors import HistoryError, several
from covey.sheets.columns import (
    SheetColumns,
    columns_of,
    expected_in,
    outcome_columns,
    require_no_wells,
    say_unused,
)
from covey.sheets.intake import Entry, Intake, Manner, plan
from covey.sheets.recording import check_intake, record_intake
from covey.tables import (
    LARGEST,
    Dialect,
    Expected,
    SheetRow,
    SheetTable,
    bounded,
    read_within,
    table_of,
    unreadable,
)

if TYPE_CHECKING:
    from covey.study import Study

AsRun = Annotated[
    bool, typer.Option("--as-run", help="Rows that differ from what was asked are what was run.")
]
Again = Annotated[
    bool, typer.Option("--again", help="Count rows that are recorded already as new measurements.")
]
_SHOWN = 5  # rows that a message names


@dataclass(frozen=True)
class _Form:
    """How the outcome of a command is shown, and whether it is in earnest."""

    verb: str
    settings: Settings
    as_json: bool
    dry_run: bool
    skip_unknown: bool
    starts: bool = False  # there is no journal yet, and this command may start it


def tell(
    results: Annotated[
        list[str], typer.Argument(help="ID=VALUE ..., or files (CSV, .xlsx), or - for stdin")
    ],
    config: Config = FILE,
    value: ValueColumn = "value",
    as_run: AsRun = False,
    skip_unknown: SkipUnknown = False,
    again: Again = False,
    decimal: Decimal = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Record results: all of them or none; what is recorded already is skipped.

    A row with an id is the result of that trial, a row without one a measurement of its point; an
    empty value is still to come, the word failed is a failure. Several rows of one id are repeats.
    Controls are left out. --dry-run shows what each row is. Where outcomes have names, a sheet has
    a column for each, and a pair is ID:NAME=VALUE.

    \b
    covey tell 0=0.81 1=failed
    covey tell --dry-run batch.csv
    covey tell batch.csv results.csv
    """
    settings = read_settings(config)
    study = _opened(settings, dry_run=dry_run)
    rows = rows_in_words(results, study)
    if rows is None:
        found = _from_files(results, study, value, mark_of(decimal))
    else:
        columns = SheetColumns(
            {name: name for name in outcome_columns(study, "value")},
            id="id",
            record=[name for name in value_columns(study) if name not in study.outcomes.names],
            words=True,
        )
        found = [(columns, row) for row in rows]
    form = _Form("tell", settings, as_json, dry_run, skip_unknown)
    _take(found, study, Manner(as_run=as_run, again=again), form)


def add(
    results: Annotated[list[str], typer.Argument(help="Files (CSV, .xlsx), or - for stdin")],
    config: Config = FILE,
    value: ValueColumn = "value",
    skip_unknown: SkipUnknown = False,
    again: Again = False,
    decimal: Decimal = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Add measurements from elsewhere: every row is one, whatever its id; all of them or none.

    For results that were there before the study, or come from another one. What was added already
    is skipped, so that a sheet may grow and be added again.

    \b
    covey add --dry-run results.csv
    covey add results.csv
    covey add results.csv --value value --json
    """
    settings = read_settings(config)
    starts = not settings.journal.exists()
    study = _opened(settings, dry_run=dry_run, start=True)
    found = _from_files(results, study, value, mark_of(decimal), by_id=False)
    form = _Form("add", settings, as_json, dry_run, skip_unknown, starts)
    _take(found, study, Manner(by_id=False, again=again), form)


def _opened(settings: Settings, *, dry_run: bool, start: bool = False) -> Study:
    if not settings.journal.exists():
        if start:  # in memory first: a refusal leaves no journal, which would keep the space
            return settings.on(None)
        raise Stop(
            ExitCode.CONFLICT,
            f"there is no {settings.journal} yet; `covey ask` starts it, and `covey add FILE` "
            "with results that you have.",
        )
    return look_at(settings, own=True) if dry_run else settings.change()


def _from_files(
    words: Sequence[str], study: Study, value: str, decimal: str | None, *, by_id: bool = True
) -> list[tuple[SheetColumns, SheetRow]]:
    """The rows of all files, each with the columns of its file."""
    files = [word for word in words if word == "-" or Path(word).exists() or "=" not in word]
    if len(files) < len(words):
        pairs = ", or ID=VALUE (ID:NAME=VALUE) for each result" if by_id else ""
        raise Stop(ExitCode.USAGE, f"{'tell' if by_id else 'add'} takes files, - for stdin{pairs}.")
    found = []
    for one, columns in tables_in(words, study, value, decimal, by_id=by_id):
        if unused := say_unused(one, columns, study):
            say(unused)
        found += [(columns, row) for row in one.rows]
    return found


def tables_in(
    words: Sequence[str], study: Study, value: str, decimal: str | None, *, by_id: bool
) -> list[tuple[SheetTable, SheetColumns]]:
    """The tables in files of results, and what their columns are."""
    places = [word if word == "-" else os.path.realpath(word) for word in words]
    twice = [word for word, place in zip(words, places, strict=True) if places.count(place) > 1]
    if twice:
        raise Stop(ExitCode.USAGE, f"{twice[-1]} is given twice; its results would count twice.")
    with _wrong_usage():
        expected = expected_in(study, value, decimal)
    tables = [read_table(word, expected) for word in words]
    for one in tables if by_id else ():
        with _wrong_usage():
            require_no_wells(one, study)
    return [(one, columns_of(one, study, value, by_id=by_id)) for one in tables]


@contextmanager
def _wrong_usage() -> Iterator[None]:
    """End with the code of a wrong command line, not with that of wrong content of a file."""
    try:
        yield
    except HistoryError as error:
        raise Stop(ExitCode.USAGE, str(error)) from error


def read_table(path: str, expected: Expected) -> SheetTable:
    """The table in a file; "-" is stdin. What was noticed on the way is in its dialect."""
    name = "stdin" if path == "-" else path
    try:
        if path == "-":
            data = read_within(sys.stdin.buffer, LARGEST, name)
        else:
            data = bounded(path, LARGEST)
    except FileNotFoundError as error:
        raise Stop(ExitCode.CONFLICT, f"there is no file {path}.") from error
    except OSError as error:
        raise Stop(ExitCode.FAILED, unreadable(path, error)) from error
    return table_of(data, name, expected)


def say_notes(file: str, dialect: Dialect) -> None:
    """Say what was noticed when a file was read."""
    for note in dialect.said():
        say(f"{file}: {note}")


def _take(
    rows: Sequence[tuple[SheetColumns, SheetRow]], study: Study, manner: Manner, form: _Form
) -> None:
    """Work out what each row is; show it, or record it."""
    found = plan(rows, study, manner)
    if found.of("deviates") and not form.dry_run and _says_as_run(found, rows):
        found = plan(rows, study, replace(manner, as_run=True))
    _say_notes(rows)
    if form.dry_run and not form.as_json:
        put(_preview(found))
    found.require_all(skip_unknown=form.skip_unknown)
    check_intake(found, study)
    before = _excluded(study)
    if not form.dry_run:
        if form.starts:  # all can be taken: the study may start
            study = form.settings.study()
            found = plan(rows, study, manner)
            found.require_all(skip_unknown=form.skip_unknown)
        record_intake(found, study)
    counts = _counts(found)
    if form.as_json:
        fields = {**counts, "dry_run": form.dry_run, "pending": len(study.history.pending)}
        doubted = {"excluded": sorted(_excluded(study) - before)}  # as beyond belief
        shown = {"rows": [_entry_json(entry) for entry in found.entries]} if form.dry_run else {}
        put_json(f"covey.{form.verb}/1", {**fields, **doubted, **shown})
    else:
        put(_summary(counts, dry_run=form.dry_run))
    for line in found.left_out():
        say(line)
    part = len(in_part(study))
    if part:
        say(f"{several(part, 'trial')} told in part; the rest of the outcomes is to come")
    _say_what_is_left(form.settings, study)
    return end(study)


def _excluded(study: Study) -> set[int]:
    return {trial.id for trial in study.history.trials if trial.excluded}


def _says_as_run(found: Intake, rows: Sequence[tuple[SheetColumns, SheetRow]]) -> bool:
    """Ask, at a terminal, whether rows that differ from what was asked are what was run."""
    from_stdin = any(row.file == "stdin" for _, row in rows)
    if from_stdin or not is_terminal():
        return False
    for line in _named(found.of("deviates")):
        say(line)
    return typer.confirm("Were they run as the sheet says?", err=True)


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _counts(found: Intake) -> dict[str, int]:
    """How many of each kind there are."""
    return {
        "told": sum(bool(one.new) for one in found.told.values()),
        "failed": len(found.failed) + len(found.failed_points),
        "sems": sum(one.new_sem and not one.new for one in found.told.values()),
        "known": found.count("known", "sem"),
        "added": len(found.added),
        "repeats": found.count("repeat"),
        "as_run": found.count("as run"),
        "controls": found.count("control"),
        "open": found.count("open"),
        "left_out": found.count("unknown", "excluded"),
    }


def _summary(counts: Mapping[str, int], *, dry_run: bool) -> str:
    """What was recorded, in words; of what there is none, nothing is said."""
    will = "would be " if dry_run else ""
    nouns = {"told": "result", "failed": "failure"}
    results = [several(counts[name], noun) for name, noun in nouns.items() if counts[name]]
    found = [f"{' and '.join(results)} {will}recorded"] if results else []
    if counts["sems"]:
        found.append(f"{several(counts['sems'], 'standard error')} {will}added")
    if counts["added"]:
        parts = {"repeats": "of points measured before", "as_run": "as run, not as asked"}
        inner = [f"{counts[name]} {words}" for name, words in parts.items() if counts[name]]
        more = f" ({', '.join(inner)})" if inner else ""
        found.append(f"{several(counts['added'], 'measurement')} {will}added{more}")
    if counts["known"]:
        found.append(f"{counts['known']} known already")
    return ", ".join(found) or "nothing to record"


def _named(entries: Sequence[Entry]) -> list[str]:
    lines = [f"{entry.row.where}: {entry.says}" for entry in entries[:_SHOWN]]
    more = len(entries) - _SHOWN
    return lines + ([f"... and {several(more, 'other row')}"] if more > 0 else [])


def _preview(found: Intake) -> str:
    """A table of what each row is."""
    from covey.history.trial import value_in_words

    rows = []
    for one in found.entries:
        rows.append([one.row.where, one.kind, one.trial, value_in_words(one.values), one.says])
    return table(["row", "is", "trial", "values", ""], rows)


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "row": entry.row.where,
        "is": entry.kind,
        "trial": entry.trial,
        "values": dict(entry.values),
        "says": entry.says,
    }


def _say_notes(rows: Sequence[tuple[SheetColumns, SheetRow]]) -> None:
    """Say what was noticed when files were read, each thing once."""
    dialects = {row.file: row.dialect for _, row in rows}
    for file, dialect in dialects.items():
        say_notes(file, dialect)


def _say_what_is_left(settings: Settings, study: Study) -> None:
    left = len(study.history.pending)
    if best := best_line(study):
        say(best)
    still = f"{several(left, 'trial')} {'is' if left == 1 else 'are'} still open"
    say(still if left else f"next: {next_command(settings, study)}")
