"""What an event is made of, checked: finite numbers, ids, points, texts."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from covey.errors import HistoryError, several
from covey.history.trial import Point

MOST = 1e100  # in size, of a value or its error: squares of it must not overflow


def _real_number(value: object, what: str) -> float:
    """A float from any real number, a zero-dimensional array or tensor included."""
    if type(value) is float:  # nearly always, and quicker than asking a protocol
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
    """A finite float of sane size, or an error that names it."""
    number = _real_number(value, f"{name}: value")
    if not math.isfinite(number):
        raise HistoryError(f"{name}: value must be finite, got {number}. {hint}")
    if abs(number) > MOST:
        raise HistoryError(f"{name}: value must be within ±{MOST:g}, got {number}. Rescale it.")
    return number


def trial_value(value: object, trial: int) -> float:
    """The value of a trial."""
    if type(value) is float and -MOST <= value <= MOST:  # nearly always, and quicker
        return value
    return finite_value(value, f"trial {trial}", f"Use study.fail({trial}) if the run crashed.")


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
    """One standard error for each place; none given, none known."""
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


def whole(value: object, what: str) -> int:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise HistoryError(f"{what} must be a whole number >= 0, got {value!r}.")
    return value


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
    seen: set[int] = set()
    for trial in ids:
        if trial in seen:
            raise HistoryError(f"trial {trial} was given twice; give each trial once.")
        seen.add(trial)
    return ids


def _point(point: object) -> Point:
    if not isinstance(point, Mapping):
        raise HistoryError(f"a point is a dict of names and values, got {point!r}.")
    return point if isinstance(point, Point) else Point(point)


def points_of(points: Iterable[object]) -> tuple[Point, ...]:
    """Points that cannot be changed, at least one."""
    out = tuple(_point(point) for point in points)
    if not out:
        raise HistoryError("no point was given; an event needs at least one.")
    return out


def sized(items: Iterable[object], size: int, of: str, what: str) -> tuple[object, ...]:
    """As many as there should be."""
    out = tuple(items)
    if len(out) != size:
        raise HistoryError(f"{several(size, of)} but {several(len(out), what)}; give one for each.")
    return out


def plain_object(given: object, what: str) -> dict[str, Any]:
    """A dict as JSON holds it."""
    try:
        plain = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"{what} must be plain JSON with finite numbers: {error}.") from error
    if not isinstance(plain, dict):
        raise HistoryError(f"{what} must be a JSON object, got {given!r}.")
    return plain


def plain_metrics(
    metrics: Iterable[Mapping[str, Any] | None], ids: Sequence[int]
) -> tuple[dict[str, Any] | None, ...]:
    """What came beside the value of each trial, as plain JSON objects; none given, none there."""
    given = tuple(metrics)
    if not given:
        return (None,) * len(ids)
    sized(given, len(ids), "trial", "metric")
    # An empty object says nothing: the log then has no such field.
    return tuple(plain_object(one, "metrics") if one else None for one in given)


def plain_models(models: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Hyper-parameters as plain JSON."""
    # Through JSON at once: the running study and the reloaded one then start from equal numbers.
    try:
        plain = json.loads(json.dumps([dict(model) for model in models], allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(
            f"models must be plain JSON, one object with finite numbers each: {error}."
        ) from error
    return tuple(plain)
