"""Checks of what events hold: numbers, texts, ids, points, plain JSON; errors say what to do."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from covey.arrays import MOST
from covey.errors import HistoryError, is_whole, several
from covey.history.trial import PLAIN, Point, is_plain

_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that are not UTF-8


def _real_number(value: object, what: str) -> float:
    """A float from any real number, a zero-dimensional array or tensor included."""
    if type(value) is float:  # the usual case, and quicker than a protocol check
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0 and not np.ma.isMaskedArray(value):
        value = value[()]
    odd = isinstance(value, bool | np.ndarray) or (
        isinstance(value, np.generic) and not isinstance(value, np.integer | np.floating)
    )
    if odd or not isinstance(value, SupportsFloat):
        raise HistoryError(f"{what} must be a real number, got {value!r} ({type(value).__name__}).")
    try:
        return float(value)
    except OverflowError:
        return math.inf  # an integer beyond 1e308: reported as not finite
    except (TypeError, ValueError) as error:
        raise HistoryError(f"{what} must be a real number, got {value!r}.") from error


def finite_value(value: object, name: str, hint: str) -> float:
    """A finite float of at most 1e100 in size, or an error that names it."""
    number = _real_number(value, f"{name}: value")
    if not math.isfinite(number):
        raise HistoryError(f"{name}: value must be finite, got {number}. {hint}")
    if abs(number) > MOST:
        raise HistoryError(f"{name}: value must be within ±{MOST:g}, got {number}. Rescale it.")
    return number


def trial_value(value: object, trial: int) -> float:
    """The value of a trial."""
    return finite_value(value, f"trial {trial}", f"Use study.fail({trial}) if the run crashed.")


def trial_values(values: object, trial: int) -> Point:
    """The values of a trial, as of `outcome_values`."""
    if type(values) is float and -MOST <= values <= MOST:  # the usual case, and quicker
        return Point({PLAIN: values})
    hint = f"Use study.fail({trial}) if the run crashed."
    return outcome_values(values, f"trial {trial}", hint)


def outcome_values(values: object, name: str, hint: str) -> Point:
    """Values by name, for goals and limits; a plain number is that of "value"."""
    if not isinstance(values, Mapping) or not values:
        return Point({PLAIN: finite_value(values, name, hint)})
    if not all(isinstance(key, str) and key for key in values):
        raise HistoryError(f"{name}: values by name are {{name: number, ...}}, got {values!r}.")
    if is_plain(values):
        return Point({PLAIN: finite_value(values[PLAIN], name, hint)})
    return Point({key: finite_value(v, f"{name}, {key!r}", hint) for key, v in values.items()})


def checked_goal(goal: object, values: Sequence[Point], sems: Sequence[float | None]) -> str | None:
    """The name of the only goal among values; empty: several goals; None: not said."""
    if goal:
        # Where a value lacks it, it comes later.
        if not any(goal in one for one in values):
            raise HistoryError(f"the goal {goal!r} has no value in {values[0]!r}; name it there.")
        return text(goal, "goal")
    for one, sem in zip(values, sems, strict=True):
        if sem is not None and len(one) > 1:
            raise HistoryError(
                f"a standard error belongs to one value, and {dict(one)} are several; leave it "
                "out, or say which of them is the goal."
            )
    return None if goal is None else text(goal, "goal")


def standard_error(sem: object, name: str) -> float | None:
    """A standard error, or None where it is unknown."""
    if sem is None:
        return None
    number = _real_number(sem, f"{name}: sem")
    if not 0 <= number <= MOST:
        raise HistoryError(
            f"{name}: sem must be from 0 to {MOST:g}, got {number}. Use None if it is unknown."
        )
    return number


def standard_errors(
    sems: Iterable[object], places: Sequence[int], noun: str
) -> tuple[float | None, ...]:
    """One standard error for each place; () if none is given."""
    given = tuple(sems)
    if not given:
        return (None,) * len(places)
    sized(given, len(places), noun, "sem")
    return tuple(standard_error(s, f"{noun} {i}") for s, i in zip(given, places, strict=True))


def text(value: object, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise HistoryError(f"{what} must be a string, got {value!r} ({type(value).__name__}).")
    return value


def non_empty_text(value: object, what: str) -> str:
    """A string that is not empty."""
    if not text(value, what).strip():
        raise HistoryError(f"{what} must not be empty; say in a few words what a reader will ask.")
    return text(value, what)


def legible(value: str) -> str:
    """Return a text with U+FFFD for what no file in UTF-8 can hold.

    A name of a file that is not UTF-8 has such letters, and comes with the errors that name it.
    """
    return value if value.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def prose(value: object, what: str) -> str:
    """A string for people to read."""
    return legible(text(value, what))


def non_empty_prose(value: object, what: str) -> str:
    """A string for people to read that is not empty."""
    return legible(non_empty_text(value, what))


def whole(value: object, what: str) -> int:
    """A whole number that is not negative."""
    if not is_whole(value, 0):
        raise HistoryError(f"{what} must be a whole number >= 0, got {value!r}.")
    return int(value)


def _id(value: object) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise HistoryError(f"a trial id is an integer, got {value!r} ({type(value).__name__}).")
    try:
        return operator.index(value)
    except TypeError as error:
        raise HistoryError(f"a trial id is an integer, got {value!r}.") from error


def trial_ids(values: Iterable[object]) -> tuple[int, ...]:
    """Ids of trials, none of them twice."""
    ids = tuple(_id(value) for value in values)
    if not ids:
        raise HistoryError("no trial was given; an event needs at least one.")
    if len(set(ids)) < len(ids):
        twice = next(trial for i, trial in enumerate(ids) if trial in ids[:i])
        raise HistoryError(f"trial {twice} was given twice; give each trial once.")
    return ids


def frozen_point(point: object) -> Point:
    """A point that cannot be changed."""
    if not isinstance(point, Mapping):
        raise HistoryError(f"a point is a dict of names and values, got {point!r}.")
    return point if isinstance(point, Point) else Point(point)


def points_of(points: Iterable[object]) -> tuple[Point, ...]:
    """Points that cannot be changed, at least one."""
    out = tuple(frozen_point(point) for point in points)
    if not out:
        raise HistoryError("no point was given; an event needs at least one.")
    return out


def sized(items: Iterable[object], size: int, of: str, what: str) -> tuple[object, ...]:
    """The items as a tuple, if there are ``size`` of them."""
    out = tuple(items)
    if len(out) != size:
        raise HistoryError(f"{several(size, of)} but {several(len(out), what)}; give one for each.")
    return out


def plain_object(given: object, what: str, *, for_people: bool = False) -> dict[str, Any]:
    """A dict as JSON holds it; texts ``for_people`` are `legible`."""
    try:
        written = json.dumps(given, allow_nan=False, ensure_ascii=not for_people)
        plain = json.loads(legible(written))
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"{what} must be plain JSON with finite numbers: {error}.") from error
    if not isinstance(plain, dict):
        raise HistoryError(f"{what} must be a JSON object, got {given!r}.")
    return plain


def plain_metrics(
    metrics: Iterable[Mapping[str, Any] | None], ids: Sequence[int]
) -> tuple[dict[str, Any] | None, ...]:
    """What was returned beside the value of each trial, as plain JSON objects; () if nothing."""
    given = tuple(metrics)
    if not given:
        return (None,) * len(ids)
    sized(given, len(ids), "trial", "metric")
    # Empty objects are dropped: the log then has no such field.
    return tuple(plain_object(one, "metrics", for_people=True) if one else None for one in given)


def plain_models(models: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Hyper-parameters as plain JSON."""
    # Through JSON, so that the running study and the reloaded one start from equal numbers.
    plain = plain_object({"all": models}, "models")["all"]
    if not isinstance(plain, list) or not all(isinstance(model, dict) for model in plain):
        raise HistoryError(f"models must be plain JSON, one object each; got {models!r}.")
    return tuple(plain)
