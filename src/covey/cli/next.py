"""`covey next`: results in a file, the next batch in a file; no journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from covey.cli import sheets
from covey.cli.exits import ExitCode, Stop
from covey.cli.init import Flags
from covey.cli.points import number_from_text, point_from_text, point_to_json
from covey.cli.settings import Settings, read_settings
from covey.cli.sheets import Row
from covey.cli.tell import FAILED
from covey.cli.voice import put_exactly, put_json, say
from covey.errors import SpaceError, did_you_mean, several
from covey.history import Trial
from covey.space import Pool, Space
from covey.study import Study


@dataclass(frozen=True)
class NextOptions:
    """What `covey next` was told."""

    results: str | None
    value: str
    out: Path | None
    json: bool
    dry_run: bool


def settings_of(
    flags: Flags, pool: Path | None, config: Path, wanted: Mapping[str, Any]
) -> Settings:
    """A study of the flags, of a pool, or of the study's file; what else is wanted goes before."""
    parameters = flags.parameters()
    if parameters and pool is not None:
        raise Stop(ExitCode.USAGE, "give parameters or a pool, not both.")
    if parameters:
        settings = Settings(config, Space(parameters), seed=0)
    elif pool is not None:
        settings = Settings(config, Pool(pool), seed=0)
    else:
        settings = read_settings(config)
    return replace(settings, **{name: v for name, v in wanted.items() if v is not None})


def next_batch(settings: Settings, options: NextOptions) -> None:
    """Read results, choose the next batch, write it."""
    if options.out is not None:
        read = [] if options.results in (None, "-") else [Path(str(options.results))]
        sheets.require_free(options.out, [*read, *settings.files])
    study = Study(settings.space, settings.goal, settings.strategy, settings.seed or 0)
    if options.results is not None:
        told, waiting = _read(study, options.results, options.value)
        rows = several(waiting, "row")
        say(f"{several(told, 'result')} and {rows} without one read from {options.results}")
    say(f"choosing {several(settings.batch, 'point')}, goal {settings.goal} ...")
    trials = study.ask(settings.batch)
    _write(study, trials, options)


def _read(study: Study, path: str, value: str) -> tuple[int, int]:
    """Rows with a value are results; rows without one are under way."""
    names, rows = sheets.read(path)
    if value not in names:
        hint = did_you_mean(value, names)
        raise Stop(
            ExitCode.INVALID,
            f"{path} has no column {value!r}; it has {', '.join(names)}. Name it with --value."
            f"{hint}",
        )
    told: list[tuple[dict[str, object], float]] = []
    waiting: list[dict[str, object]] = []
    failed: list[dict[str, object]] = []
    for row in rows:
        point = _point(study.space, row, value)
        if row.cells[value].lower() in FAILED or row.cells.get("status") == "failed":
            failed.append(point)
        elif row.cells[value]:
            told.append((point, _number(row, value)))
        else:
            waiting.append(point)
    if told:
        study.add([point for point, _ in told], [number for _, number in told])
    if failed:
        study.fail(study.enqueue(failed))
    if waiting:
        study.enqueue(waiting)
    return len(told), len(waiting)


def _point(space: Space | Pool, row: Row, value: str) -> dict[str, object]:
    cells = {k: v for k, v in row.cells.items() if k != value}
    cells |= {n: cells[f"point.{n}"] for n in space.names if f"point.{n}" in cells}
    try:
        return point_from_text(space, cells)
    except SpaceError as error:
        raise row.error(str(error)) from error


def _number(row: Row, value: str) -> float:
    try:
        return number_from_text(row.cells[value])
    except ValueError as error:
        raise row.error(f"{value} is {row.cells[value]!r}, which is no number.") from error


def _write(study: Study, trials: Sequence[Trial], options: NextOptions) -> None:
    names = list(study.space.names)
    if options.json:
        points = [point_to_json(study.space, trial.point) for trial in trials]
        put_json("covey.next/1", {"points": points})
        return
    taken = (options.value,)
    rows = [{sheets.heading(n, taken): v for n, v in t.point.items()} for t in trials]
    text = sheets.write([*(sheets.heading(n, taken) for n in names), options.value], rows)
    if options.out is None or options.dry_run:
        put_exactly(text)
    else:
        sheets.save(options.out, text)
        count = several(len(rows), "point")
        say(f"{count} written to {options.out}; fill in the column {options.value}.")
