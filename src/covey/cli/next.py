"""`covey next`: read results from files and write the next batch to a file; no journal."""

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
from covey.cli import sheets
from covey.cli.ask import reasons_of
from covey.cli.init import parameters_of, require_one_space, space_lines
from covey.cli.mixtures import mixtures_from, with_parts
from covey.cli.options import (
    FILE,
    Batch,
    Choices,
    Config,
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
    Strategy,
    ValueColumn,
    parameters_in,
)
from covey.cli.outcomes import FAILED
from covey.cli.output import ExitCode, Output, Stop, put_exactly, put_json, say
from covey.cli.settings import Settings, read_settings
from covey.cli.sheets import SheetRow, point_from_text, point_to_json
from covey.errors import SpaceError, did_you_mean, several

if TYPE_CHECKING:
    from covey.space import Mixture, Parameter, Pool, Space
    from covey.study import Study


@dataclass
class _Rows:
    """The rows of the files of results: with a value, failed, or pending (no value yet)."""

    columns: dict[str, None] = field(default_factory=dict)  # in order
    told: list[tuple[dict[str, object], float]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)
    waiting: list[dict[str, object]] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many have a value, failed, and are pending."""
        return len(self.told), len(self.failed), len(self.waiting)


def next(
    results: Annotated[
        list[str], typer.Option("--in", metavar="FILE", help="CSV of results; - for stdin.")
    ] = [],
    config: Config = FILE,
    real: Reals = [],
    integer: Integers = [],
    choice: Choices = [],
    mixture: Mixtures = [],
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
    explain: Explain = False,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Files only: results in, the next batch out; no journal.

    The space comes from the parameters given here, from --pool, or from covey.toml with all it
    says. Rows without a value count as pending; --in may be given several times.

    \b
    covey next --in results.csv --real lr=1e-5:0.1:log --batch 96 --out plate.csv
    covey next --in results.csv --value value --batch 4
    covey next --mixture 'water+ethanol=1:step=0.01' --batch 4
    covey next --pool candidates.csv --batch 3
    covey next --pool candidates.csv --label id --batch 3
    """
    roles = {"labels": tuple(label), "log": tuple(log)}
    mixtures = mixtures_from(mixture)
    parameters = with_parts(parameters_of(real, integer, choice, features), mixtures)
    settings = _settings(parameters, mixtures, pool, roles, config)
    wanted: dict[str, Any] = {
        "goal": goal.value if goal else None,
        "batch": batch,
        "strategy": strategy,
        "seed": seed,
    }
    settings = replace(settings, **{name: v for name, v in wanted.items() if v is not None})
    output = None if out is None or dry_run else _output(settings, results, out)
    for line in space_lines(settings.space):
        say(line)
    found = _read(settings.space, results, value)
    columns = _columns(settings.space, found, value)
    if output is not None:
        # Whether the batch is the same is known only then; filled-in values are checked now.
        blank = partial(sheets.is_blank, columns=columns, value=value)
        replace(output, ours=blank).require_free()
    study = _study(settings, found)
    say(f"choosing {several(settings.batch, 'point')}, goal {settings.goal} ...")
    trials = study.ask(settings.batch)
    why = reasons_of(study.history, trials)
    rows = [{_column(n, columns): v for n, v in t.point.items()} for t in trials]
    text = sheets.sheet_text(columns, rows)
    if output is not None:
        output.write(text)
        count = several(len(rows), "point")
        say(f"{count} written to {output.path}; fill in the column {value}.")
    if as_json:
        points = [point_to_json(study.space, trial.point) for trial in trials]
        put_json("covey.next/1", {"points": points, "why": why})
    elif output is None:
        put_exactly(text)
    for place, said in enumerate(why if explain else (), start=1):
        say(f"point {place}: {said}")


def _settings(
    parameters: dict[str, Parameter],
    mixtures: Sequence[Mixture],
    pool: Path | None,
    roles: Mapping[str, Sequence[str]],
    config: Path,
) -> Settings:
    """Settings from the flags, from a pool, or from covey.toml."""
    require_one_space(parameters, pool, **roles)
    if parameters:
        return Settings(config, covey.Space(parameters, where=mixtures), seed=0)
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


def _output(settings: Settings, results: Sequence[str], out: Path) -> Output:
    """The sheet to write. Without a journal its content could be lost: none is replaced."""
    read = [Path(path) for path in results if path != "-"]
    output = Output(out, (*read, *settings.files))
    output.require_place()
    output.require_csv()
    return output


def _read(space: Space | Pool, results: Sequence[str], value: str) -> _Rows:
    """Read the files: rows with a value are results, rows without one are pending."""
    found = _Rows()
    places = [path if path == "-" else os.path.realpath(path) for path in results]
    for path, place in zip(results, places, strict=True):
        if places.count(place) > 1:
            raise Stop(ExitCode.USAGE, f"{path} is given twice; its results would count twice.")
        before = found.counts
        names, rows = sheets.read_sheet(path)
        _require_value(names, path, value)
        found.columns |= dict.fromkeys(names)
        for row in rows:
            _classify(found, row, _point(space, row, value), value)
        new = [a - b for a, b in zip(found.counts, before, strict=True)]
        told, failed, waiting = map(several, new, ("result", "failure", "row"))
        say(f"{told}, {failed} and {waiting} without one read from {path}")
    known = _known(space, found, value)
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


def _classify(found: _Rows, row: SheetRow, point: dict[str, object], value: str) -> None:
    if row.text(value).lower() in FAILED or row.text("status") == "failed":
        found.failed.append(point)
    elif row.text(value):
        found.told.append((point, row.number(value, "; write failed if it crashed")))
    else:
        found.waiting.append(point)


def _known(space: Space | Pool, found: _Rows, value: str) -> set[str]:
    """The columns that are recognised; of those that `export` writes, all but sem."""
    own = {value, *sheets.COLUMNS} - {"sem"}
    own |= {*space.names, *(f"point.{name}" for name in space.names)}
    return own | sheets.exported(found.columns, space.names)


def _point(space: Space | Pool, row: SheetRow, value: str) -> dict[str, object]:
    cells = {k: v for k, v in row.cells.items() if k != value}
    cells |= {n: cells[f"point.{n}"] for n in space.names if f"point.{n}" in cells}
    try:
        return point_from_text(space, cells)
    except SpaceError as error:
        raise row.error(str(error)) from error


def _columns(space: Space | Pool, found: _Rows, value: str) -> list[str]:
    """The columns of the files in their order, so that rows can be appended; then missing ones."""
    said = [name for name in parameters_in(sys.argv) if name in space.names]
    names = dict.fromkeys([*said, *space.names])
    given = [sheets.heading(name, (value,)) for name in names]
    lacking = [
        column
        for name, column in zip(names, given, strict=True)
        if column not in found.columns and f"point.{name}" not in found.columns
    ]
    return list(dict.fromkeys([*found.columns, *lacking, value]))


def _column(name: str, columns: Sequence[str]) -> str:
    """The column of a parameter in this sheet."""
    return f"point.{name}" if f"point.{name}" in columns else name
