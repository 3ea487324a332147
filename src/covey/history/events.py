"""The events of a study: one frozen dataclass for each kind, well formed by construction.

One batch is one event, so half a batch cannot exist. Each event checks itself when it is built
(numbers finite, lengths equal, no id twice); ``History.check`` whether it fits those before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from covey.errors import HistoryError
from covey.history.checks import (
    checked_goal,
    finite_value,
    frozen_point,
    non_empty_prose,
    non_empty_text,
    outcome_values,
    plain_metrics,
    plain_models,
    plain_object,
    points_of,
    prose,
    sized,
    standard_error,
    standard_errors,
    text,
    trial_ids,
    trial_value,
    trial_values,
    whole,
)
from covey.history.trial import Point
from covey.history.wells import Measured, Revised, checked_plates


@dataclass(frozen=True, slots=True)
class Asked:
    """``ask`` proposed these points.

    ``models`` are the hyper-parameters it used, and ``fixed`` the parameters that were held fixed,
    both as JSON; None where a log does not say. The batch was chosen from the events up to number
    ``after``; None: from all that precede it. ``reasons`` say why each point was chosen, ``nats``,
    to three digits, what it tells beyond those before it; () where a log does not. ``plates`` say
    which wells the points stand in, if they do (see `covey.history.wells`).
    """

    points: tuple[Point, ...]
    strategy: str
    models: tuple[dict[str, Any], ...] | None = None
    fixed: dict[str, Any] | None = None
    after: int | None = None
    reasons: tuple[str, ...] = ()
    nats: tuple[float, ...] = ()
    plates: dict[str, Any] | None = None

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
            plates=None if self.plates is None else checked_plates(self.plates, len(points)),
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
    values: tuple[Point, ...]  # as of `Told`
    sems: tuple[float | None, ...] = ()  # () for none known
    metrics: tuple[dict[str, Any] | None, ...] = ()
    goal: str | None = None

    def __post_init__(self) -> None:
        points = points_of(self.points)
        places = range(1, len(points) + 1)
        names = [f"point {place} of {len(points)}" for place in places]
        given = sized(self.values, len(points), "point", "value")
        hint = "Leave out points without a result."
        values = tuple(outcome_values(v, name, hint) for v, name in zip(given, names, strict=True))
        sems = standard_errors(self.sems, places, "point")
        metrics = plain_metrics(self.metrics, places)
        goal = checked_goal(self.goal, values, sems)
        _assign(self, points=points, values=values, sems=sems, metrics=metrics, goal=goal)


@dataclass(frozen=True, slots=True)
class Told:
    """The results of these trials came in, in the user's sign.

    Each has values by name; a plain number is that of "value". Where outcomes have names, ``goal``
    is that of the only goal among them, and empty if there are several; else None. Values that are
    not known yet come with a further event. What else is to be recorded is in ``metrics``.
    """

    ids: tuple[int, ...]
    values: tuple[Point, ...]
    sems: tuple[float | None, ...] = ()  # of the only goal's value; () for none known
    metrics: tuple[dict[str, Any] | None, ...] = ()
    goal: str | None = None

    def __post_init__(self) -> None:
        ids = trial_ids(self.ids)
        given = sized(self.values, len(ids), "trial", "value")
        values = tuple(trial_values(v, i) for v, i in zip(given, ids, strict=True))
        sems = standard_errors(self.sems, ids, "trial")
        metrics = plain_metrics(self.metrics, ids)
        goal = checked_goal(self.goal, values, sems)
        _assign(self, ids=ids, values=values, sems=sems, metrics=metrics, goal=goal)


@dataclass(frozen=True, slots=True)
class Failed:
    """These trials were run and gave no result, or with ``told`` one that is worth nothing.

    Only with ``told``, and for a reason, may a trial that has a value fail; it has none from then
    on. Without, a failure that comes after a result is refused, as one of two runs might send it.
    """

    ids: tuple[int, ...]
    reason: str = ""
    told: bool | None = None

    def __post_init__(self) -> None:
        reason = prose(self.reason, "reason")
        if self.told:
            reason = non_empty_prose(reason, "reason")
        _assign(self, ids=trial_ids(self.ids), reason=reason, told=True if self.told else None)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """These trials were never run; their points are free again."""

    ids: tuple[int, ...]
    reason: str | None = None

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=prose(self.reason or "", "reason") or None)


@dataclass(frozen=True, slots=True)
class Amended:
    """A told value was wrong and is corrected; ``sem=None`` keeps the standard error it had.

    A plain number corrects the only goal, whatever its name.
    """

    id: int
    value: Point  # those that change
    reason: str
    sem: float | None = None

    def __post_init__(self) -> None:
        (trial,) = trial_ids([self.id])
        reason = prose(self.reason, "reason")
        if not reason.strip():
            raise HistoryError(
                f"trial {trial}: say why the value changes: study.amend({trial}, value, reason)."
            )
        _assign(
            self,
            id=trial,
            value=trial_values(self.value, trial),
            reason=reason,
            sem=standard_error(self.sem, f"trial {trial}"),
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """These trials are, or were, run at other points than were asked for: those count."""

    ids: tuple[int, ...]
    points: tuple[Point, ...]
    reason: str

    def __post_init__(self) -> None:
        ids = trial_ids(self.ids)
        points = points_of(sized(self.points, len(ids), "trial", "point"))
        _assign(self, ids=ids, points=points, reason=non_empty_prose(self.reason, "reason"))


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
        _assign(self, ids=trial_ids(self.ids), reason=prose(self.reason, "reason"))


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
        _assign(self, ids=trial_ids(self.ids), reason=non_empty_prose(self.reason, "reason"))


@dataclass(frozen=True, slots=True)
class Included:
    """These results were excluded, and count again."""

    ids: tuple[int, ...]
    reason: str

    def __post_init__(self) -> None:
        _assign(self, ids=trial_ids(self.ids), reason=non_empty_prose(self.reason, "reason"))


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
        _assign(self, ids=trial_ids(self.ids), text=non_empty_prose(self.text, "text"))


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
    """The space changes from now on, described as in a header.

    ``before`` is the fingerprint of the space that it replaces. ``values`` are those that trials so
    far had of parameters that are new, and become part of their points; those of a conditional
    parameter only of the trials in whose branch it is, by their ids in ``having``.
    """

    space: dict[str, Any]
    fingerprint: str
    reason: str
    before: str | None = None  # None: that of ``fingerprint``
    values: Point | None = None
    having: dict[str, list[int]] | None = None  # a name that is not in it: every trial so far

    def __post_init__(self) -> None:
        _assign(
            self,
            space=plain_object(self.space, "space"),
            fingerprint=non_empty_text(self.fingerprint, "fingerprint"),
            reason=non_empty_prose(self.reason, "reason"),
            before=None if self.before is None else non_empty_text(self.before, "before"),
            values=frozen_point(self.values) if self.values else None,
            having=plain_object(self.having, "having") if self.having else None,
        )

    def values_of(self, id: int) -> dict[str, Any]:
        """The values that a trial so far had of new parameters."""
        having = self.having or {}
        return {n: v for n, v in (self.values or {}).items() if n not in having or id in having[n]}

    @property
    def changes(self) -> bool:
        """Whether it is another space than the one before."""
        return self.before not in (None, self.fingerprint)


@dataclass(frozen=True, slots=True)
class Began:
    """A run began: the process that it is, and what it is to do, as plain JSON.

    ``run`` names it: it is in the name of each of its attempts (`Dispatched`).
    """

    run: str
    pid: int
    host: str
    plan: dict[str, Any]

    def __post_init__(self) -> None:
        _assign(
            self,
            run=non_empty_text(self.run, "run"),
            pid=whole(self.pid, "pid"),
            host=text(self.host, "host"),
            plan=plain_object(self.plan, "plan"),
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """A run ended, and why; a run that was killed could not say so."""

    run: str
    reason: str

    def __post_init__(self) -> None:
        run, reason = non_empty_text(self.run, "run"), prose(self.reason, "reason")
        _assign(self, run=run, reason=reason)


# Events that create trials, that change trials, and that leave trials as they are.
Creating: TypeAlias = Asked | Enqueued | Added
Changing: TypeAlias = (
    (Told | Measured | Revised | Amended | Moved | Failed | Cancelled | Lost | Retried)
    | Excluded
    | Included
)
Recording: TypeAlias = Dispatched | Late | Noted | Reported | Extended | Began | Ended
Event: TypeAlias = Creating | Changing | Recording


def ids_in(event: Event) -> tuple[int, ...]:
    """The existing trials that an event is about; those it creates are not among them."""
    match event:
        case Told(ids=ids):  # the usual case
            return ids
        case Asked() | Enqueued() | Added() | Extended() | Began() | Ended():
            return ()
        case Amended(id=i) | Dispatched(id=i) | Late(id=i) | Reported(id=i):
            return (i,)
        case _:
            return event.ids


def _assign(event: Event, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(event, name, value)  # the way a frozen dataclass completes itself
