"""`covey run`: evaluate batches with a command of the user's, here and in parallel."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import covey
from covey.cli.options import FILE, Batch, Config, DryRun, Json
from covey.cli.output import ExitCode, Stop, printable, put, put_json, say, write_stderr
from covey.cli.settings import Settings, read_settings
from covey.errors import StrategyError, several
from covey.sheets.points import point_to_json

if TYPE_CHECKING:
    from covey.history import History
    from covey.run import Command, Progress
    from covey.run.api import Crew, Result
    from covey.run.plan import Plan

_QUIET = 10.0  # seconds between lines without a terminal


def run_command(
    command: Annotated[list[str] | None, typer.Argument(help="-- COMMAND with {x.NAME}")] = None,
    config: Config = FILE,
    batch: Batch = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Batches in all.")] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="Evaluations in all, instead of batches.")
    ] = None,
    hours: Annotated[float | None, typer.Option(help="Begin nothing more after so long.")] = None,
    cost: Annotated[
        str | None, typer.Option(metavar="NAME[=MOST]", help="What is spent, and how much may be.")
    ] = None,
    target: Annotated[
        list[str], typer.Option(metavar="VALUE|NAME=VALUE", help="A value that is good enough.")
    ] = [],
    plateau: Annotated[
        int | None, typer.Option(min=1, help="Evaluations that brought nothing better.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time.")] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="N|A,B,C", help="How many GPUs, or which; a slot each.")
    ] = None,
    per_gpu: Annotated[int | None, typer.Option(min=1, help="Evaluations on each GPU.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.0, help="Seconds per evaluation.")] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, help="Further tries of what a signal killed (1).")
    ] = None,
    asynchronous: Annotated[
        bool, typer.Option("--async", help="Ask again as soon as a worker is free.")
    ] = False,
    stopping: Annotated[
        str | None, typer.Option(metavar="asha|median", help="End early what does badly.")
    ] = None,
    join: Annotated[
        bool, typer.Option("--join", help="Evaluate beside other runs of the journal.")
    ] = False,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Evaluate batches with a command; the same command goes on after a crash.

    The value is the last line the command prints. Placeholders: {x.NAME}, {id}, {seed}, {slot},
    {result}. No shell is involved. Without {x.NAME} the point comes as JSON on stdin. With --gpus
    each evaluation has a GPU to itself (CUDA_VISIBLE_DEVICES), or its share with --per-gpu. The
    first limit that is reached ends the run: nothing more begins, and what runs is waited for. With
    --join several runs, on machines that share the folder, evaluate the same batches together.

    \b
    covey run --rounds 2 --batch 3 -- python square.py --lr={x.lr}
    covey run --dry-run -- python square.py --lr={x.lr}
    covey run --dry-run --gpus 8 --per-gpu 2 -- python square.py --lr={x.lr}
    covey run --hours 8 --target 0.95 --plateau 40 -- python square.py --lr={x.lr}
    covey run --join --rounds 2 --batch 3 -- python square.py --lr={x.lr}
    """
    from covey.run.api import carry_out

    settings = read_settings(config)
    said: dict[str, Any] = {"timeout": timeout, "gpus": gpus, "per_gpu": per_gpu}
    said |= {"evaluations": evaluations, "hours": hours, "cost": _cost(cost)}
    said |= {"target": _target(target), "plateau": plateau, "stopping": stopping}
    said |= {"retries": retries, "asynchronous": asynchronous or None}
    given = {name: value for name, value in said.items() if value is not None}
    command = command or list(settings.run.command)
    if not command:
        raise Stop(
            ExitCode.USAGE,
            "no command to run; write it after --, as in `covey run -- python train.py "
            "--lr={x.lr}`, or as command in the table [run].",
        )
    plan = _plan(settings, batch or settings.batch, rounds, given)
    program, crew = _checked(settings, command, plan, workers or settings.run.workers)
    if dry_run:
        _dry_run(settings, plan, program, crew.slots, as_json=as_json)
        return
    settings = replace(settings, journal=settings.journal.absolute())
    os.chdir(settings.path.absolute().parent)  # the command runs in the folder of covey.toml
    _require_program(program)
    study = settings.study()
    before = study.history
    watched = replace(plan, watch=Watch(quiet=as_json), join=join)
    result = carry_out(study, program, watched, crew)
    _say_how_it_ended(result, before, watched)
    _put_result(result, as_json)


def _put_result(result: Result, as_json: bool) -> None:
    """The best point; of several goals one in the middle of the front, and how many there are."""
    study, front = result.study, [] if result.study.outcomes.only else result.front
    if as_json:
        fields: dict[str, Any] = {"value": None if front else result.value}
        fields["point"] = point_to_json(study.space, result.point)
        fields |= {"values": dict(result.values)} if result.values else {}
        fields |= {"front": [trial.id for trial in front]} if front else {}
        fields |= {"ended": result.ended} if result.ended else {}
        put_json("covey.run/1", fields)
    else:
        shown = ", ".join(f"{name}={value}" for name, value in result.point.items())
        said = ", ".join(f"{n}={v!r}" for n, v in result.values.items()) or repr(result.value)
        put(f"{said} at {shown}")
    if front:
        say(f"{several(len(front), 'trial')} that no other beats: covey best")


