"""Evaluate a study to the end of a budget: `run`, `maximize` and `minimize`.

The same call resumes a run that was killed. `engine_for` makes an engine of the ``workers`` that a
user gives.
"""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np

from covey.disk import remove_staged
from covey.errors import (
    CoveyError,
    EvaluationError,
    StrategyError,
    WorkFolderError,
    several,
)
from covey.gp import GP
from covey.history import Began, Ended, Trial
from covey.learn import Goal
from covey.log.running import Runs
from covey.outcomes import Outcomes, middle
from covey.run.bar import with_bar
from covey.run.command import Command
from covey.run.dask import DaskEngine, is_client
from covey.run.dispatcher import Dispatcher
from covey.run.local import LocalEngine
from covey.run.loop import Interrupt, Loop
from covey.run.plan import Plan, RunOptions, require_known
from covey.run.remote import FuturesEngine
from covey.run.slots import gpu_slots
from covey.run.standing import last_attempts
from covey.run.stopping import rule_of
from covey.run.task import Call, Engine, Function, pack, retries_of
from covey.selection import Strategy
from covey.space import Pool, Space
from covey.study import Study

if TYPE_CHECKING:
    from distributed import Client

    Workers: TypeAlias = int | Executor | Engine | Client


# Workers: a number of processes, an executor, a Dask client or an engine, made into an engine.

_log = logging.getLogger("covey")
_USUAL = 4  # workers, unless somebody says


def check_workers(workers: object, call: Call) -> None:
    """Raise StrategyError unless these workers can evaluate the call."""
    if isinstance(workers, Executor) and not isinstance(workers, ProcessPoolExecutor):
        return
    if isinstance(workers, bool | str) or not (
        isinstance(workers, int | Executor | Engine) or is_client(workers)
    ):
        raise StrategyError(
            "workers is a whole number >= 1, an executor of concurrent.futures, a Dask client, or "
            f"an engine such as covey.run.RayEngine(); got {workers!r}."
        )
    if isinstance(workers, int) and workers < 1:
        raise StrategyError(f"workers must be a whole number >= 1; got {workers!r}.")
    if not isinstance(workers, FuturesEngine):
        pack(call)


@dataclass(frozen=True, slots=True)
class Crew:
    """Who evaluates, and the GPU of each slot, if there are some."""

    workers: Workers
    gpus: tuple[str, ...] = ()

    @property
    def slots(self) -> int | None:
        """How many evaluate at once, if that is known."""
        return self.workers if isinstance(self.workers, int) else None


def crew_of(workers: Workers | None, plan: Plan, call: Call) -> Crew:
    """The workers that were given, checked; without, one for each slot, or four.

    Raises:
        StrategyError: They cannot evaluate the call, or are more than the GPUs have slots.
    """
    if workers is not None:
        check_workers(workers, call)
    _require_numbers(workers, call)
    if plan.gpus is None:
        if plan.per_gpu != 1:
            raise StrategyError(f"per_gpu={plan.per_gpu!r} needs gpus, such as gpus=8.")
        return Crew(_USUAL if workers is None else workers)
    if workers is not None and not isinstance(workers, int):
        raise StrategyError(
            f"gpus are those of this machine, and go with a number of workers; got {workers!r}. On "
            "a cluster ask for resources: RayEngine(num_gpus=1), or DaskEngine(client, "
            "resources={'GPU': 1})."
        )
    gpus = gpu_slots(plan.gpus, plan.per_gpu)
    if workers is not None and workers > len(gpus):
        raise StrategyError(
            f"{workers} workers, but {several(len(gpus), 'slot')}: {len(set(gpus))} GPUs with "
            f"{plan.per_gpu} each. Leave workers out, or raise per_gpu."
        )
    return Crew(len(gpus) if workers is None else workers, gpus)


