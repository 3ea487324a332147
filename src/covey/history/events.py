"""The events of a study: one frozen dataclass for each kind, well formed by construction.

One batch is one event, so half a batch cannot exist. Each event checks itself when it is built
(numbers finite, lengths equal, no id twice); ``History.check`` whether it fits those before it.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np

from covey.errors import HistoryError, is_whole, several
from covey.history.trial import Point

MOST = 1e100  # largest absolute value or error: squares must not overflow


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


def trial_outcome(value: object, trial: int) -> float | Point:
    """The value of a trial, or several by name."""
    if type(value) is float and -MOST <= value <= MOST:  # the usual case, and quicker
        return value
    return outcome(value, f"trial {trial}", f"Use study.fail({trial}) if the run crashed.")


def outcome(value: object, name: str, hint: str) -> float | Point:
    """A value; or several by name, for goals and limits."""
    if not isinstance(value, Mapping) or not value:
        return finite_value(value, name, hint)
    if not all(isinstance(key, str) and key for key in value):
        raise HistoryError(f"{name}: values by name are {{name: number, ...}}, got {value!r}.")
    return Point({key: finite_value(v, f"{name}, {key!r}", hint) for key, v in value.items()})


def is_named(event: Event) -> bool:
    """Whether an event carries values by name."""
    if isinstance(event, Told | Added):
        return isinstance(event.values[0], Point)  # all of them, or none
    return isinstance(event, Amended) and isinstance(event.value, Point)


def checked_goal(
    goal: object, values: Sequence[float | Point], sems: Sequence[float | None]
) -> str | None:
    """The name of the only goal among values by name; empty: several goals; None: not said."""
    named = [value for value in values if isinstance(value, Point)]
    if len(named) not in (0, len(values)):
        raise HistoryError("some values have names and some have none; name all of them, or none.")
    if goal:
        # Where a value lacks it, it comes later.
        if not any(goal in value for value in named):
            raise HistoryError(f"the goal {goal!r} has no value in {values[0]!r}; name it there.")
        return text(goal, "goal")
    for value, sem in zip(values, sems, strict=True):
        if sem is not None and isinstance(value, Point) and len(value) > 1:
            raise HistoryError(
                f"a standard error belongs to one value, and {dict(value)} are several; leave it "
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
    """The items as a tuple, if there are ``size`` of them."""
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
    """What was returned beside the value of each trial, as plain JSON objects; () if nothing."""
    given = tuple(metrics)
    if not given:
        return (None,) * len(ids)
    sized(given, len(ids), "trial", "metric")
    # Empty objects are dropped: the log then has no such field.
    return tuple(plain_object(one, "metrics") if one else None for one in given)


def plain_models(models: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Hyper-parameters as plain JSON."""
    # Through JSON, so that the running study and the reloaded one start from equal numbers.
    plain = plain_object({"all": models}, "models")["all"]
    if not isinstance(plain, list) or not all(isinstance(model, dict) for model in plain):
        raise HistoryError(f"models must be plain JSON, one object each; got {models!r}.")
    return tuple(plain)


