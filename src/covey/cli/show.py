"""`covey best`, `advice`, `export`, `logs` and `report`: commands that change nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.options import FILE, Config, Decimal, Force, Json, Out, mark_of
from covey.cli.outcomes import value_columns
from covey.cli.output import ExitCode, Output, Stop, put, put_exactly, put_json, say, table
from covey.cli.settings import Settings, read_settings
from covey.errors import duration, several
from covey.sheets.points import point_to_json
from covey.sheets.writing import (
    COLUMNS,
    EXPORT_ONLY,
    export_columns,
    heading,
    sheet_bytes,
    sheet_text,
)

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.study import Study


def look_at(settings: Settings, *, own: bool = False) -> Study:
    """The study opened read-only; of a damaged journal, what precedes the damage."""
    if not settings.journal.exists():
        raise Stop(ExitCode.CONFLICT, f"there is no {settings.journal} yet; `covey ask` starts it.")
    study = settings.look(own=own)
    if study.damage is not None:
        say(f"covey: {study.damage}")
        say("covey: what follows is only what precedes the damage.")
    return study


def rehearsal_of(settings: Settings) -> Study:
    """The study as it is, or as it would begin, on a log in memory: for a dry run."""
    return look_at(settings).rehearsal() if settings.journal.exists() else settings.on(None)


def look_back_at(settings: Settings, *, model: bool = False) -> Study:
    """The study to show, in the space that its journal has, whatever the file says by now.

    With ``model`` also its model is needed: candidates that are known by name only have none.
    """
    study = look_at(settings, own=True)
    if model and study.space.written is not None:
        return look_at(settings)  # which says what differs
    say_differences(settings, study)
    return study


def say_differences(settings: Settings, study: Study) -> None:
    """Say where the file has another space than the journal."""
    if said := settings.differences(study):
        say(
            f"covey: {settings.path} has another space than the journal: {'; '.join(said)}. "
            "What follows goes by the journal; `covey extend --reason ...` goes on in the new one."
        )


def end(study: Study) -> None:
    """Exit with 6 where the journal is damaged, after what could be shown."""
    if study.damage is not None:
        sys.exit(ExitCode.DAMAGED)


def best(config: Config = FILE, as_json: Json = False) -> None:
    """The best point told, and the one the model recommends.

    \b
    covey best
    covey best --json
    """
    study = look_back_at(read_settings(config), model=True)
    if not study.outcomes.only:
        return _show_front(study, as_json)
    found = study.best
    if found is None and any(not trial.excluded for trial in study.history.told):
        kept = ", ".join(map(str, study.outcomes.limits))
        raise Stop(ExitCode.NOTHING, f"no result is known to keep the limits ({kept}).")
    if found is None:
        why = "every result is excluded" if study.history.told else "nothing was told yet"
        raise Stop(ExitCode.NOTHING, f"{why}, so there is no best.")
    advised = study.recommend()
    if as_json:
        fields = {
            "best": trial_json(study, found),
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


def advice(
    up_to: Annotated[int, typer.Option("--up-to", help="The largest batch in question.")] = 96,
    worth: Annotated[
        float | None, typer.Option(help="The least gain that counts; else 1 % of the range.")
    ] = None,
    config: Config = FILE,
    as_json: Json = False,
) -> None:
    """What batches of each size are expected to gain, and whether to stop.

    \b
    covey advice
    covey advice --up-to 24
    covey advice --worth 0.5 --json
    """
    study = look_at(read_settings(config))
    found = study.advice(up_to, worth=worth)
    if as_json:
        put_json("covey.advice/1", found.to_json())
        return end(study)
    rows = [
        [str(g.size), f"{g.expected_best:.4g}", f"{g.gain:.3g}", f"{g.share:.0%}"]
        for g in found.gains
    ]
    best = "expected best" if found.goals == 1 else "expected hypervolume"
    put(table(["points", best, "gain", "of the largest"], rows))
    for words in found.words():
        say(words)
    return end(study)


def _show_front(study: Study, as_json: bool) -> None:
    """The trials that no other beats in every goal, and the one that the model recommends."""
    front = study.front
    if not front:
        raise Stop(ExitCode.NOTHING, "no result keeps the limits yet, so there is no front.")
    advised = study.recommend()
    if as_json:
        fields = {
            "front": [trial_json(study, trial) for trial in front],
            "recommended": {
                "point": point_to_json(study.space, advised.point),
                "expected": {name: one._asdict() for name, one in advised.expected.items()},
            },
        }
        put_json("covey.best/1", fields)
        return end(study)
    names = list(study.outcomes.names)
    rows = [
        [t.id, *(t.values.get(n) for n in names), *(t.point.get(n) for n in study.space.names)]
        for t in front
    ]
    put(table(["id", *names, *study.space.names], rows))
    if advised.trial is not None:
        say(f"nearest to the best of every goal at once, by the model: trial {advised.trial.id}")
    return end(study)


def _line(study: Study, word: str, value: float | None, point: Any) -> list[Any]:
    return [word, value, *(point.get(name) for name in study.space.names)]


def trial_name(study: Study, trial: Trial) -> str:
    """What to call a trial: its id and its batch."""
    batch = study.history.batch(trial)
    return f"trial {trial.id}" + (f" (batch {batch})" if batch else "")


def next_command(settings: Settings, study: Study | None = None) -> str:
    """The command to type next: what is pending is to be told first, by the plate or not."""
    if settings.run.command:
        return "covey run"
    if study is not None:
        book = study.history.plates
        if any(not book.wells_of(trial.id) for trial in study.history.pending):
            return "covey tell"
        waiting = [name for name, record in book.records.items() if record.missing]
        if waiting:
            return f"covey plate tell reader.csv --plate {waiting[0]}"
    return "covey ask" if settings.plate is None else "covey plate ask"


def _amended(study: Study, trial: Trial) -> list[str]:
    """Why the value of a trial, a well of it or its point was corrected, each time."""
    every = (one for one in study.history.corrections if not one.is_exclusion)
    found = [one for one in every if trial.id in one.ids]
    by_hand = [one.what.startswith("amended") for one in found]
    return [
        one.reason if plain else f"{one.what}: {one.reason}"
        for one, plain in zip(found, by_hand, strict=True)
    ]


def logs(
    trial: Annotated[int, typer.Argument(metavar="ID", help="Id of a trial.")],
    config: Config = FILE,
    as_json: Json = False,
) -> None:
    """A trial: when it ran, why it failed or is excluded, notes, and what it printed.

    \b
    covey logs 1
    covey logs 1 --json
    """
    from covey.run.api import work_folder

    settings = read_settings(config)
    study = look_back_at(settings)
    found = study.history.trial(trial)
    attempts, reports = study.history.attempts(found), study.history.reports(found)
    folder = work_folder(settings.journal)
    kept = [file for sent in attempts for file in _kept(folder / Path(sent.name).name)]
    if as_json:
        fields = {
            **(trial_json(study, found) or {}),
            **_fate(study, found),
            "notes": list(study.history.notes(found)),
            "metrics": study.history.metrics(found),
            "amended": _amended(study, found),
            "attempts": len(attempts),
            "reports": [[one.step, one.value] for one in reports],
            "folder": str(folder),
            "logs": [{"file": str(file), "text": text} for file, text in kept],
        }
        put_json("covey.logs/1", fields)
        return end(study)
    named = ", ".join(f"{name} {value!r}" for name, value in found.named.items())
    told = named or f"{found.value!r}"
    ended = f"told {told}" if found.status == "told" else found.status
    put(f"{trial_name(study, found)}: {ended}{', excluded' if found.excluded else ''}")
    for line in _trial_lines(study, found):
        put(line)
    for file, text in kept:
        put(f"--- {file}\n{text}")
    if not attempts:
        say("it was never run by covey, so there is no log.")
    elif not kept:
        say(
            f"nothing is kept of {several(len(attempts), 'attempt')} in {folder}; the logs of "
            "those that failed are, until somebody removes them."
        )
    return end(study)


def _trial_lines(study: Study, trial: Trial) -> Iterator[str]:
    """When it ran and for how long, why it is as it is, what it reported, and notes."""
    history, amended = study.history, _amended(study, trial)
    if trial.status in ("failed", "lost") or trial.excluded or trial.reason not in ("", *amended):
        yield f"reason: {trial.reason or 'nobody said'}"
    yield from (f"amended: {why}" for why in amended)
    if when := ", ".join(when_words(trial)):
        yield when
    if reports := history.reports(trial):
        last = reports[-1]
        yield f"{several(len(reports), 'report')}, the last {last.value:.6g} at step {last.step}"
    said = {"stopped"} if trial.reason.startswith("stopped early") else set()
    for name, value in history.metrics(trial).items():
        if name not in said:
            yield f"{name}: {value!r}"
    yield from (f"note: {note}" for note in history.notes(trial))


def when_words(trial: Trial) -> Iterator[str]:
    """When a trial was asked for, began and ended, and how long it took, as far as that is known.

    >>> from datetime import UTC, datetime
    >>> from covey.history import Point, Trial
    >>> list(when_words(Trial(0, Point(x=1), asked_at=datetime(2026, 1, 1, 9, 30, tzinfo=UTC))))
    ['asked 2026-01-01 09:30:00 UTC']
    """
    for word in ("asked", "started", "ended"):
        at = getattr(trial, f"{word}_at")
        if at is not None:
            yield f"{word} {at:%Y-%m-%d %H:%M:%S} UTC"
    if trial.seconds is not None:
        yield f"took {duration(trial.seconds)}"


def _kept(folder: Path) -> list[tuple[Path, str]]:
    """What an evaluation printed, as far as it is kept; the log of a command repeats the rest."""
    from covey.run.workdir import tail

    found = [(folder / name, tail(folder / name)) for name in ("stdout", "stderr", "log")]
    found = [(file, text) for file, text in found if text.strip()]
    return found[:-1] if len(found) > 1 and found[-1][0].name == "log" else found


def export(
    config: Config = FILE,
    out: Out = None,
    force: Force = False,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Every trial, as CSV, as a workbook (--out trials.xlsx) or as JSON.

    \b
    covey export
    covey export --out trials.csv --force
    covey export --json
    """
    settings = read_settings(config)
    output = None if out is None else Output(out, settings.files, force)
    if output is not None:
        output.require_sheet()
        output.require_free()
    study = look_back_at(settings)
    trials = study.history.trials
    cells = [_fate(study, trial) for trial in trials]
    if as_json:
        listed = [
            {
                **(trial_json(study, trial) or {}),
                **cells[trial.id],
                "notes": list(study.history.notes(trial)),
                "metrics": study.history.metrics(trial),
            }
            for trial in trials
        ]
        put_json("covey.export/1", {"trials": listed})
        if output is None:
            return end(study)
    named, rare = _named_columns(study), _rare_cells(study)
    added = export_columns(study.space.names, named)
    columns = _columns(study, added, [name for name, texts in rare.items() if texts])
    rows = [
        {name: getattr(trial, name) for name in COLUMNS}
        | _named_cells(study, trial)
        | {heading(name): value for name, value in trial.point.items()}
        | {added[name]: value for name, value in cells[trial.id].items()}
        | {added[name]: texts.get(trial.id) for name, texts in rare.items()}
        for trial in trials
    ]
    mark = mark_of(decimal) or "."
    if output is None:
        put_exactly(sheet_text(columns, rows, mark))
    else:
        output.write(sheet_bytes(output.path, columns, rows, mark))
        say(f"{several(len(rows), 'trial')} written to {out}")
    return end(study)


