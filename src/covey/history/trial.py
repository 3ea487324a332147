"""`Point`, `Trial` (a point and what became of it) and `Batch` (the trials of one event)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NoReturn, TypeAlias

Status: TypeAlias = Literal["pending", "told", "failed", "cancelled", "lost"]
Origin: TypeAlias = Literal["asked", "enqueued", "added"]
PLAIN = "value"  # the outcome of a result that is a plain number


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


def is_plain(values: Mapping[str, float]) -> bool:
    """Whether values are one plain number, which has no other name than "value"."""
    return len(values) == 1 and PLAIN in values


def as_told(values: Mapping[str, float]) -> float | Mapping[str, float]:
    """A result as people told it: a plain number, or values by name."""
    return values[PLAIN] if is_plain(values) else dict(values)


def value_in_words(values: Mapping[str, float]) -> str:
    """Values with six digits, by name where they are no plain number.

    >>> value_in_words({"value": 0.25}), value_in_words({"yield": 71.0, "cost": 1 / 3})
    ('0.25', 'yield 71, cost 0.333333')
    """
    if is_plain(values):
        return f"{values[PLAIN]:g}"
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Trial:
    """One point that was asked for, enqueued or added, and what became of it so far.

    ``values`` has every result by its name, which is "value" for a plain number, and ``value`` is
    that of the only goal. Where there are several goals, there is no one value, and ``goal`` is
    empty.

    A trial is a snapshot: one that ``ask`` returned stays pending and without a value after
    ``tell``. As it stands now it is ``study.history[trial.id]``.

    >>> Trial(0, Point(x=0.5))
    Trial(id=0, point={'x': 0.5}, value=None, status='pending', sem=None, origin='asked')
    """

    id: int
    point: Point
    values: Point = field(default_factory=Point)  # in the user's sign
    status: Status = "pending"
    sem: float | None = None  # standard error of the value, where it is known
    origin: Origin = "asked"
    goal: str = PLAIN  # the name of the only goal; empty if there are several, or it has no value
    excluded: bool = False  # told, and neither in the model nor the best
    # Why it failed, was lost, cancelled, stopped early, amended or is excluded, if somebody said.
    reason: str = ""
    # By the clocks of those who wrote the log; None if unknown. Equal trials may differ in them.
    asked_at: datetime | None = field(default=None, compare=False)
    started_at: datetime | None = field(default=None, compare=False)  # its last attempt
    ended_at: datetime | None = field(default=None, compare=False)  # told, failed or given up

    @property
    def seconds(self) -> float | None:
        """How long its last attempt took; None where a run did not start it, or it has not ended.

        >>> from datetime import UTC
        >>> first, last = (datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in (1, 3))
        >>> Trial(0, Point(x=0.5), started_at=first, ended_at=last).seconds
        2.0
        """
        if self.started_at is None or self.ended_at is None:
            return None
        passed = (self.ended_at - self.started_at).total_seconds()
        return passed if passed >= 0.0 else None  # a clock was set back

    @property
    def value(self) -> float | None:
        """The value of the only goal; None if there is none yet, or there are several goals."""
        return self.values.get(self.goal)

    @property
    def named(self) -> Point:
        """Values by name; nothing where the result is a plain number.

        >>> Trial(0, Point(x=0.5), Point(value=2.0), "told").named
        {}
        """
        return Point() if is_plain(self.values) else self.values

    def told(
        self, values: Point, sem: float | None, goal: str | None = None, at: datetime | None = None
    ) -> Trial:
        """This trial with its result, of which one value is the only goal's.

        Values join those that were told before.
        """
        only = goal if goal is not None else next(iter(values)) if len(values) == 1 else ""
        if not goal and self.values:  # an event without the goal leaves it as it was
            only = self.goal
        return Trial(  # quicker than `replace`
            self.id,
            self.point,
            Point({**self.values, **values}) if self.values else values,
            status="told",
            sem=self.sem if sem is None else sem,
            origin=self.origin,
            goal=only,
            excluded=self.excluded,
            reason=self.reason,
            asked_at=self.asked_at,
            started_at=self.started_at,
            ended_at=self.ended_at if self.values else at,  # by the first of its values
        )

    def amended(self, values: Point, sem: float | None) -> Trial:
        """This trial with some of its values corrected; ``sem=None`` keeps the one it had."""
        values = Point({**self.values, **self.called(values)})
        return replace(self, values=values, sem=self.sem if sem is None else sem)

    def called(self, values: Point) -> Point:
        """Values under the names of this trial: a plain number is that of its only goal."""
        if self.goal and is_plain(values) and PLAIN not in self.values:
            return Point({self.goal: values[PLAIN]})
        return values

    def of_outcome(self, name: str) -> Trial:
        """This trial as of a study of one outcome: it is pending where that is not known yet."""
        if self.status != "told" or (self.goal == name and len(self.values) == 1):
            return self
        if name not in self.values:
            waiting = replace(self, values=Point(), status="pending", sem=None, excluded=False)
            return replace(waiting, reason="", ended_at=None)
        sem = self.sem if self.goal == name else None
        return replace(self, values=Point({name: self.values[name]}), sem=sem, goal=name)

    def __repr__(self) -> str:
        # Fields that only some trials have are shown for those.
        usual = ("id", "point", "value", "status", "sem", "origin")
        shown = {name: getattr(self, name) for name in usual}
        shown |= {"values": dict(self.named)} if self.named else {}
        shown |= {"excluded": True} if self.excluded else {}
        shown |= {"reason": self.reason} if self.reason else {}
        return f"Trial({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __hash__(self) -> int:
        # Points are not hashable, yet `{trial: job}` should work; equal trials share their id.
        return hash(self.id)

    def to_json(self, point_to_json: Callable[[Point], Any] = dict) -> dict[str, Any]:
        """The trial as a JSON object; a space knows how its points are written.

        >>> Trial(0, Point(x=0.5), Point(value=2.0), "told").to_json()["value"]
        2.0
        """
        rare: dict[str, Any] = {"values": dict(self.named)} if self.named else {}
        rare |= {"excluded": True} if self.excluded else {}
        return {
            "id": self.id,
            "status": self.status,
            "value": self.value,
            "sem": self.sem,
            "origin": self.origin,
            "point": point_to_json(self.point),
            **rare,
        }


@dataclass(frozen=True, slots=True)
class Batch:
    """The trials that one event created: asked for, enqueued or added together."""

    origin: Origin
    round: int | None  # the number of the ask, from 1; None unless it was asked for
    first: int  # id of its first trial
    points: tuple[Point, ...] = field(hash=False, repr=False)  # points have no hash
    place: int  # index of its event in the log, from 0
    strategy: str = ""  # the one that chose it
    modelled: bool = False  # whether a model chose it
    after: int | None = None  # number of events it was chosen from, if not all before it
    reasons: tuple[str, ...] = field(default=(), repr=False)  # why each is in it, if that is known
    nats: tuple[float, ...] = field(default=(), repr=False)  # what each tells beyond those before

    def why(self, id: int) -> str:
        """Why this trial is in the batch, in words; empty if nobody said.

        >>> points = (Point(x=0.1), Point(x=0.9))
        >>> Batch("asked", 1, 0, points, 0, reasons=("first", "drawn"), nats=(1.2, 0.84)).why(1)
        'drawn; adds 0.84 nats given those before it'
        """
        if id not in self.ids or not self.reasons:
            return ""
        place = id - self.first
        more = f"; adds {self.nats[place]:.2g} nats given those before it" if self.nats else ""
        return f"{self.reasons[place]}{more}"

    @property
    def known(self) -> int:
        """How many events of the log it was chosen from."""
        return self.place if self.after is None else min(self.after, self.place)

    @property
    def ids(self) -> range:
        """The ids of its trials."""
        return range(self.first, self.first + len(self.points))

    @property
    def name(self) -> str:
        """What to call it."""
        return self.origin if self.round is None else f"batch {self.round}"
