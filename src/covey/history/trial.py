"""A point of the search space, and one trial of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

    def to_json(self, point_to_json: Callable[[Point], Any] = dict) -> dict[str, Any]:
        """The trial as a JSON object; a space knows how its points are written.

        >>> Trial(0, Point(x=0.5), 2.0, "told").to_json()["value"]
        2.0
        """
        return {
            "id": self.id,
            "status": self.status,
            "value": self.value,
            "sem": self.sem,
            "origin": self.origin,
            "point": point_to_json(self.point),
        }
