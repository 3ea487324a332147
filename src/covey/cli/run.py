"""`covey run`: evaluate batches with a command of the user's, here and in parallel."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import covey
from covey.cli.options import FILE, Batch, Config, DryRun, Json
from covey.cli.output import ExitCode, Stop, put, put_json, say, write_stderr
from covey.cli.settings import RunSettings, Settings, read_settings
from covey.cli.sheets import point_to_json
from covey.errors import StrategyError, several

if TYPE_CHECKING:
    from covey.run import Command, Progress
    from covey.run.api import Result
    from covey.run.loop import Plan
    from covey.study import Study

_QUIET = 10.0  # seconds between lines without a terminal


def run_command(
    command: Annotated[list[str] | None, typer.Argument(help="-- COMMAND with {x.NAME}")] = None,
    config: Config = FILE,
    batch: Batch = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Batches in all.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.0, help="Seconds per evaluation.")] = None,
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
    covey run --rounds 2 --batch 3 -- python square.py --lr={x.lr}
    covey run --dry-run -- python square.py --lr={x.lr}
    """
    from covey.run.api import carry_out

    settings = read_settings(config)
    said: dict[str, Any] = {"rounds": rounds, "workers": workers, "timeout": timeout}
    plan = replace(settings.run, **{name: v for name, v in said.items() if v is not None})
    plan = replace(
        plan,
        command=tuple(command or plan.command),
        asynchronous=asynchronous or plan.asynchronous,
    )
    if not plan.command:
        raise Stop(
            ExitCode.USAGE,
            "no command to run; write it after --, as in `covey run -- python train.py "
            "--lr={x.lr}`, or as command in the table [run].",
        )
    batch = batch or settings.batch
    program = _checked(settings, plan, batch)
    if dry_run:
        _dry_run(settings, plan, program, batch, as_json=as_json)
        return
    settings = replace(settings, journal=settings.journal.absolute())
    os.chdir(settings.path.absolute().parent)  # the command runs in the folder of covey.toml
    _require_program(program)
    study = settings.study()
    before = len(study.history.events)
    watched = replace(_plan(plan, batch), watch=Watch(quiet=as_json))
    result = carry_out(study, program, watched, plan.workers)
    _say_how_it_ended(study, before, plan.rounds * batch)
    _put_result(result, as_json)


def _put_result(result: Result, as_json: bool) -> None:
    """The best point; of several goals one in the middle of the front, and how many there are."""
    study, front = result.study, [] if result.study.outcomes.only else result.front
    if as_json:
        fields: dict[str, Any] = {"value": None if front else result.value}
        fields["point"] = point_to_json(study.space, result.point)
        fields |= {"values": dict(result.values)} if result.values else {}
        fields |= {"front": [trial.id for trial in front]} if front else {}
        put_json("covey.run/1", fields)
    else:
        shown = ", ".join(f"{name}={value}" for name, value in result.point.items())
        said = ", ".join(f"{n}={v!r}" for n, v in result.values.items()) or repr(result.value)
        put(f"{said} at {shown}")
    if front:
        say(f"{several(len(front), 'trial')} that no other beats: covey best")


def _checked(settings: Settings, plan: RunSettings, batch: int) -> Command:
    """The command, checked as far as possible before a journal is created."""
    from covey.run.api import as_call, check_workers

    _plan(plan, batch)
    command = covey.run.Command(plan.command, result=plan.result)
    call = as_call(command, settings.space, settings.outcomes)
    check_workers(plan.workers, call)
    return call if isinstance(call, covey.run.Command) else command


def _plan(plan: RunSettings, batch: int) -> Plan:
    from covey.run.loop import Plan

    return Plan(batch, plan.rounds, plan.asynchronous, plan.timeout)


def _require_program(command: Command) -> None:
    try:
        command.require_program()
    except StrategyError as error:
        raise Stop(ExitCode.CONFLICT, str(error)) from error


def _say_how_it_ended(study: Study, before: int, budget: int) -> None:
    """Say why a run evaluated nothing, or less than its budget."""
    history, whole = study.history, several(budget, "evaluation")
    if history.asked_count < budget and study.space.size is not None:
        say(f"the space is exhausted after {history.asked_count} of {whole}.")
    elif len(history.events) == before:
        say(f"the budget of {whole} was used up before; raise --rounds to go on.")


def _dry_run(
    settings: Settings, plan: RunSettings, command: Command, batch: int, *, as_json: bool
) -> None:
    example = covey.Study(settings.space, strategy="random", seed=0).ask(1)[0].point
    words = command.words(example, trial=0, seed=0, result="RESULT.json")
    if as_json:
        numbers = {"batch": batch, "rounds": plan.rounds, "workers": plan.workers}
        put_json("covey.run/1", {"dry_run": True, "command": words, **numbers})
    else:
        put(shlex.join(words))
    say(
        f"dry run: {several(plan.rounds, 'batch')} of {batch}, {plan.workers} at a time, each as "
        "above; nothing was run or recorded."
    )


@dataclass
class Watch:
    """Shows progress on stderr: one line that is rewritten, or a line now and then."""

    quiet: bool = False
    _last: float = field(default=0.0, init=False)

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""
        if self.quiet:
            return
        live = sys.stderr.isatty()
        now = time.monotonic()
        over = progress.done == progress.total
        if not live and now - self._last < _QUIET and not over:
            return
        self._last = now
        best = "-" if progress.best is None else f"{progress.best:.6g}"
        left = "" if progress.left is None else f", about {progress.left:.0f} s left"
        line = (
            f"{progress.done}/{progress.total} done, {progress.running} running, "
            f"{progress.failed} failed, best {best}{left}; waiting for {progress.waiting_for}"
        )
        if live:
            write_stderr(f"\r\x1b[K{line}" + ("\n" if over else ""))
        else:
            say(line)
