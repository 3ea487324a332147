"""Checks of what users pass to a `Study`: path, seed, counts, keys, trials, values and points."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from covey.errors import HistoryError, JournalError, SpaceError, StrategyError, is_whole
from covey.gp import GP
from covey.history import History, Trial, events
from covey.space import Frame, Pool, Space, records_of

_LONGEST = 1e9  # seconds of a time budget
Points = Iterable[Mapping[str, Any]] | Frame
Trials = Trial | int | Sequence[Trial | int]


def checked_gp(gp: GP | None) -> GP:
    """The Gaussian process to use, the default if none is given."""
    if gp is not None and not isinstance(gp, GP):
        raise StrategyError(f"gp is a covey.GP, such as covey.GP(kernel='matern52'); got {gp!r}.")
    return gp or GP()


def checked_path(path: str | Path | None) -> Path | None:
    """The path of the journal, if there is one."""
    if path is not None and not isinstance(path, str | PathLike):
        raise JournalError(f"journal is a path such as 'run.jsonl'; got {path!r}.")
    return None if path is None else Path(path)


def checked_seed(seed: int | None) -> int:
    """The seed, drawn if none is given."""
    if seed is None:
        return secrets.randbits(32)
    if not is_whole(seed, 0):
        raise StrategyError(f"seed must be a whole number >= 0, or None; got {seed!r}.")
    return int(seed)


def checked_resolution(resolution: Any) -> float | None:
    """A share of a range, or None."""
    if resolution is None:
        return None
    number = isinstance(resolution, int | float | np.integer | np.floating)
    if not number or isinstance(resolution, bool) or not 0.0 <= resolution < 1.0:
        raise StrategyError(
            "resolution is the share of a range within which two points of a batch are alike, "
            f"from 0 to below 1, or None; got {resolution!r}."
        )
    return float(resolution)


def checked_count(k: Any) -> int:
    """The number of points to ask for, at least 1."""
    if not is_whole(k, 1):
        raise StrategyError(f"ask takes a whole number of points, at least 1; got {k!r}.")
    return int(k)


def checked_key(key: str | None) -> str | None:
    """The key of a request, if it has one."""
    if key is not None and not (isinstance(key, str) and key):
        raise HistoryError(f"a key is a text that names one message; got {key!r}.")
    return key


def checked_seconds(seconds: float | None) -> float | None:
    """The time budget of an ask in seconds, if it has one."""
    if seconds is None:
        return None
    number = isinstance(seconds, int | float | np.integer | np.floating)
    if not number or isinstance(seconds, bool) or not 0.0 < seconds <= _LONGEST:
        got = "a larger one" if number and seconds > _LONGEST else repr(seconds)
        raise StrategyError(
            f"time_budget is a number of seconds above 0, up to {_LONGEST:g}; got {got}. Leave it "
            "out for as long as it takes."
        )
    return float(seconds)


def is_one(trials: Any) -> bool:
    """Whether a single trial, or its id, was given."""
    return isinstance(trials, Trial | int | np.integer)


def sequence_of(values: Any, what: str) -> tuple[Any, ...]:
    """The values as a tuple; an error that names ``what`` if they are no sequence."""
    if _is_single(values):
        raise HistoryError(f"a list of trials needs a list of {what}; got {values!r}.")
    return tuple(values)


def refuse_names(values: Iterable[Any], whose: Iterable[str]) -> None:
    """Raise if values are given by name: the log can hold them, but a study has one outcome."""
    for value, name in zip(values, whose, strict=False):  # the lengths are compared later
        if isinstance(value, Mapping):
            events.finite_value(value, name, "")  # raises


def each(sem: Any, count: int) -> tuple[Any, ...]:
    """Standard errors for ``count`` values; one number stands for all."""
    if sem is None:
        return ()
    return (sem,) * count if _is_single(sem) else tuple(sem)


def _is_single(values: Any) -> bool:
    try:
        return np.ndim(values) == 0
    except ValueError:  # lists of unequal length; the error comes later
        return False


def ids_of(trials: Trials) -> tuple[int, ...]:
    """Ids of trials, of their ids, or of one of either."""
    if isinstance(trials, Set | Mapping | str) or not isinstance(
        trials, Trial | int | np.integer | Iterable
    ):
        raise HistoryError(
            f"trials is a trial, an id, or a list of these in order; got {type(trials).__name__}."
        )
    if isinstance(trials, Trial | int | np.integer):
        trials = (trials,)
    return tuple(trial.id if isinstance(trial, Trial) else trial for trial in trials)


def newest(trials: Trials) -> int:
    """The largest id among the given `Trial` objects; -1 if only ids were given."""
    given = trials if isinstance(trials, Sequence) else (trials,)
    return max((trial.id for trial in given if isinstance(trial, Trial)), default=-1)


def own_ids(trials: Trials, history: History) -> tuple[int, ...]:
    """Ids of trials of this history; one of another study would change the wrong point."""
    for trial in trials if isinstance(trials, Sequence) else (trials,):
        if isinstance(trial, Trial) and history.trial(trial.id).point != trial.point:
            raise HistoryError(
                f"trial {trial.id} at {dict(trial.point)} is not of this study, whose trial "
                f"{trial.id} is at {dict(history.trial(trial.id).point)}."
            )
    return ids_of(trials)


def checked_points(points: Points, space: Space | Pool) -> tuple[Any, ...]:
    """Points of the space, each checked; the points of a data frame are its rows."""
    rows = records_of(points)
    given = points if rows is None else rows
    if isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        raise SpaceError(
            "points is a list of points, or a pandas or polars frame with a column for each "
            f"parameter; put a single point in a list, [point]. Got {type(points).__name__}."
        )
    return tuple(space.check(point) for point in given)
