"""`covey next`: results in files, the next batch in a file; no journal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from covey.cli import sheets
from covey.cli.init import Flags, spoken
from covey.cli.output import ExitCode, Output, Stop, put_exactly, put_json, say
from covey.cli.settings import Settings, read_settings
from covey.cli.sheets import Row, point_from_text, point_to_json
from covey.cli.tell import FAILED
from covey.errors import SpaceError, did_you_mean, several
from covey.space import Pool, Space
from covey.study import Study


@dataclass(frozen=True)
class NextOptions:
    """What `covey next` was told."""

    results: tuple[str, ...]
    value: str
    out: Path | None
    json: bool
    dry_run: bool
    order: tuple[str, ...] = ()  # of the parameters, as the command line gives them


@dataclass(frozen=True)
class PoolFlags:
    """A pool as flags give it."""

    file: Path | None = None
    labels: tuple[str, ...] = ()


@dataclass
class _Found:
    """What the files of results hold: rows with a value, failures, and rows under way."""

    columns: dict[str, None] = field(default_factory=dict)  # in order
    told: list[tuple[dict[str, object], float]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)
    waiting: list[dict[str, object]] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many of each."""
        return len(self.told), len(self.failed), len(self.waiting)


def settings_of(flags: Flags, pool: PoolFlags, config: Path, wanted: Mapping[str, Any]) -> Settings:
    """A study of the flags, of a pool, or of the study's file; what else is wanted goes before."""
    parameters = flags.parameters()
    if parameters and pool.file is not None:
        raise Stop(ExitCode.USAGE, "give parameters or a pool, not both.")
    if pool.labels and pool.file is None:
        raise Stop(ExitCode.USAGE, "--label names a column of a pool; give it with --pool FILE.")
    if parameters:
        settings = Settings(config, Space(parameters), seed=0)
    elif pool.file is not None:
        settings = Settings(config, Pool(pool.file, labels=pool.labels), seed=0)
    else:
        settings = read_settings(config)
    return replace(settings, **{name: v for name, v in wanted.items() if v is not None})


def next_batch(settings: Settings, options: NextOptions) -> None:
    """Read results, choose the next batch, write it."""
    output = _output(settings, options)
    for line in spoken(settings.space):
        say(line)
    found = _read(settings.space, options)
    columns = _columns(settings.space, found, options)
    if output is not None:
        # Whether it would be the same plate is known only then; what is filled in, now.
        blank = partial(sheets.is_blank, columns=columns, value=options.value)
        replace(output, ours=blank).require_free()
    study = Study(settings.space, settings.goal, settings.strategy, settings.seed or 0)
    if found.told:
        study.add([point for point, _ in found.told], [number for _, number in found.told])
    if found.failed:
        study.fail(study.enqueue(found.failed))
    if found.waiting:
        study.enqueue(found.waiting)
    say(f"choosing {several(settings.batch, 'point')}, goal {settings.goal} ...")
    trials = study.ask(settings.batch)
    if options.json:
        points = [point_to_json(study.space, trial.point) for trial in trials]
        put_json("covey.next/1", {"points": points})
        return
    rows = [{_column(n, columns): v for n, v in t.point.items()} for t in trials]
    text = sheets.write(columns, rows)
    if output is None:
        put_exactly(text)
    else:
        output.write(text)
        count = several(len(rows), "point")
        say(f"{count} written to {output.path}; fill in the column {options.value}.")


def _output(settings: Settings, options: NextOptions) -> Output | None:
    """The sheet to write. No journal knows what was in one: none is replaced by another."""
    if options.out is None or options.dry_run or options.json:
        return None
    read = [Path(path) for path in options.results if path != "-"]
    output = Output(options.out, (*read, *settings.files))
    output.require_place()
    output.require_csv()
    return output


def _read(space: Space | Pool, options: NextOptions) -> _Found:
    """Rows with a value are results; rows without one are under way."""
    found = _Found()
    places = [path if path == "-" else os.path.realpath(path) for path in options.results]
    for path, place in zip(options.results, places, strict=True):
        if places.count(place) > 1:
            raise Stop(ExitCode.USAGE, f"{path} is given twice; its results would count twice.")
        before = found.counts
        names, rows = sheets.read(path)
        _require_value(names, path, options.value)
        found.columns |= dict.fromkeys(names)
        for row in rows:
            _sort_in(found, row, _point(space, row, options.value), options.value)
        new = [a - b for a, b in zip(found.counts, before, strict=True)]
        told, failed, waiting = map(several, new, ("result", "failure", "row"))
        say(f"{told}, {failed} and {waiting} without one read from {path}")
    known = _known(space, found, options.value)
    unknown = [name for name in found.columns if name not in known]
    if unknown:
        say(f"not used: {', '.join(unknown)}. No parameter has this name.")
    return found


def _require_value(names: Sequence[str], path: str, value: str) -> None:
    if value not in names:
        hint = did_you_mean(value, names)
        raise Stop(
            ExitCode.INVALID,
            f"{path} has no column {value!r}; it has {', '.join(names)}. Name it with --value."
            f"{hint}",
        )


def _sort_in(found: _Found, row: Row, point: dict[str, object], value: str) -> None:
    if row.text(value).lower() in FAILED or row.text("status") == "failed":
        found.failed.append(point)
    elif row.text(value):
        found.told.append((point, row.number(value, "; write failed if it crashed")))
    else:
        found.waiting.append(point)


def _known(space: Space | Pool, found: _Found, value: str) -> set[str]:
    """The columns that mean something here; of those that `export` writes, all but sem."""
    own = {value, *sheets.COLUMNS} - {"sem"}
    own |= {*space.names, *(f"point.{name}" for name in space.names)}
    return own | sheets.exported(found.columns, space.names)


def _point(space: Space | Pool, row: Row, value: str) -> dict[str, object]:
    cells = {k: v for k, v in row.cells.items() if k != value}
    cells |= {n: cells[f"point.{n}"] for n in space.names if f"point.{n}" in cells}
    try:
        return point_from_text(space, cells)
    except SpaceError as error:
        raise row.error(str(error)) from error


def _columns(space: Space | Pool, found: _Found, options: NextOptions) -> list[str]:
    """Those of the files, in their order, so that rows can be put below; then what they lack."""
    said = [name for name in options.order if name in space.names]
    names = dict.fromkeys([*said, *space.names])
    given = [sheets.heading(name, (options.value,)) for name in names]
    lacking = [
        column
        for name, column in zip(names, given, strict=True)
        if column not in found.columns and f"point.{name}" not in found.columns
    ]
    return list(dict.fromkeys([*found.columns, *lacking, options.value]))


def _column(name: str, columns: Sequence[str]) -> str:
    """The column of a parameter in this sheet."""
    return f"point.{name}" if f"point.{name}" in columns else name