def _fate(study: Study, trial: Trial) -> dict[str, Any]:
    """Its batch, why it failed and the like, and when it was asked for, began and ended."""
    times = (trial.asked_at, trial.started_at, trial.ended_at)
    asked, started, ended = (
        None if at is None else at.isoformat(timespec="milliseconds") for at in times
    )
    return {
        "batch": study.history.batch(trial),
        "reason": trial.reason,
        "asked": asked,
        "started": started,
        "ended": ended,
        "seconds": None if trial.seconds is None else round(trial.seconds, 3),
    }


def _columns(study: Study, added: Mapping[str, str], rare: Sequence[str]) -> list[str]:
    """The columns of an export, those of `EXPORT_RARE` only as far as they are named."""
    shown = [added[name] for name in (*EXPORT_ONLY, *rare)]
    named = _named_columns(study)
    return [*COLUMNS, *named, *map(heading, study.space.names), *shown]


def _named_columns(study: Study) -> list[str]:
    """Columns of outcomes and records that have names of their own."""
    return [name for name in value_columns(study) if name not in COLUMNS]


def _named_cells(study: Study, trial: Trial) -> dict[str, Any]:
    told = {**study.history.metrics(trial), **trial.values}
    cells = {name: told.get(name) for name in _named_columns(study)}
    return {"value": told.get("value", trial.value), **cells}  # a goal may be called value


