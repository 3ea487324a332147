"""What can happen to a study: one frozen record for each thing, well formed by construction.

One batch is one event, so half a batch cannot exist. Whatever an event alone can tell is checked
when it is built (numbers finite, lengths equal, no id twice); whether it fits what happened before
is checked by ``History.check``.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np

from covey.errors import HistoryError, is_whole, several

# A point of the search space, and one trial of it.

Status: TypeAlias = Literal["pending", "told", "failed", "cancelled", "lost"]
Origin: TypeAlias = Literal["asked", "enqueued", "added"]


class Point(dict[str, Any]):
    """A dict that cannot be changed, so that a trial handed out cannot rewrite the log.

    >>> point = Point(lr=0.1, opt="adam")
    >>> point == {"lr": 0.1, "opt": "adam"}
    True
    >>> point["lr"] = 0.2
    Traceback (most recent call last):
        ...
    TypeError: a point is read-only; change a copy instead: dict(point).
    """

    __slots__ = ()

    def _refuse(self, *_args: Any, **_changes: Any) -> NoReturn:
        raise TypeError("a point is read-only; change a copy instead: dict(point).")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __reduce__(self) -> tuple[type[Point], tuple[dict[str, Any]]]:
        # A dict is unpickled item by item through __setitem__, which refuses here.
        return Point, (dict(self),)


@dataclass(frozen=True, slots=True)
class Trial:
    """One point that was asked for, enqueued or added, and what became of it by then.

    A trial is a snapshot: one that ``ask`` returned stays pending and without a value after
    ``tell``. As it stands now it is ``study.history[trial.id]``.

    >>> Trial(0, Point(x=0.5))
    Trial(id=0, point={'x': 0.5}, value=None, status='pending', sem=None, origin='asked')
    """

    id: int
    point: Point
    value: float | None = None  # in the user's sign
    status: Status = "pending"
    sem: float | None = None  # standard error of the value, where it is known
    origin: Origin = "asked"

    def __hash__(self) -> int:
        # Points are not hashable, yet `{trial: job}` should work; equal trials share their id.
        return hash(self.id)


# What an event is made of, checked: finite numbers, ids, points, texts.

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


@dataclass(frozen=True, slots=True)
class Asked:
    """``ask`` proposed these points.

    ``models`` are the hyper-parameters it used, and ``fixed`` the parameters it was to hold, both
    as JSON; None where a log does not say.
    """

    points: tuple[Point, ...]
    strategy: str
    models: tuple[dict[str, Any], ...] | None = None
    fixed: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _assign(
            self,
            points=points_of(self.points),
            strategy=text(self.strategy, "strategy"),
            models=None if self.models is None else plain_models(self.models) or None,
            fixed=None if self.fixed is None else plain_object(self.fixed, "fixed"),
        )


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The user chose these points; they are pending from now on."""

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        _assign(self, points=points_of(self.points))


@dataclass(frozen=True, slots=True)
class Added:
    """These points were measured elsewhere; each becomes a told trial at once."""

    points: tuple[Point, ...]
    values: tuple[float, ...]
    sems: tuple[float | None, ...] = ()  # () for none known

    def __post_init__(self) -> None:
        points = points_of(self.points)
        places = range(1, len(points) + 1)
        names = [f"point {place} of {len(points)}" for place in places]
        values = sized(self.values, len(points), "point", "value")
        hint = "Leave out points without a result."
        _assign(
            self,
            points=points,
            values=tuple(
                finite_value(v, name, hint) for v, name in zip(values, names, strict=True)
            ),
            sems=standard_errors(self.sems, places, "point"),
        )


@dataclass(frozen=True, slots=True)
class Told:
    """The results of these trials came in, in the user's sign."""

    ids: tuple[int, ...]
    values: tuple[float, ...]
    sems: tuple[float | None, ...] = ()  # () for none known
    metrics: tuple[dict[str, Any] | None, ...] = ()  # what came beside each value; no model uses it

    def __post_init__(self) -> None:
        ids = trial_ids(self.ids)
        values = sized(self.values, len(ids), "trial", "value")
        _assign(
            self,
            ids=ids,
            values=tuple(trial_value(v, i) for v, i in zip(values, ids, strict=True)),
            sems=standard_errors(self.sems, ids, "trial"),
            metrics=plain_metrics(self.metrics, ids),
        )


@dataclass(frozen=True, slots=True)
class Failed:
    """These trials were run and gave no result."""

    ids: tuple[int, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=text(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Cancelled:
    """These trials were never run; their points are free again."""

    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids))


@dataclass(frozen=True, slots=True)
class Amended:
    """A told value was wrong and is corrected; ``sem=None`` keeps the standard error it had."""

    id: int
    value: float
    reason: str
    sem: float | None = None

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        reason = text(self.reason, "reason")
        if not reason.strip():
            raise HistoryError(
                f"trial {trial}: say why the value changes: study.amend({trial}, value, reason)."
            )
        _assign(
            self,
            id=trial,
            value=trial_value(self.value, trial),
            reason=reason,
            sem=standard_error(self.sem, f"trial {trial}"),
        )


@dataclass(frozen=True, slots=True)
class Dispatched:
    """An attempt to evaluate this trial is about to be handed to an engine, under this name.

    Written before the engine hears of it, so that after a crash nothing runs that the log does not
    know; the name is what it is looked up by.
    """

    id: int
    attempt: int  # 1 for the first
    name: str
    seed: int  # of the evaluation; the same for every attempt

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        attempt, seed = whole(self.attempt, "attempt"), whole(self.seed, "seed")
        _assign(self, id=trial, attempt=attempt, name=text(self.name, "name"), seed=seed)


@dataclass(frozen=True, slots=True)
class Lost:
    """These trials were not evaluated for no fault of their own; their points are free again."""

    ids: tuple[int, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=text(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Late:
    """A further result of a trial that was told already: kept, and not believed."""

    id: int
    attempt: int
    value: float

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        attempt = whole(self.attempt, "attempt")
        _assign(self, id=trial, attempt=attempt, value=trial_value(self.value, trial))


Event: TypeAlias = (
    Asked | Enqueued | Added | Told | Failed | Cancelled | Amended | Dispatched | Lost | Late
)


def _assign(event: Event, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(event, name, value)  # the way a frozen dataclass completes itself
