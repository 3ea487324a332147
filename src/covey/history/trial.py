"""`Point`, `Trial` (a point and what became of it) and `Batch` (the trials of one event)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, NoReturn, TypeAlias

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


def value_in_words(value: float | Mapping[str, float]) -> str:
    """A value, or several by name, with six digits.

    >>> value_in_words(0.25), value_in_words({"yield": 71.0, "cost": 1 / 3})
    ('0.25', 'yield 71, cost 0.333333')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one:g}" for name, one in value.items())
    return f"{value:g}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One point that was asked for, enqueued or added, and what became of it so far.

    ``value`` is that of the only goal. Results told by name are all in ``values``; where they are
    several goals, there is no one value, and ``goal`` is empty.

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
    named: Point | None = None  # values by name, where they were told so; frozen as a point is
    goal: str = "value"  # the name of the value; empty if none of the named is the only goal's
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
    def values(self) -> dict[str, float]:
        """Every value by its name; of one plain outcome that is "value".

        >>> Trial(0, Point(x=0.5), 2.0, "told").values
        {'value': 2.0}
        """
        if self.named is not None:
            return dict(self.named)
        return {} if self.value is None else {self.goal: self.value}

    def told(
        self,
        value: float | Point,
        sem: float | None,
        goal: str | None = None,
        at: datetime | None = None,
    ) -> Trial:
        """This trial with its result, a number or several by name, of which one is the goal's.

        Values by name join those that were told before.
        """
        if not isinstance(value, Point):  # quicker than `replace`, and no other field is set
            return Trial(
                self.id,
                self.point,
                value,
                status="told",
                sem=sem,
                origin=self.origin,
                asked_at=self.asked_at,
                started_at=self.started_at,
                ended_at=at,
            )
        only = goal if goal is not None else next(iter(value)) if len(value) == 1 else ""
        if not goal and self.named is not None:  # an event without the goal leaves it as it was
            only = self.goal
        named = Point({**(self.named or {}), **value})
        sem = self.sem if sem is None else sem
        now = replace(self, value=named.get(only), status="told", sem=sem)
        ended = at if self.ended_at is None else self.ended_at  # by the first of its values
        return replace(now, named=named, goal=only, ended_at=ended)

    def amended(self, value: float | Point, sem: float | None) -> Trial:
        """This trial with some of its values corrected; ``sem=None`` keeps the one it had."""
        given = value if isinstance(value, Point) else {self.goal: value}
        values = Point({**self.values, **given})
        named = None if self.named is None else values
        sem = self.sem if sem is None else sem
        return replace(self, value=values.get(self.goal), sem=sem, named=named)

    def __repr__(self) -> str:
        # Fields that only some trials have are shown for those.
        rare = ("named", "goal", "excluded", "reason", "asked_at", "started_at", "ended_at")
        usual = [field for field in fields(self) if field.name not in rare]
        shown = {field.name: getattr(self, field.name) for field in usual}
        shown |= {} if self.named is None else {"values": dict(self.named)}
        shown |= {"excluded": True} if self.excluded else {}
        shown |= {"reason": self.reason} if self.reason else {}
        return f"Trial({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __hash__(self) -> int:
        # Points are not hashable, yet `{trial: job}` should work; equal trials share their id.
        return hash(self.id)

    def to_json(self, point_to_json: Callable[[Point], Any] = dict) -> dict[str, Any]:
        """The trial as a JSON object; a space knows how its points are written.

        >>> Trial(0, Point(x=0.5), 2.0, "told").to_json()["value"]
        2.0
        """
        rare: dict[str, Any] = {} if self.named is None else {"values": self.values}
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
