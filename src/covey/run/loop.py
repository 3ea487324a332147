"""The synchronous loop over `concurrent.futures`: ask, evaluate in parallel, tell, repeat."""

from __future__ import annotations

import logging
import math
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from covey.errors import EvaluationError, ExhaustedError, StrategyError
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
        _require_count(name, value)
    with _pool(workers, f) as pool:
        study = Study(space, goal, **options)
        start, before = time.perf_counter(), study.history.rounds
        _evaluate(study, f, study.history.pending, pool)
        while study.history.rounds < rounds:
            trials = _ask(study, batch)
            if not trials:
                _log.info("the space is exhausted after %d trials", len(study.history))
                break
            _evaluate(study, f, trials, pool)
            done = study.history.rounds
            left = (time.perf_counter() - start) / (done - before) * (rounds - done)
            _log.info("round %d of %d: best %s, about %.0f s left", done, rounds, study.best, left)
    best = study.best
    if best is None or best.value is None:
        raise EvaluationError("no evaluation succeeded; the journal or f itself may say why.")
    return Result(best.point, best.value, study)


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise StrategyError(f"{name} must be a whole number >= 1; got {value!r}.")


def _ask(study: Study, batch: int) -> list[Trial]:
    """The next batch, or what is left of a finite space."""
    try:
        return study.ask(batch)
    except ExhaustedError as error:
        if study.space.size is None:
            raise
        return study.ask(error.left) if error.left else []


@contextmanager
def _pool(workers: int | Executor, f: Objective) -> Iterator[Executor]:
    if isinstance(workers, ProcessPoolExecutor):
        _require_picklable(f)
    if isinstance(workers, Executor):
        yield workers
        return
    _require_count("workers", workers)
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="covey")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _require_picklable(f: Objective) -> None:
    try:
        pickle.dumps(f)
    except Exception as error:  # pickle raises what it likes
        raise StrategyError(
            f"f cannot be sent to other processes ({error}). Define it at the top level of a "
            "module, or use threads: workers=4."
        ) from error


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
    except BaseException as error:
        _cancel(study, trials, open_trials)
        if isinstance(error, BrokenExecutor):
            raise EvaluationError(
                f"the executor broke ({error}). A worker process died, perhaps for want of memory. "
                "Results so far are kept, unfinished trials were cancelled."
            ) from error
        raise
    if failures and len(failures) == len(trials):
        raise EvaluationError(
            f"all {len(trials)} evaluations of this batch failed; the last one with "
            f"{failures[-1]!r}. Try f({dict(trials[-1].point)!r}) by hand."
        ) from failures[-1]


def _cancel(study: Study, trials: Sequence[Trial], futures: Iterable[Future[float]]) -> None:
    """Leave the log clean: what was not finished was never run."""
    for future in futures:
        future.cancel()
    left = [t for t in trials if study.history.trial(t.id).status == "pending"]
    if left:
        study.cancel(left)
        _log.warning("stopped: %d unfinished trials were cancelled, all results kept", len(left))


def _tell(study: Study, trial: Trial, future: Future[float]) -> BaseException | None:
    """Tell one outcome; the reason if it is a failure."""
    try:
        value: Any = future.result()
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise ValueError(f"f returned {value!r}, not a finite number")
    except BrokenExecutor:  # not the fault of this point
        raise
    except Exception as error:  # whatever a user's function may raise
        _log.warning("trial %d failed: %r", trial.id, error)
        study.fail(trial, reason=f"{type(error).__name__}: {error}")
        return error
    study.tell(trial, float(value))
    return None