def _rare_cells(study: Study) -> dict[str, dict[int, str]]:
    """The cells of `EXPORT_RARE` by column and trial, where there is something to say."""
    history = study.history
    notes = {t.id: "; ".join(history.notes(t)) for t in history.trials}
    return {
        "excluded": {t.id: "excluded" for t in history.trials if t.excluded},
        "notes": {id: text for id, text in notes.items() if text},
    }


def report(
    config: Config = FILE,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("covey-report.html"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """One page about the study, as an HTML file that works offline.

    \b
    covey report
    covey report --out report.html --force
    covey report --json
    """
    from covey.report import card, page_path, write_page
    from covey.report.batches import Commands, python_commands

    settings = read_settings(config)
    output = Output(out, settings.files, force)
    if not as_json:  # checked before the work
        output.require_free()
        page_path(out)
    study = look_back_at(settings, model=True)
    history = study.history
    following = "covey tell results.csv" if history.pending else "covey ask"
    again = python_commands(history, history.batches, str(settings.journal)).again
    made = card(study, Commands((following,), again))
    if as_json:
        put_json("covey.report/1", made.to_json())
        return end(study)
    output.require_free()
    write_page(made, out)
    say(made.headline)
    put_exactly(str(out.resolve()))
    return end(study)


def trial_json(study: Study, trial: Trial | None) -> dict[str, Any] | None:
    """A trial as JSON."""
    if trial is None:
        return None
    return trial.to_json(partial(point_to_json, study.space))
