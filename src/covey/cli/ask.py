"""`covey ask`: the pending batch again, or the next one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.options import (
    FILE,
    Batch,
    Config,
    Decimal,
    DryRun,
    Explain,
    Fix,
    Force,
    Json,
    Out,
    Strategy,
    mark_of,
)
from covey.cli.outcomes import value_columns
from covey.cli.output import ExitCode, Output, Stop, put, put_exactly, put_json, say, table
from covey.cli.settings import Settings, read_settings
from covey.cli.show import end, look_at
from covey.errors import several
from covey.sheets.points import fixed_from_text, point_to_json
from covey.sheets.writing import heading, sheet_bytes, sheet_text

if TYPE_CHECKING:
    from covey.history import History, Trial
    from covey.study import Study


def ask(
    config: Config = FILE,
    batch: Batch = None,
    new: Annotated[
        bool, typer.Option("--new", help="Ask for more while a batch is pending.")
    ] = False,
    strategy: Strategy = None,
    fix: Fix = [],
    out: Out = None,
    force: Force = False,
    decimal: Decimal = None,
    explain: Explain = False,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Print the pending batch again; or choose the next one, if all of it is told.

    \b
    covey ask
    covey ask --new --batch 4 --fix opt=adam
    covey ask --out batch.csv
    covey ask --out batch.csv --force
    covey ask --out german.csv --decimal comma
    covey ask --json --dry-run
    """
    settings = read_settings(config)
    output = None if out is None or dry_run else _output(settings, out, force=force)
    study = _study(settings, dry_run)
    show = partial(
        _show, study, _Form(as_json, out is None, explain, output, mark_of(decimal) or ".")
    )
    pending = study.history.pending
    if pending and not new:
        if batch or fix or strategy:
            raise Stop(
                ExitCode.USAGE,
                f"{_open(study)}; --batch, --fix and --strategy are for a new batch: add --new.",
            )
        show(study.history, pending)
        say(f"{_open(study)}; `covey tell` takes results, `covey ask --new` asks for more.")
        return None
    k = batch or settings.batch
    fixed = fixed_from_text(study.space, pairs_in(fix, "--fix"))
    told = several(sum(not trial.excluded for trial in study.history.told), "result")
    say(f"choosing {several(k, 'point')} after {told} ...")
    if dry_run:
        tried = study.rehearsal()
        trials = tried.ask(k, strategy=strategy, fixed=fixed)
        show(tried.history, trials)
        say("dry run: nothing was recorded.")
        return end(study)
    # Two processes that ask at once get one batch: the second finds the first one's key.
    key = None if new else f"covey-ask-{study.history.rounds + 1}"
    trials = study.ask(k, strategy=strategy, fixed=fixed, key=key)
    show(study.history, trials)
    made = f"{several(len(trials), 'trial')} recorded in {settings.journal}"
    say(f"batch {study.history.rounds} is open: {made}.")
    say(f"next: evaluate them, then  {_way_to_tell(study, out)}")
    return None


def _way_to_tell(study: Study, out: Path | None) -> str:
    pair = "ID=VALUE" if study.outcomes.plain else "ID:NAME=VALUE"
    return f"covey tell {out or 'results.csv'}  or  covey tell {pair} ..."


def _study(settings: Settings, dry_run: bool) -> Study:
    if not dry_run:
        return settings.study()
    if settings.journal.exists():
        return look_at(settings)
    return settings.on(None)


def reasons_of(history: History, trials: Sequence[Trial]) -> list[str]:
    """Why each of these trials was chosen, in words, as far as the log says."""
    unsaid = {
        "asked": "chosen without a model",
        "enqueued": "enqueued by you",
        "added": "measured elsewhere",
    }
    return [history.why(trial) or unsaid[trial.origin] for trial in trials]


def _open(study: Study) -> str:
    history = study.history
    count = len(history.pending)
    verb = "is" if count == 1 else "are"
    return f"{several(count, 'trial')} {verb} still open (batch {history.rounds})"


def _output(settings: Settings, out: Path, *, force: bool) -> Output:
    """The sheet to write; an error if it cannot be written there."""
    output = Output(out, settings.files, force)
    output.require_sheet()
    output.require_free()
    return output


def _sheet(study: Study, trials: Sequence[Trial]) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of a sheet: ids, points, and an empty column for values, or several."""
    columns = ["id", *map(heading, study.space.names), *value_columns(study)]
    rows = [{"id": t.id} | {heading(n): v for n, v in t.point.items()} for t in trials]
    return columns, rows


def pairs_in(words: Sequence[str], flag: str) -> dict[str, str]:
    """The names and texts that a flag gives, as NAME=VALUE."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Stop(ExitCode.USAGE, f"{flag} takes NAME=VALUE, got {word!r}.")
        pairs[name] = value
    return pairs


@dataclass(frozen=True)
class _Form:
    """How a batch is shown."""

    as_json: bool
    tabular: bool  # as a table, where stdout is a terminal
    explain: bool
    output: Output | None  # the file to write
    decimal: str  # the mark in its numbers


def _show(study: Study, form: _Form, history: History, trials: Sequence[Trial]) -> None:
    """The points: as a file, as JSON, as a table for a terminal, or as a sheet."""
    space, why = study.space, reasons_of(history, trials)
    names = list(space.names)
    if form.output is not None:
        sheet = sheet_bytes(form.output.path, *_sheet(study, trials), form.decimal)
        form.output.write(sheet)
        count = several(len(trials), "point")
        wanted = value_columns(study)
        fill = f"column{'s' if len(wanted) > 1 else ''} {', '.join(wanted)}"
        say(f"{count} written to {form.output.path}; fill in the {fill}.")
    if form.as_json:
        listed = [
            {"id": t.id, "point": point_to_json(space, t.point), "why": said}
            for t, said in zip(trials, why, strict=True)
        ]
        put_json("covey.ask/1", {"trials": listed})
    elif form.tabular and sys.stdout.isatty():
        put(table(["id", *names], [[t.id, *(t.point.get(n) for n in names)] for t in trials]))
    elif form.output is None:
        put_exactly(sheet_text(*_sheet(study, trials), form.decimal))
    if form.explain:
        for trial, said in zip(trials, why, strict=True):
            say(f"trial {trial.id}: {said}")