def _checked(
    settings: Settings, argv: Sequence[str], plan: Plan, workers: int | None
) -> tuple[Command, Crew]:
    """The command and who runs it, checked as far as possible before a journal is created."""
    from covey.run.api import as_call, crew_of, require_reports

    command = covey.run.Command(argv, result=settings.run.result)
    call = as_call(command, settings.space, settings.outcomes)
    plan.check(settings.outcomes)
    require_reports(plan, workers, settings.outcomes)
    crew = crew_of(workers, plan, call)
    return call if isinstance(call, covey.run.Command) else command, crew


def _plan(settings: Settings, batch: int, rounds: int | None, given: Mapping[str, Any]) -> Plan:
    """The plan of the file with the options of the command line.

    Rounds on the command line replace the evaluations of the file, and vice versa.
    """
    from covey.run.plan import Plan

    options = dict(settings.run.options)
    if rounds is not None:
        options.pop("evaluations", None)
    elif "evaluations" not in given:
        rounds = settings.run.rounds
    return Plan.of(batch, rounds, {**options, **given})


def _cost(said: str | None) -> str | dict[str, float] | None:
    """What is spent, from dollars=50 or dollars."""
    if said is None or "=" not in said:
        return said
    name, _, most = said.rpartition("=")
    return {name: _number(most, "--cost", said)}


def _target(said: Sequence[str]) -> float | dict[str, float] | None:
    """A value that is good enough, from 0.9 or from yield=90 for each goal."""
    if not said:
        return None
    if len(said) == 1 and "=" not in said[0]:
        return _number(said[0], "--target", said[0])
    pairs = [(*one.rpartition("="), one) for one in said]
    return {name: _number(value, "--target", word) for name, _, value, word in pairs}


def _number(text: str, option: str, said: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise Stop(ExitCode.USAGE, f"{option} {said}: {text!r} is no number.") from error


def _require_program(command: Command) -> None:
    try:
        command.require_program()
    except StrategyError as error:
        raise Stop(ExitCode.CONFLICT, str(error)) from error


def _say_how_it_ended(result: Result, before: History, plan: Plan) -> None:
    """Say why a run evaluated nothing, or less than its budget, and what it has spent."""
    from covey.run.budget import spent

    study, budget = result.study, plan.total
    history, whole = study.history, several(budget or 0, "evaluation")
    if plan.costly:
        total, _, unknown = spent(history, plan.costly)
        missing = f", without {several(unknown, 'result')} that did not say" if unknown else ""
        say(f"{total:g} {plan.costly} spent{missing}.")
    if result.ended:
        say(f"ended: {result.ended}.")
    elif budget is None or (history.asked_count < budget and study.space.size is not None):
        of = "" if budget is None else f" of {whole}"
        say(f"the space is exhausted after {history.asked_count}{of}.")
    elif not history.changed_since(before):
        more = "--evaluations" if plan.evaluations else "--rounds"
        say(f"the budget of {whole} was used up before; raise {more} to go on.")


def _dry_run(
    settings: Settings, plan: Plan, command: Command, workers: int | None, *, as_json: bool
) -> None:
    example = covey.Study(settings.space, strategy="random", seed=0).ask(1)[0].point
    words = command.words(example, trial=0, seed=0, result="RESULT.json")
    total, batch = plan.total, plan.batch
    if as_json:
        rounds = None if total is None else -(-total // batch)
        numbers = {"batch": batch, "rounds": rounds, "evaluations": total, "workers": workers}
        put_json("covey.run/1", {"dry_run": True, "command": words, **numbers})
    else:
        put(shlex.join(words))
    many = "batches" if total is None else several(-(-total // batch), "batch")
    say(
        f"dry run: {many} of {batch}, {workers} at a time, each as above; nothing was run or "
        "recorded."
    )


@dataclass
class Watch:
    """Shows progress on stderr: one line that is rewritten, or a line now and then."""

    quiet: bool = False
    _last: float = field(default=0.0, init=False)

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""
        from covey.run.bar import progress_words

        if self.quiet:
            return
        live = sys.stderr.isatty()
        now = time.monotonic()
        over = progress.done == progress.total
        if not live and now - self._last < _QUIET and not over:
            return
        self._last = now
        line = printable(progress_words(progress, waiting=True))
        if live:
            line = line[: shutil.get_terminal_size().columns - 1]  # one that wraps is not rewritten
            write_stderr(f"\r\x1b[K{line}" + ("\n" if over else ""))
        else:
            say(line)
