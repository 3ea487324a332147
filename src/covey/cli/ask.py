"""`covey ask`: the open batch again, or the next one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from covey.arrays import one_thread
from covey.catalog import strategy_of
from covey.cli import sheets
from covey.cli.look import end, look_at
from covey.cli.output import ExitCode, Output, Stop, put, put_exactly, put_json, say, table
from covey.cli.settings import Settings
from covey.cli.sheets import fixed_from_text, point_to_json
from covey.errors import several
from covey.history import Trial
from covey.propose import Request, propose
from covey.study import Study


@dataclass(frozen=True)
class AskOptions:
    """What `covey ask` was told."""

    batch: int | None = None
    new: bool = False
    strategy: str | None = None
    fix: tuple[str, ...] = ()
    out: Path | None = None
    json: bool = False
    dry_run: bool = False


def ask(settings: Settings, options: AskOptions) -> None:
    """Print the open batch, or ask for one; the points are data, the rest is talk."""
    output = _output(settings, options)
    study = _study(settings, options)
    if output is not None:
        output = replace(output, ours=partial(_is_blank_sheet, study))
        output.require_free()
    pending = study.history.pending
    if pending and not options.new:
        if options.batch or options.fix or options.strategy:
            raise Stop(
                ExitCode.USAGE,
                f"{_open(study)}; --batch, --fix and --strategy are for a new batch: add --new.",
            )
        _show(study, pending, options, output)
        say(f"{_open(study)}; `covey tell` takes results, `covey ask --new` asks for more.")
        return None
    k = options.batch or settings.batch
    fixed = fixed_from_text(study.space, _pairs(options.fix))
    told = several(len(study.history.told), "result")
    say(f"choosing {several(k, 'point')} after {told} ...")
    if options.dry_run:
        points = _proposed(study, k, options.strategy or settings.strategy or "auto", fixed)
        first = len(study.history)
        _show(study, [Trial(first + i, p) for i, p in enumerate(points)], options, output)
        say("dry run: nothing was recorded.")
        return end(study)
    # Two who ask at once get one batch: the second finds the key of the first.
    key = None if options.new else f"covey-ask-{study.history.rounds + 1}"
    trials = study.ask(k, strategy=options.strategy, fixed=fixed, key=key)
    _show(study, trials, options, output)
    made = several(len(trials), "trial")
    say(f"batch {study.history.rounds} is open: {made} recorded in {settings.journal}.")
    sheet = options.out or "results.csv"
    say(f"next: evaluate them, then  covey tell {sheet}  or  covey tell ID=VALUE ...")
    return None


def _study(settings: Settings, options: AskOptions) -> Study:
    if not options.dry_run:
        return settings.study()
    if settings.journal.exists():
        return look_at(settings)
    return Study(settings.space, settings.goal, settings.strategy, settings.seed)


def _proposed(study: Study, k: int, strategy: str, fixed: Mapping[str, Any]) -> list[Any]:
    name, chosen = strategy_of(strategy)
    with one_thread():
        return propose(study.history, study.recipe, Request(k, chosen, name, fixed)).points


def _open(study: Study) -> str:
    history = study.history
    count = len(history.pending)
    verb = "is" if count == 1 else "are"
    return f"{several(count, 'trial')} {verb} still open (batch {history.rounds})"


def _output(settings: Settings, options: AskOptions) -> Output | None:
    """The sheet to write, if one is and can be; a dry run prints it instead."""
    out = options.out
    if out is None or options.dry_run:
        return None
    hint = f"`covey tell {out}` records results; else move it away, or name another file."
    output = Output(out, settings.files, hint=hint)
    output.require_place()
    output.require_csv()
    if not settings.journal.exists():  # to open the study would begin one
        output.require_free()
    return output


def _is_blank_sheet(study: Study, file: BinaryIO) -> bool:
    """Whether a file is a sheet of trials of this study in which nothing was filled in."""
    return sheets.says_only(file, *_sheet(study, study.history.trials))


def _sheet(study: Study, trials: Sequence[Trial]) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows: ids, points, and room for the values."""
    columns = ["id", *map(sheets.heading, study.space.names), "value"]
    rows = [{"id": t.id} | {sheets.heading(n): v for n, v in t.point.items()} for t in trials]
    return columns, rows


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Stop(ExitCode.USAGE, f"--fix takes NAME=VALUE, got {word!r}.")
        pairs[name] = value
    return pairs


def _show(
    study: Study, trials: Sequence[Trial], options: AskOptions, output: Output | None
) -> None:
    names = list(study.space.names)
    if output is not None:
        output.write(sheets.write(*_sheet(study, trials)))
        say(f"{several(len(trials), 'point')} written to {output.path}; fill in the column value.")
    if options.json:
        listed = [{"id": t.id, "point": point_to_json(study.space, t.point)} for t in trials]
        put_json("covey.ask/1", {"trials": listed})
    elif options.out is None and sys.stdout.isatty():
        put(table(["id", *names], [[t.id, *(t.point.get(n) for n in names)] for t in trials]))
    elif output is None:
        put_exactly(sheets.write(*_sheet(study, trials)))
