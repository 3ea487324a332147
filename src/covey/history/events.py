"""What can happen to a study: one frozen record for each thing, well formed by construction.

One batch is one event, so half a batch cannot exist. Whatever an event alone can tell is checked
when it is built (numbers finite, lengths equal, no id twice); whether it fits what happened before
is checked by ``History.check``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from covey.errors import HistoryError
from covey.history.fields import (
    finite_value,
    plain_metrics,
    plain_models,
    plain_object,
    points_of,
    sized,
    standard_error,
    standard_errors,
    text,
    trial_ids,
    trial_value,
    whole,
)
from covey.history.trial import Point


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
