"""The shortest way in: `maximize` and `minimize` a function over a space."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from covey.errors import StrategyError, did_you_mean
from covey.gp import GP
from covey.header import Goal
from covey.run.plan import Plan, RunOptions
from covey.run.runner import Objective, Result, as_call, run
from covey.run.workers import check_workers
from covey.space import Pool, Space
from covey.strategies import Strategy
from covey.study import Study

if TYPE_CHECKING:
    from covey.run.workers import Workers


class StudyOptions(TypedDict, total=False):
    """What `maximize` passes on to `Study`."""

    strategy: str | Strategy
    seed: int | None
    journal: str | Path | None
    gp: GP


class Options(StudyOptions, RunOptions, total=False):
    """What `maximize` takes beyond how much to evaluate, and by whom."""


def maximize(
    f: Objective,
    space: Space | Pool,
    *,
    batch: int = 8,
    rounds: int = 20,
    workers: Workers = 4,
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
        f: takes a point (a dict), and a seed if it has a parameter ``seed``; returns a number.
        space: where to look.
        batch: points per round.
        rounds: batches in all.
        workers: number of processes, or a `concurrent.futures.Executor`, a Dask client, or an
            engine of `covey.run`.
        **options: strategy, seed, journal and gp, as in `Study`; asynchronous, timeout, retries
            and watch, as in `covey.run.run`.

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
    rounds: int = 20,
    workers: Workers = 4,
    **options: Unpack[Options],
) -> Result:
    """Minimise f over a space; see `maximize`."""
    return _optimize("min", f, space, (batch, rounds, workers), options)


def _optimize(
    goal: Goal,
    f: Objective,
    space: Space | Pool,
    size: tuple[int, int, Workers],
    options: Mapping[str, Any],
) -> Result:
    batch, rounds, workers = size
    of_study, of_run = _parted(options)
    # Before there is a study: what cannot run leaves no journal behind.
    Plan.of(batch, rounds, of_run)
    check_workers(workers, as_call(f, space))
    study = Study(space, goal, **of_study)
    return run(study, f, batch=batch, rounds=rounds, workers=workers, **of_run)


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The study's options, and the run's."""
    names = [*StudyOptions.__annotations__, *RunOptions.__annotations__]
    for name in options:
        if name not in names:
            raise StrategyError(
                f"unknown option {name!r}; there are {', '.join(names)}.{did_you_mean(name, names)}"
            )
    of_study = {name: options[name] for name in StudyOptions.__annotations__ if name in options}
    return of_study, {name: value for name, value in options.items() if name not in of_study}
