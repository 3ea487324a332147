"""Runner: evaluate to the end of a budget, through any number of crashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from covey.errors import EvaluationError, StrategyError
from covey.journal.disk import remove_staged
from covey.journal.running import running
from covey.run.call import Call, Function
from covey.run.campaign import Campaign
from covey.run.command import Command
from covey.run.desk import Desk
from covey.run.interrupt import Interrupt
from covey.run.local import LocalEngine
from covey.run.plan import Plan, RunOptions
from covey.run.workers import check_workers, engine_for
from covey.space import Choice, Pool, Space
from covey.study import Study

if TYPE_CHECKING:
    from covey.run.workers import Workers

Objective = Callable[..., Any] | Command


@dataclass(frozen=True, slots=True)
class Result:
    """The best point found, its value, and the study with all the rest."""

    point: Mapping[str, Any]
    value: float
    study: Study


def run(
    study: Study,
    f: Objective,
    *,
    batch: int = 8,
    rounds: int = 20,
    workers: Workers = 4,
    **options: Unpack[RunOptions],
) -> Result:
    """Evaluate f to the end of a budget of ``rounds`` * ``batch`` evaluations.

    Synchronous (the default): the next batch is asked for when this one is in; the run is the same
    for any number of workers, and after any crash. Asynchronous: a worker that is free gets the
    next point at once, chosen with regard to those still out.

    What was asked before counts, and what is pending is evaluated first, so a run that was broken
    off goes on by the same call. What was lost or cancelled does not count. Ctrl-C stops what runs
    and leaves it pending.

    Args:
        study: where results go; its journal is held against a second run.
        f: takes a point (a dict), and a seed if it has a parameter ``seed``; returns a number, or
            {"value": number, "sem": its standard error}. Or a `Command`.
        batch: points per round.
        rounds: batches in all.
        workers: a number of processes on this machine, one for each evaluation; or an executor of
            `concurrent.futures`, a Dask client, or an engine such as `RayEngine()`. What is given
            stays open.
        **options: asynchronous; timeout, in seconds from the start of an evaluation; retries, a
            `Retries`; watch, called with a `Progress` now and then.

    Raises:
        EvaluationError: No value came, or the machine lost a whole batch. Like any error and
            Ctrl-C it has the ``study``, and the ``result`` so far.
        JournalConflict: Another run holds the journal.
    """
    plan = Plan.of(batch, rounds, options)
    call = as_call(f, study.space)
    check_workers(workers, call)
    with ExitStack() as stack:
        if study.journal is not None:
            stack.enter_context(running(study.journal))
            remove_staged(study.journal)
        study.refresh()
        interrupt = stack.enter_context(Interrupt())  # the engine is closed before it is left
        engine = stack.enter_context(engine_for(workers, study.journal))
        if isinstance(engine, LocalEngine):
            engine.tidy(_told(study))
        desk = Desk(study, engine, call, plan.timeout, plan.retries)
        try:
            Campaign(study, plan, desk, interrupt, engine.slots or batch).go()
            return _required(result_of(study))
        except BaseException as error:
            # Without a journal, what was told would be gone with who called us.
            vars(error).update(study=study, result=result_of(study))
            raise


def result_of(study: Study) -> Result | None:
    """The best so far; None if nothing was told."""
    best = study.best
    if best is None or best.value is None:
        return None
    return Result(best.point, best.value, study)


def _told(study: Study) -> set[str]:
    """The names of all attempts at trials that have a value."""
    history = study.history
    return {sent.name for trial in history.told for sent in history.attempts(trial.id)}


def _required(result: Result | None) -> Result:
    if result is None:
        raise EvaluationError("no evaluation succeeded; the journal or f itself may say why.")
    return result


def as_call(f: Objective, space: Space | Pool) -> Call:
    """What is evaluated, checked against the space."""
    if isinstance(f, Command):
        f.check(space.names, _corners(space))
        return f
    if not callable(f):
        raise StrategyError(f"f is a function of a point, or a covey.run.Command; got {f!r}.")
    return Function(f)


def _corners(space: Space | Pool) -> list[dict[str, Any]]:
    """Points between them holding every value that may be hard to write as an argument."""
    if isinstance(space, Pool):
        return [space.point(i) for i in range(space.size)]
    ends = {
        name: list(p.options if isinstance(p, Choice) else p.span)
        for name, p in space.parameters.items()
    }
    longest = max(map(len, ends.values()))
    return [{name: row[i % len(row)] for name, row in ends.items()} for i in range(longest)]