@dataclass(frozen=True, slots=True)
class Asked:
    """``ask`` proposed these points.

    ``models`` are the hyper-parameters it used, and ``fixed`` the parameters that were held fixed,
    both as JSON; None where a log does not say. The batch was chosen from the events up to number
    ``after``; None: from all that precede it. ``reasons`` say why each point was chosen, ``nats``,
    to three digits, what it tells beyond those before it; () where a log does not.
    """

    points: tuple[Point, ...]
    strategy: str
    models: tuple[dict[str, Any], ...] | None = None
    fixed: dict[str, Any] | None = None
    after: int | None = None
    reasons: tuple[str, ...] = ()
    nats: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        points = points_of(self.points)
        reasons = sized(self.reasons, len(points) if self.reasons else 0, "point", "reason")
        nats = sized(self.nats, len(points) if self.nats else 0, "point", "gain in nats")
        _assign(
            self,
            points=points,
            reasons=tuple(text(reason, "a reason") for reason in reasons),
            nats=tuple(float(f"{finite_value(gain, 'nats', ''):.3g}") for gain in nats),
            strategy=text(self.strategy, "strategy"),
            models=None if self.models is None else plain_models(self.models) or None,
            fixed=None if self.fixed is None else plain_object(self.fixed, "fixed"),
            after=None if self.after is None else whole(self.after, "after"),
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
    values: tuple[float | Point, ...]  # as of `Told`
    sems: tuple[float | None, ...] = ()  # () for none known
    metrics: tuple[dict[str, Any] | None, ...] = ()
    goal: str | None = None

    def __post_init__(self) -> None:
        points = points_of(self.points)
        places = range(1, len(points) + 1)
        names = [f"point {place} of {len(points)}" for place in places]
        given = sized(self.values, len(points), "point", "value")
        hint = "Leave out points without a result."
        values = tuple(outcome(v, name, hint) for v, name in zip(given, names, strict=True))
        sems = standard_errors(self.sems, places, "point")
        metrics = plain_metrics(self.metrics, places)
        goal = checked_goal(self.goal, values, sems)
        _assign(self, points=points, values=values, sems=sems, metrics=metrics, goal=goal)


@dataclass(frozen=True, slots=True)
class Told:
    """The results of these trials came in, in the user's sign.

    A value is a number; or, where there are several goals or limits, an object {name: number}, and
    ``goal`` names the only goal among them; it is empty if there are several. Those that are not
    known yet come with a further event. What else is to be recorded is in ``metrics``.
    """

    ids: tuple[int, ...]
    values: tuple[float | Point, ...]
    sems: tuple[float | None, ...] = ()  # of the only goal's value; () for none known
    metrics: tuple[dict[str, Any] | None, ...] = ()
    goal: str | None = None

    def __post_init__(self) -> None:
        ids = trial_ids(self.ids)
        given = sized(self.values, len(ids), "trial", "value")
        values = tuple(trial_outcome(v, i) for v, i in zip(given, ids, strict=True))
        sems = standard_errors(self.sems, ids, "trial")
        metrics = plain_metrics(self.metrics, ids)
        goal = checked_goal(self.goal, values, sems)
        _assign(self, ids=ids, values=values, sems=sems, metrics=metrics, goal=goal)


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
    value: float | Point  # by name: those that change
    reason: str
    sem: float | None = None

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        if not text(self.reason, "reason").strip():
            raise HistoryError(
                f"trial {trial}: say why the value changes: study.amend({trial}, value, reason)."
            )
        _assign(
            self,
            id=trial,
            value=trial_outcome(self.value, trial),
            sem=standard_error(self.sem, f"trial {trial}"),
        )


@dataclass(frozen=True, slots=True)
class Dispatched:
    """An attempt is about to be handed to an engine, which finds it again by its name."""

    id: int
    attempt: int  # 1 for the first
    name: str
    seed: int  # of the evaluation; the same for every attempt
    slot: int | None = None  # its place among those that run at once, and its GPU
    gpu: str | None = None

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        attempt, seed = whole(self.attempt, "attempt"), whole(self.seed, "seed")
        slot, gpu = whole(self.slot or 0, "slot"), text(self.gpu or "", "gpu")
        _assign(self, id=trial, attempt=attempt, name=text(self.name, "name"), seed=seed)
        _assign(self, slot=None if self.slot is None else slot, gpu=gpu or None)


@dataclass(frozen=True, slots=True)
class Lost:
    """These trials were not evaluated for no fault of their own; their points are free again."""

    ids: tuple[int, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=text(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Late:
    """A further result of a trial that was told already: kept, but not used."""

    id: int
    attempt: int
    value: float

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        attempt = whole(self.attempt, "attempt")
        _assign(self, id=trial, attempt=attempt, value=trial_value(self.value, trial))


@dataclass(frozen=True, slots=True)
class Excluded:
    """These results are not trusted: they stay told, but out of the model and of the best."""

    ids: tuple[int, ...]
    reason: str

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=non_empty_text(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Included:
    """These results were excluded, and count again."""

    ids: tuple[int, ...]
    reason: str

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=non_empty_text(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Retried:
    """These trials had failed and will be run again: they are pending."""

    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids))


@dataclass(frozen=True, slots=True)
class Noted:
    """A note about these trials; it changes nothing else."""

    ids: tuple[int, ...]
    text: str

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), text=non_empty_text(self.text, "text"))


@dataclass(frozen=True, slots=True)
class Reported:
    """An intermediate value of a trial, such as that after a step of training."""

    id: int
    attempt: int
    step: int
    value: float

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        attempt, step = whole(self.attempt, "attempt"), whole(self.step, "step")
        value = trial_value(self.value, trial)
        _assign(self, id=trial, attempt=attempt, step=step, value=value)


@dataclass(frozen=True, slots=True)
class Extended:
    """The space changes from now on, described as in a header; trials stay as they are."""

    space: dict[str, Any]
    fingerprint: str
    reason: str

    def __post_init__(self) -> None:
        _assign(
            self,
            space=plain_object(self.space, "space"),
            fingerprint=non_empty_text(self.fingerprint, "fingerprint"),
            reason=non_empty_text(self.reason, "reason"),
        )


# Events that create trials, that change trials, and that leave trials as they are.
Creating: TypeAlias = Asked | Enqueued | Added
Changing: TypeAlias = Told | Amended | Failed | Cancelled | Lost | Retried | Excluded | Included
Recording: TypeAlias = Dispatched | Late | Noted | Reported | Extended
Event: TypeAlias = Creating | Changing | Recording


def ids_in(event: Event) -> tuple[int, ...]:
    """The existing trials that an event is about; those it creates are not among them."""
    match event:
        case Told(ids=ids):  # the usual case
            return ids
        case Asked() | Enqueued() | Added() | Extended():
            return ()
        case Amended(id=i) | Dispatched(id=i) | Late(id=i) | Reported(id=i):
            return (i,)
        case _:
            return event.ids


def _assign(event: Event, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(event, name, value)  # the way a frozen dataclass completes itself
