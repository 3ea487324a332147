"""What can happen to a study: one frozen record for each thing, well formed by construction.

One batch is one event, so half a batch cannot exist. Whatever an event alone can tell is checked
when it is built (numbers finite, lengths equal, no id twice); whether it fits what happened before
is checked by ``History.check``.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np

from covey.errors import HistoryError
from covey.history.trial import Point

MOST = 1e100  # in size, of a value or its error: squares of it must not overflow


@dataclass(frozen=True, slots=True)
class Asked:
    """``ask`` proposed these points; ``models`` are the hyper-parameters it used, as JSON."""

    points: tuple[Point, ...]
    strategy: str
    models: tuple[dict[str, Any], ...] | None = None

    def __post_init__(self) -> None:
        _assign(
            self,
            points=_points(self.points),
            strategy=_text(self.strategy, "strategy"),
            models=None if self.models is None else _plain_models(self.models) or None,
        )


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The user chose these points; they are pending from now on."""

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        _assign(self, points=_points(self.points))


@dataclass(frozen=True, slots=True)
class Added:
    """These points were measured elsewhere; each becomes a told trial at once."""

    points: tuple[Point, ...]
    values: tuple[float, ...]
    sems: tuple[float | None, ...] = ()  # () for none known

    def __post_init__(self) -> None:
        points = _points(self.points)
        names = [f"point {place} of {len(points)}" for place in range(1, len(points) + 1)]
        values = _sized(self.values, len(points), "points", "values")
        hint = "Leave out points without a result."
        _assign(
            self,
            points=points,
            values=tuple(_value(v, name, hint) for v, name in zip(values, names, strict=True)),
            sems=_sems(self.sems, names, "points"),
        )


@dataclass(frozen=True, slots=True)
class Told:
    """The results of these trials came in, in the user's sign."""

    ids: tuple[int, ...]
    values: tuple[float, ...]
    sems: tuple[float | None, ...] = ()  # () for none known

    def __post_init__(self) -> None:
        ids = _ids(self.ids)
        values = _sized(self.values, len(ids), "trials", "values")
        _assign(
            self,
            ids=ids,
            values=tuple(_trial_value(v, i) for v, i in zip(values, ids, strict=True)),
            sems=_sems(self.sems, [f"trial {i}" for i in ids], "trials"),
        )


@dataclass(frozen=True, slots=True)
class Failed:
    """These trials were run and gave no result."""

    ids: tuple[int, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        _assign(self, ids=_ids(self.ids), reason=_text(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Cancelled:
    """These trials were never run; their points are free again."""

    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _assign(self, ids=_ids(self.ids))


@dataclass(frozen=True, slots=True)
class Amended:
    """A told value was wrong and is corrected; ``sem=None`` keeps the standard error it had."""

    id: int
    value: float
    reason: str
    sem: float | None = None

    def __post_init__(self) -> None:
        (trial,) = _ids([self.id])
        reason = _text(self.reason, "reason")
        if not reason.strip():
            raise HistoryError(
                f"trial {trial}: say why the value changes: study.amend({trial}, value, reason)."
            )
        _assign(
            self,
            id=trial,
            value=_trial_value(self.value, trial),
            reason=reason,
            sem=_sem(self.sem, f"trial {trial}"),
        )


Event: TypeAlias = Asked | Enqueued | Added | Told | Failed | Cancelled | Amended


def _assign(event: Event, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(event, name, value)  # the way a frozen dataclass completes itself


def _number(value: object, what: str) -> float:
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


def _value(value: object, name: str, hint: str) -> float:
    number = _number(value, f"{name}: value")
    if not math.isfinite(number):
        raise HistoryError(f"{name}: value must be finite, got {number}. {hint}")
    if abs(number) > MOST:
        raise HistoryError(f"{name}: value must be within ±{MOST:g}, got {number}. Rescale it.")
    return number


def _trial_value(value: object, trial: int) -> float:
    return _value(value, f"trial {trial}", f"Use study.fail({trial}) if the run crashed.")


def _sem(sem: object, name: str) -> float | None:
    if sem is None:
        return None
    number = _number(sem, f"{name}: sem")
    if not 0 <= number <= MOST:
        raise HistoryError(
            f"{name}: sem must be from 0 to {MOST:g}, got {number}. Use None if it is unknown."
        )
    return number


def _sems(sems: Iterable[object], names: list[str], of: str) -> tuple[float | None, ...]:
    given = tuple(sems) or (None,) * len(names)
    _sized(given, len(names), of, "sems")
    return tuple(_sem(sem, name) for sem, name in zip(given, names, strict=True))


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise HistoryError(f"{what} must be a string, got {value!r} ({type(value).__name__}).")
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


def _ids(values: Iterable[object]) -> tuple[int, ...]:
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


def _points(points: Iterable[object]) -> tuple[Point, ...]:
    out = tuple(_point(point) for point in points)
    if not out:
        raise HistoryError("no point was given; an event needs at least one.")
    return out


def _sized(items: Iterable[object], size: int, of: str, what: str) -> tuple[object, ...]:
    out = tuple(items)
    if len(out) != size:
        raise HistoryError(f"{size} {of} but {len(out)} {what}; give one for each.")
    return out


def _plain_models(models: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    # Through JSON at once: the running study and the reloaded one then start from equal numbers.
    try:
        plain = json.loads(json.dumps([dict(model) for model in models], allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(
            f"models must be plain JSON, one object with finite numbers each: {error}."
        ) from error
    return tuple(plain)