def _require_numbers(workers: Workers | None, call: Call) -> None:
    """Refuse a command that wants a slot's number from workers that have none."""
    without = isinstance(workers, Executor | FuturesEngine)
    if isinstance(call, Command) and call.names_slot and without:
        raise StrategyError(
            f"{{slot}} has no number with {workers!r}, which queues by itself. Use workers=4, a "
            "number, or take {slot} out of the command."
        )


@contextmanager
def engine_for(workers: Workers, journal: Path | None) -> Iterator[Engine]:
    """The engine of these workers, closed at the end unless the user gave it."""
    if isinstance(workers, Engine):
        yield workers
        return
    engine = _engine(workers, journal)
    try:
        yield engine
    finally:
        engine.close()


def _engine(workers: int | Executor | Client, journal: Path | None) -> Engine:
    if isinstance(workers, Executor):
        return FuturesEngine(workers)
    if not isinstance(workers, int):
        return DaskEngine(workers)
    if find_spec("fcntl") is None:
        _log.warning("this system cannot fork: evaluations run in threads of this process")
        return FuturesEngine(ThreadPoolExecutor(workers, "covey"), owned=True)
    return LocalEngine(workers, None if journal is None else work_folder(journal))


def work_folder(journal: Path) -> Path:
    """The folder of the evaluations' files; not needed once no trial is pending."""
    journal = journal.resolve()
    return journal.with_name(f"{journal.name}.work")


Objective = Callable[..., Any] | Command


@dataclass(frozen=True, slots=True)
class Result:
    """The best point found, its value, and the study with all trials.

    Of several goals it is the point of the front that comes closest to the best of each, ``value``
    is nan, and `front` has the others.
    """

    point: Mapping[str, Any]
    value: float
    study: Study
    values: Mapping[str, float] = field(default_factory=dict)  # of outcomes that have names
    ended: str = ""  # which limit of the budget ended the run; empty: its evaluations are done

    @property
    def front(self) -> list[Trial]:
        """The trials that no other beats in every goal."""
        return self.study.front


