"""The synchronous loop over `concurrent.futures`: ask, evaluate in parallel, tell, repeat."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from covey.errors import EvaluationError, StrategyError
from covey.gp import GP
from covey.history import Trial
from covey.propose import Goal
from covey.space import Pool, Space
from covey.strategies import Strategy
from covey.study import Study

_log = logging.getLogger("covey")

Objective = Callable[[dict[str, Any]], float]


class StudyOptions(TypedDict, total=False):
    """What `maximize` passes on to `Study`."""

    strategy: str | Strategy
    seed: int | None
    journal: str | Path | None
    gp: GP


@dataclass(frozen=True, slots=True)
class Result:
    """The best point found, its value, and the study with all the rest."""

    point: Mapping[str, Any]
    value: float
    study: Study


def maximize(
    f: Objective,
    space: Space | Pool,
    *,
    batch: int = 8,
    rounds: int = 20,
    workers: int | Executor = 4,
    **options: Unpack[StudyOptions],
) -> Result:
    """Maximise f over a space in ``rounds`` batches.

    An evaluation that raises, or returns something that is not a finite number, becomes a failed
    trial; the run goes on unless a whole batch fails. Ctrl-C cancels what was not finished and
    leaves the log clean. With ``journal=`` a run that was broken off goes on where it stopped:
    what was pending is evaluated first, and rounds already asked count.

    Args:
        f: takes a point (a dict), returns a number. Called in several threads at once.
        space: where to look.
        batch: points per round.
        rounds: batches in all.
        workers: number of threads, or a `concurrent.futures.Executor` of your own (a
            `ProcessPoolExecutor` for work that holds the interpreter lock; it is not shut down).
        **options: strategy, seed, journal and gp, as in `Study`.

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
    workers: int | Executor = 4,
    **options: Unpack[StudyOptions],
) -> Result:
    """Minimise f over a space; see `maximize`."""
    return _optimize("min", f, space, (batch, rounds, workers), options)


def _optimize(
    goal: Goal,
    f: Objective,
    space: Space | Pool,
    size: tuple[int, int, int | Executor],
    options: StudyOptions,
) -> Result:
    batch, rounds, workers = size
    for name, value in (("batch", batch), ("rounds", rounds)):
        if not isinstance(value, int) or value < 1:
            raise StrategyError(f"{name} must be a whole number >= 1; got {value!r}.")
    study = Study(space, goal, **options)
    start, before = time.perf_counter(), study.history.rounds
    with _pool(workers) as pool:
        _evaluate(study, f, study.history.pending, pool)
        while study.history.rounds < rounds:
            _evaluate(study, f, study.ask(batch), pool)
            done = study.history.rounds
            left = (time.perf_counter() - start) / (done - before) * (rounds - done)
            _log.info("round %d of %d: best %s, about %.0f s left", done, rounds, study.best, left)
    best = study.best
    if best is None or best.value is None:
        raise EvaluationError("no evaluation succeeded; study.history says what was tried.")
    return Result(best.point, best.value, study)


@contextmanager
def _pool(workers: int | Executor) -> Iterator[Executor]:
    if isinstance(workers, Executor):
        yield workers
        return
    if not isinstance(workers, int) or workers < 1:
        raise StrategyError(f"workers is a number >= 1 or an Executor; got {workers!r}.")
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="covey")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _evaluate(study: Study, f: Objective, trials: Sequence[Trial], pool: Executor) -> None:
    """Evaluate a batch and tell each result as it comes; nothing is left pending."""
    open_trials: dict[Future[float], Trial] = {}
    failures: list[BaseException] = []
    try:
        for trial in trials:
            open_trials[pool.submit(f, dict(trial.point))] = trial
        for future in as_completed(list(open_trials)):
            trial = open_trials[future]
            failure = _tell(study, trial, future)
            del open_trials[future]
            if failure is not None:
                failures.append(failure)
    except BaseException:
        for future in open_trials:
            future.cancel()
        left = [t for t in trials if study.history.trial(t.id).status == "pending"]
        if left:
            study.cancel(left)
            _log.warning(
                "stopped: %d unfinished trials were cancelled, all results kept", len(left)
            )
        raise
    if failures and len(failures) == len(trials):
        raise EvaluationError(
            f"all {len(trials)} evaluations of this batch failed; the last one with "
            f"{failures[-1]!r}. Try f(study.history.trials[-1].point) by hand."
        ) from failures[-1]


def _tell(study: Study, trial: Trial, future: Future[float]) -> BaseException | None:
    """Tell one outcome; the reason if it is a failure."""
    try:
        value = float(future.result())
        if not math.isfinite(value):
            raise ValueError(f"f returned {value}")
    except Exception as error:  # whatever a user's function may raise
        _log.warning("trial %d failed: %r", trial.id, error)
        study.fail(trial, reason=f"{type(error).__name__}: {error}")
        return error
    study.tell(trial, value)
    return None
