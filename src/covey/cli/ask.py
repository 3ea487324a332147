"""`covey ask`: the open batch again, or the next one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.arrays import one_thread
from covey.catalog import strategy_of
from covey.cli import sheets
from covey.cli.exits import ExitCode, Stop
from covey.cli.look import end, look_at
from covey.cli.points import fixed_from_text, point_to_json
from covey.cli.settings import Settings
from covey.cli.voice import put, put_exactly, put_json, say, table
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
    if options.out is not None:
        _require_blank(options.out, settings)
    if options.dry_run and not settings.journal.exists():
        study = Study(settings.space, settings.goal, settings.strategy, settings.seed)
    elif options.dry_run:
        study = look_at(settings)
    else:
        study = settings.study()
    pending = study.history.pending
    if pending and not options.new:
        if options.batch or options.fix or options.strategy:
            raise Stop(
                ExitCode.USAGE,
                f"{_open(study)}; --batch, --fix and --strategy are for a new batch: add --new.",
            )
        _show(study, pending, options)
        say(f"{_open(study)}; `covey tell` takes results, `covey ask --new` asks for more.")
        return None
    k = options.batch or settings.batch
    fixed = fixed_from_text(study.space, _pairs(options.fix))
    told = several(len(study.history.told), "result")
    say(f"choosing {several(k, 'point')} after {told} ...")
    if options.dry_run:
        points = _proposed(study, k, options.strategy or settings.strategy or "auto", fixed)
        first = len(study.history)
        _show(study, [Trial(first + i, p) for i, p in enumerate(points)], options)
        say("dry run: nothing was recorded.")
        return end(study)
    # Two who ask at once get one batch: the second finds the key of the first.
    key = None if options.new else f"covey-ask-{study.history.rounds + 1}"
    trials = study.ask(k, strategy=options.strategy, fixed=fixed, key=key)
    _show(study, trials, options)
    made = several(len(trials), "trial")
    say(f"batch {study.history.rounds} is open: {made} recorded in {settings.journal}.")
    say("next: evaluate them, then  covey tell results.csv  or  covey tell ID=VALUE ...")
    return None


def _proposed(study: Study, k: int, strategy: str, fixed: Mapping[str, Any]) -> list[Any]:
    name, chosen = strategy_of(strategy)
    with one_thread():
        return propose(study.history, study.recipe, Request(k, chosen, name, fixed)).points


def _open(study: Study) -> str:
    history = study.history
    count = len(history.pending)
    verb = "is" if count == 1 else "are"
    return f"{several(count, 'trial')} {verb} still open (batch {history.rounds})"


def _require_blank(out: Path, settings: Settings) -> None:
    """Refuse a file that somebody has begun to fill in, before anything is recorded."""
    sheets.require_free(out, settings.files)
    if sheets.holds_values(out):
        raise Stop(
            ExitCode.CONFLICT,
            f"{out} holds values; `covey tell {out}` records them. Or name another file.",
        )


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Stop(ExitCode.USAGE, f"--fix takes NAME=VALUE, got {word!r}.")
        pairs[name] = value
    return pairs


def _show(study: Study, trials: Sequence[Trial], options: AskOptions) -> None:
    names = list(study.space.names)
    columns = ["id", *map(sheets.heading, names), "value"]
    rows = [{"id": t.id} | {sheets.heading(n): v for n, v in t.point.items()} for t in trials]
    if options.out is not None:
        sheets.save(options.out, sheets.write(columns, rows))
        say(f"{several(len(rows), 'point')} written to {options.out}; fill in the column value.")
    if options.json:
        listed = [{"id": t.id, "point": point_to_json(study.space, t.point)} for t in trials]
        put_json("covey.ask/1", {"trials": listed})
    elif options.out is None and sys.stdout.isatty():
        put(table(["id", *names], [[t.id, *(t.point.get(n) for n in names)] for t in trials]))
    elif options.out is None:
        put_exactly(sheets.write(columns, rows))