def run(
    study: Study,
    f: Objective,
    *,
    batch: int = 8,
    rounds: int | None = None,
    workers: Workers | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Evaluate f to the end of a budget: ``rounds`` * ``batch`` evaluations, or as the options say.

    Synchronous (the default): the next batch is asked for when this one is in; the run is the same
    for any number of workers, and after any crash. Asynchronous: a worker that is free gets the
    next point at once, chosen with regard to those still out.

    What was asked before counts, and what is pending is evaluated first, so a run that was broken
    off goes on by the same call. What was lost or cancelled does not count. Ctrl-C and SIGTERM stop
    what runs and leave it pending.

    Args:
        study: where results go; its journal is held against a second run.
        f: takes a point (a dict), and a seed if it has a parameter ``seed``; returns a number, or
            {"value": number, "sem": its standard error}. Or a `Command`.
        batch: points per round.
        rounds: batches in all; 20, unless one of the limits below ends the run.
        workers: a number of processes on this machine, one for each evaluation; or an executor of
            `concurrent.futures`, a Dask client, or an engine such as `RayEngine()`. What is given
            stays open. None: 4, or one for each slot of ``gpus``.
        **options: asynchronous; join, True to share the journal with runs elsewhere; timeout, in
            seconds from the start of an evaluation; retries, how often one that is killed is
            tried again (1), or a `Retries`; watch, called with a
            `Progress` now and then; gpus, how many or which, and per_gpu, how many evaluations
            share one; progress, False to show no bar. The budget: evaluations; hours; cost,
            {"dollars": 50}, something that is returned beside the value; target, a value that is
            good enough; plateau, evaluations that brought nothing better. stopping: "asha" or
            "median", which ends what does badly, or a rule.

    Raises:
        EvaluationError: No value came, or the machine lost a whole batch. Like any error and
            Ctrl-C it has the ``study``, and the ``result`` so far.
        JournalConflict: Another run holds the journal, and this one was not to join it.
    """
    plan = Plan.of(batch, rounds, options)
    plan.check(study.outcomes)
    require_reports(plan, workers, study.outcomes)
    call = as_call(f, study.space, study.outcomes)
    crew = crew_of(workers, plan, call)
    _require_program(call, crew.workers)
    return carry_out(study, call, plan, crew)


def carry_out(study: Study, call: Call, plan: Plan, crew: Crew) -> Result:
    """Evaluate to the end of a plan; call, plan and crew were checked before."""
    with ExitStack() as stack:
        runs = stack.enter_context(_entered(study, join=plan.join, joinable=bool(crew.slots)))
        plan = stack.enter_context(with_bar(plan))
        if study.journal is not None:
            remove_staged(study.journal)
        study.refresh()
        interrupt = stack.enter_context(Interrupt())  # left after the engine is closed
        engine = stack.enter_context(engine_for(crew.workers, study.journal))
        busy: set[str] = set()
        if isinstance(engine, LocalEngine):
            if not runs.living:
                engine.tidy(_told_attempts(study), calls=not plan.join)
            busy = engine.busy()
        retries = retries_of(plan.retries)
        dispatcher = Dispatcher(study, engine, call, plan.timeout, retries, crew.gpus)
        dispatcher.rule, dispatcher.runs = rule_of(plan.stopping), runs
        dispatcher.is_stopping = lambda: interrupt.pressed
        dispatcher.withdraw_strays(busy - _awaited(study))
        who, what = (os.getpid(), socket.gethostname()), _described(plan, engine.slots)
        study.note(Began(runs.id, *who, what))
        loop = Loop(study, plan, dispatcher, interrupt, engine.slots or plan.batch)
        try:
            return _to_the_end(study, plan, loop, runs)
        finally:
            runs.look(now=True)
            if isinstance(engine, LocalEngine) and not runs.living:
                with suppress(OSError, WorkFolderError):  # the next run tries again
                    engine.tidy(_told_attempts(study))


@contextmanager
def _entered(study: Study, *, join: bool, joinable: bool) -> Iterator[Runs]:
    """The runs of the journal, once this one has the right to run beside the others, or alone."""
    if study.journal is not None:
        with Runs(study.journal, join=join, joinable=joinable).entered() as runs:
            yield runs
        return
    if join:
        raise StrategyError(
            "join needs a journal that others share; give one: journal='run.jsonl'."
        )
    with study.running():
        yield Runs()


def _to_the_end(study: Study, plan: Plan, loop: Loop, runs: Runs) -> Result:
    """Go on until the run is over, and log why that was."""
    over = ""
    try:
        loop.go()
        over = loop.over or _done(study, plan)
        return replace(_required(study), ended=loop.over)
    except BaseException as error:
        over = over or _broken_off(error)
        # Without a journal, the results would be lost with the exception.
        vars(error).update(study=study, result=result_of(study))
        raise
    finally:
        with suppress(CoveyError):  # the log may be what failed; its error is on its way
            study.note(Ended(runs.id, over))


def _done(study: Study, plan: Plan) -> str:
    """Why a run ended that no other limit ended: its evaluations are done, or no point is left."""
    asked = study.history.asked_count
    if plan.total is None or (asked < plan.total and study.space.size is not None):
        return f"the space is exhausted after {several(asked, 'trial')}"
    return f"the budget of {several(plan.total, 'evaluation')} is used up"


def _broken_off(error: BaseException) -> str:
    """Why a run ended before its time."""
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "Ctrl-C"
    return str(error) if isinstance(error, CoveyError) else f"{type(error).__name__}: {error}"


def require_reports(plan: Plan, workers: Workers | None, outcomes: Outcomes) -> None:
    """Refuse early stopping where no intermediate values come, or where they have no one goal."""
    if plan.stopping is None:
        return
    if not outcomes.only:
        raise StrategyError(
            f"stopping compares one goal, and this study has {len(outcomes.goals)}: "
            f"{', '.join(outcomes.goals)}. Leave stopping out."
        )
    if isinstance(workers, Engine) and not hasattr(workers, "reports"):
        raise StrategyError(
            "stopping needs intermediate values, and this engine has no method `reports` that "
            f"brings them; got {workers!r}. Use workers=4, an executor, a Dask client or "
            "RayEngine()."
        )


def _described(plan: Plan, slots: int | None) -> dict[str, Any]:
    """What others should know of a run while it goes on."""
    until = None
    if plan.hours is not None:
        until = (datetime.now(UTC) + timedelta(hours=plan.hours)).isoformat()
    return {
        "total": plan.total,
        "batch": plan.batch,
        "asynchronous": plan.asynchronous,
        "slots": slots,
        "until": until,
        "cost": plan.costly,
        "purse": plan.purse if math.isfinite(plan.purse) else None,
    }


def _require_program(call: Call, workers: Workers) -> None:
    """Refuse a program that is not here before a trial is asked for, if it is to run here."""
    if isinstance(call, Command) and isinstance(workers, int):
        call.require_program()


def result_of(study: Study) -> Result | None:
    """The best so far; None if nothing was told, or nothing that keeps the limits."""
    best = study.best if study.outcomes.only else middle(study.history, study.outcomes)
    if best is None:
        return None
    value = math.nan if best.value is None else best.value
    return Result(best.point, value, study, best.named)


def _told_attempts(study: Study) -> set[str]:
    """The names of all attempts at trials that have a value."""
    history = study.history
    return {sent.name for trial in history.told for sent in history.attempts(trial.id)}


def _awaited(study: Study) -> set[str]:
    """The names of the last attempts at pending trials, which this run goes on with."""
    last = last_attempts(study.history)
    return {last[trial.id].name for trial in study.history.pending if trial.id in last}


def _required(study: Study) -> Result:
    result = result_of(study)
    if result is not None:
        return result
    if not all(trial.excluded for trial in study.history.told):
        raise EvaluationError(
            f"no result keeps the limits ({', '.join(map(str, study.outcomes.limits))}), or has "
            "them all yet; raise rounds to evaluate more, or look at study.history."
        )
    if study.history.told:
        raise EvaluationError(
            "every result is excluded, so there is no best; include one again "
            "(study.include(trials, reason)), or raise rounds to evaluate more."
        )
    raise EvaluationError("no evaluation succeeded; the journal or f itself may say why.")


def as_call(f: Objective, space: Space | Pool, outcomes: Outcomes | None = None) -> Call:
    """The call that evaluates f, checked against the space; it returns these outcomes by name."""
    names = () if outcomes is None or outcomes.plain else outcomes.names
    if isinstance(f, Command):
        f.check(space.names)
        f.check(space.names, _examples(f, space))
        return replace(f, outcomes=names) if names else f
    if not callable(f):
        raise StrategyError(f"f is a function of a point, or a covey.run.Command; got {f!r}.")
    return Function(f, names)


def _examples(command: Command, space: Space | Pool) -> list[dict[str, Any]]:
    """Points with the ends of each range, which may be hard to write as an argument.

    Of a pool those with the least numbers; the others are checked when they are asked for.
    """
    if isinstance(space, Pool):
        columns = [space.column(name) for name in command.parameters]
        least = {int(np.argmin(column)) for column in columns if column.dtype.kind in "if"}
        return [space.point(row) for row in sorted(least)]
    ends = {name: p.examples(2 if p.scale else p.size or 2) for name, p in space.parameters.items()}
    longest = max(map(len, ends.values()))
    points = [{name: row[i % len(row)] for name, row in ends.items()} for i in range(longest)]
    if space.presence is None:
        return points
    branches = space.presence.branches({})
    return [
        *map(space.presence.trimmed, points),
        *([] if branches is None else space.decode(branches)),
    ]


# `maximize` and `minimize`: a study and its run in one call.


class StudyOptions(TypedDict, total=False):
    """Options of `maximize` that are passed to `Study`."""

    strategy: str | Strategy
    seed: int | None
    journal: str | Path | None
    gp: GP
    goal: Mapping[str, Goal]
    limits: Mapping[str, tuple[str, float]] | None
    record: Sequence[str] | None
    worst: Mapping[str, float] | None


class Options(StudyOptions, RunOptions, total=False):
    """Options of `maximize` and `minimize`: those of the study and those of the run."""


def maximize(
    f: Objective,
    space: Space | Pool,
    *,
    batch: int = 8,
    rounds: int | None = None,
    workers: Workers | None = None,
    **options: Unpack[Options],
) -> Result:
    """Maximise f over a space in ``rounds`` batches.

    An evaluation that raises, or returns something that is not a finite number, becomes a failed
    trial; the run goes on, unless it has no value yet and looks broken. With ``journal=`` a run
    that was killed, or stopped by Ctrl-C, goes on where it stopped: results that came in the
    meantime are found, evaluations that still run are waited for, and what was asked counts.
    Without, the error has the ``study`` and the ``result`` so far.

    Each evaluation has a process of its own, which takes a tenth of a second to start. For
    functions quicker than that, or that share something with the caller, use threads:
    ``workers=ThreadPoolExecutor(4)``.

    Args:
        f: takes a point (a dict), and a seed if it has a parameter ``seed``; returns a number, or
            outcomes by name, {"yield": 61, "cost": 33}, where ``goal`` and ``limits`` name them.
        space: where to look.
        batch: points per round.
        rounds: batches in all; 20, unless one of the limits below ends the run.
        workers: number of processes (4, or one for each slot of ``gpus``), or a
            `concurrent.futures.Executor`, a Dask client, or an engine of `covey.run`.
        **options: strategy, seed, journal, gp, goal (by name), limits, record and worst, as in
            `Study`; asynchronous, join, timeout, retries, watch, gpus, per_gpu, progress and the
            budget (evaluations, hours, cost, target, plateau), as in `covey.run.run`.

    >>> from covey import Real, Space
    >>> space = Space({"x": Real(-1.0, 1.0)})
    >>> result = maximize(lambda p: -p["x"] ** 2, space, batch=4, rounds=3, seed=0)
    >>> bool(result.value > -0.01)
    True
    """
    return _optimize("max", f, space, (batch, rounds, workers), options)


def minimize(
    f: Objective,
    space: Space | Pool,
    *,
    batch: int = 8,
    rounds: int | None = None,
    workers: Workers | None = None,
    **options: Unpack[Options],
) -> Result:
    """Minimise f over a space; see `maximize`."""
    return _optimize("min", f, space, (batch, rounds, workers), options)


def _optimize(
    goal: Goal,
    f: Objective,
    space: Space | Pool,
    size: tuple[int, int | None, Workers | None],
    options: Mapping[str, Any],
) -> Result:
    batch, rounds, workers = size
    of_study, of_run = _parted(options)
    # Checked before the study is created, so that an error leaves no journal behind.
    plan = Plan.of(batch, rounds, of_run)
    named = of_study.pop("goal", None)
    if isinstance(named, str):
        raise StrategyError(
            f"goal names outcomes, {{'yield': 'max'}}; got {named!r}. For one plain value use "
            "covey.maximize or covey.minimize without it."
        )
    goals = goal if named is None else named
    told = (of_study.get(name) for name in ("limits", "record", "worst"))
    outcomes = Outcomes.of(goals, *told)
    plan.check(outcomes)
    require_reports(plan, workers, outcomes)
    call = as_call(f, space, outcomes)
    crew = crew_of(workers, plan, call)
    _require_program(call, crew.workers)
    return carry_out(Study(space, goals, **of_study), call, plan, crew)


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The study's options, and the run's."""
    names = [*StudyOptions.__annotations__, *RunOptions.__annotations__]  # inherited ones too
    require_known(options, names)
    of_study = {name: options[name] for name in StudyOptions.__annotations__ if name in options}
    return of_study, {name: value for name, value in options.items() if name not in of_study}
