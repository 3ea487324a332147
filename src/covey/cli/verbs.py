"""The commands that do something: init, ask, tell, run, next.

Heavy imports happen inside, so that help is quick.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from covey.cli.root import (
    Batch,
    Choices,
    Config,
    DryRun,
    Integers,
    Json,
    Labels,
    Out,
    PoolFile,
    Reals,
    Strategy,
    ValueColumn,
    app,
    parameters_in,
)

_FILE = Path("covey.toml")


class Goal(StrEnum):
    """Which way is better."""

    max = "max"
    min = "min"


@app.command()
def init(
    config: Config = _FILE,
    real: Reals = [],
    integer: Integers = [],
    choice: Choices = [],
    pool: PoolFile = None,
    label: Labels = [],
    goal: Annotated[Goal, typer.Option(help="max or min.")] = Goal.max,
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Points of a batch.")] = 8,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all randomness; else drawn.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: Json = False,
    dry_run: DryRun = False,
    command: Annotated[list[str] | None, typer.Argument(help="-- COMMAND for `covey run`")] = None,
) -> None:
    """Write a commented covey.toml; without parameters, ask for them.

    \b
    covey init --real lr=1e-5:0.1:log --integer layers=1:8 --choice opt=adam,sgd
    covey init --force --real x=0:1 --goal min -- python square.py --x={x.x}
    covey init --dry-run --pool candidates.csv --batch 12
    covey init --dry-run --pool candidates.csv --label id
    """
    from covey.cli.init import Flags, InitOptions
    from covey.cli.init import init as write

    flags = Flags(tuple(real), tuple(integer), tuple(choice))
    words = tuple(command or ())
    options = InitOptions(
        flags, pool, tuple(label), goal.value, batch, seed, words, as_json, dry_run, force
    )
    write(config, options)


@app.command()
def ask(
    config: Config = _FILE,
    batch: Batch = None,
    new: Annotated[bool, typer.Option("--new", help="More, while a batch is open.")] = False,
    strategy: Strategy = None,
    fix: Annotated[list[str], typer.Option(metavar="NAME=VALUE", help="Hold a parameter.")] = [],
    out: Out = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Print the open batch again; or choose the next one, if all of it is told.

    \b
    covey ask
    covey ask --new --batch 4 --fix opt=adam
    covey ask --out batch.csv
    covey ask --json --dry-run
    """
    from covey.cli.ask import AskOptions
    from covey.cli.ask import ask as answer
    from covey.cli.settings import read_settings

    options = AskOptions(batch, new, strategy, tuple(fix), out, as_json, dry_run)
    answer(read_settings(config), options)


@app.command()
def tell(
    results: Annotated[list[str], typer.Argument(help="ID=VALUE ..., a CSV file, or - for stdin")],
    config: Config = _FILE,
    value: ValueColumn = "value",
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Record results: all of them or none; what is recorded already is passed over.

    A sheet has the columns id and value, perhaps sem; an empty value is still to come, the word
    failed is a failure. A sem that was not known before is added.

    \b
    covey tell 0=0.81 1=failed
    covey tell batch.csv
    covey tell --dry-run batch.csv
    """
    from covey.cli.settings import read_settings
    from covey.cli.tell import TellOptions
    from covey.cli.tell import tell as record

    record(read_settings(config), results, TellOptions(value, as_json, dry_run))


@app.command()
def run(
    command: Annotated[list[str] | None, typer.Argument(help="-- COMMAND with {x.NAME}")] = None,
    config: Config = _FILE,
    batch: Batch = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Batches in all.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.0, help="Seconds, from the start.")] = None,
    asynchronous: Annotated[
        bool, typer.Option("--async", help="Ask again as soon as a worker is free.")
    ] = False,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Evaluate batches with a command; the same command goes on after a crash.

    The value is the last line the command prints. Placeholders: {x.NAME}, {id}, {seed}, {result}.
    No shell is involved. Without {x.NAME} the point comes as JSON on stdin.

    \b
    covey run --rounds 2 --batch 3 -- python square.py --x={x.lr}
    covey run --dry-run -- python square.py --x={x.lr}
    """
    from covey.cli.evaluate import RunOptions, evaluate
    from covey.cli.settings import read_settings

    words = tuple(command or ())
    options = RunOptions(words, batch, rounds, workers, timeout, asynchronous, as_json, dry_run)
    evaluate(read_settings(config), options)


@app.command()
def next(
    results: Annotated[
        list[str], typer.Option("--in", metavar="FILE", help="CSV of results; - for stdin.")
    ] = [],
    config: Config = _FILE,
    real: Reals = [],
    integer: Integers = [],
    choice: Choices = [],
    pool: PoolFile = None,
    label: Labels = [],
    value: ValueColumn = "value",
    batch: Batch = None,
    goal: Annotated[Goal | None, typer.Option(help="max or min.")] = None,
    strategy: Strategy = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all randomness.")] = None,
    out: Out = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Files only: results in, the next batch out; no journal.

    The space comes from the parameters given here, from --pool, or from covey.toml with all it
    says. Rows without a value count as under way; --in may be given several times.

    \b
    covey next --in results.csv --real lr=1e-5:0.1:log --batch 96 --out plate.csv
    covey next --in results.csv --value value --batch 4
    covey next --pool candidates.csv --batch 3
    covey next --pool candidates.csv --label id --batch 3
    """
    from covey.cli.init import Flags
    from covey.cli.next import NextOptions, PoolFlags, next_batch, settings_of

    flags = Flags(tuple(real), tuple(integer), tuple(choice))
    wanted = {
        "goal": goal.value if goal else None,
        "batch": batch,
        "strategy": strategy,
        "seed": seed,
    }
    settings = settings_of(flags, PoolFlags(pool, tuple(label)), config, wanted)
    order = parameters_in(sys.argv)
    next_batch(settings, NextOptions(tuple(results), value, out, as_json, dry_run, order))
