"""`covey status`, `covey best`, `covey export`: look, and change nothing."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from covey.cli import sheets
from covey.cli.exits import ExitCode, Stop
from covey.cli.points import point_to_json
from covey.cli.settings import Settings
from covey.cli.voice import put, put_exactly, put_json, say, table
from covey.history import Trial
from covey.study import Study


def look_at(settings: Settings) -> Study:
    """The study, only to look at; of a damaged journal, what precedes the damage."""
    if not settings.journal.exists():
        raise Stop(ExitCode.CONFLICT, f"there is no {settings.journal} yet; `covey ask` starts it.")
    study = settings.look()
    if study.damage is not None:
        say(f"covey: {study.damage}")
        say("covey: what follows is only what precedes the damage.")
    return study


def end(study: Study) -> None:
    """Exit with 6 where the journal is damaged, after what could be shown."""
    if study.damage is not None:
        sys.exit(ExitCode.DAMAGED)


def status(settings: Settings, as_json: bool) -> None:
    """How far the study is."""
    if not settings.journal.exists():
        if as_json:
            put_json("covey.status/1", {"journal": str(settings.journal), "trials": {}})
        else:
            put(f"{settings.path}: nothing was asked yet. next: covey ask")
        return None
    study = look_at(settings)
    history, best = study.history, study.best
    counts = dict(Counter(trial.status for trial in history.trials))
    if as_json:
        fields = {
            "journal": str(settings.journal),
            "goal": study.goal,
            "seed": study.seed,
            "batches": history.rounds,
            "trials": counts,
            "open": [trial.id for trial in history.pending],
            "best": _described(study, best),
        }
        put_json("covey.status/1", fields)
        return end(study)
    put(f"{settings.journal}: {history.rounds} batches, goal {study.goal}, seed {study.seed}")
    put("trials: " + (", ".join(f"{n} {status}" for status, n in sorted(counts.items())) or "none"))
    if best is not None:
        put(f"best: {best.value:.6g} (trial {best.id})")
    put(f"next: covey {'tell' if history.pending else 'ask'}")
    return end(study)


def best(settings: Settings, as_json: bool) -> None:
    """The best value told, and the point the model would use."""
    study = look_at(settings)
    found = study.best
    if found is None:
        raise Stop(ExitCode.NOTHING, "nothing was told yet, so there is no best.")
    advised = study.recommend()
    if as_json:
        fields = {
            "best": _described(study, found),
            "recommended": {
                "point": point_to_json(study.space, advised.point),
                "mean": advised.mean,
                "std": advised.std,
            },
        }
        put_json("covey.best/1", fields)
        return end(study)
    put(table(["", "value", *study.space.names], [_line(study, "best", found.value, found.point)]))
    if dict(advised.point) != dict(found.point):
        say("by the model, which sees through noise:")
        row = _line(study, "recommended", advised.mean, advised.point)
        put(table(["", "expected", *study.space.names], [row]))
    return end(study)


def _line(study: Study, word: str, value: float | None, point: Any) -> list[Any]:
    return [word, value, *(point.get(name) for name in study.space.names)]


def export(settings: Settings, out: Path | None, as_json: bool) -> None:
    """Every trial, as CSV or JSON."""
    if out is not None:
        sheets.require_free(out, settings.files)
    study = look_at(settings)
    names = list(study.space.names)
    trials = study.history.trials
    if as_json:
        put_json("covey.export/1", {"trials": [_described(study, trial) for trial in trials]})
        return end(study)
    rows = [
        {name: getattr(trial, name) for name in sheets.COLUMNS}
        | {sheets.heading(name): value for name, value in trial.point.items()}
        for trial in trials
    ]
    text = sheets.write([*sheets.COLUMNS, *map(sheets.heading, names)], rows)
    if out is None:
        put_exactly(text)
    else:
        sheets.save(out, text)
        say(f"{len(rows)} trials written to {out}")
    return end(study)


def report(settings: Settings, out: Path, as_json: bool) -> None:
    """The report card, as a page or as JSON."""
    from covey.report import Commands, card, page_path, write_page
    from covey.report.commands import python_commands
    from covey.report.lots import lots_of

    if not as_json:  # before the work, not after
        sheets.require_free(out, settings.files)
        page_path(out)
    study = look_at(settings)
    history = study.history
    following = "covey tell results.csv" if history.pending else "covey ask"
    again = python_commands(history, lots_of(history), str(settings.journal)).again
    made = card(study, Commands((following,), again))
    if as_json:
        put_json("covey.report/1", made.to_json())
        return end(study)
    write_page(made, out)
    say(made.headline)
    put_exactly(str(out.resolve()))
    return end(study)


def _described(study: Study, trial: Trial | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {
        "id": trial.id,
        "status": trial.status,
        "value": trial.value,
        "sem": trial.sem,
        "origin": trial.origin,
        "point": point_to_json(study.space, trial.point),
    }
