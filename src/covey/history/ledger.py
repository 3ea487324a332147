"""The rules of the log, and the table of trials they lead to."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from covey.errors import HistoryError
from covey.history.events import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Dispatched,
    Enqueued,
    Event,
    Failed,
    Late,
    Lost,
    Told,
)
from covey.history.trial import Origin, Status, Trial


def check(event: Event, trials: Sequence[Trial]) -> None:
    """Raise HistoryError unless the event may follow on these trials; O(size of the event)."""
    match event:
        case Asked() | Enqueued() | Added():
            return
        case Told(ids=ids):
            for i in ids:
                _require_untold(known(i, trials))
        case Failed(ids=ids) | Cancelled(ids=ids) | Lost(ids=ids):
            for i in ids:
                _require_pending(known(i, trials))
        case Dispatched(id=i):
            _require_pending(known(i, trials))
        case Amended(id=i) | Late(id=i):
            _require_told(known(i, trials))
        case _:
            raise HistoryError(f"an event of covey.history was expected, got {event!r}.")


def known(i: int, trials: Sequence[Trial]) -> Trial:
    """The trial of this id; HistoryError if there is none."""
    if 0 <= i < len(trials):
        return trials[i]
    if not trials:
        so_far = "no trial has been asked yet"
    elif len(trials) == 1:
        so_far = "the only id so far is 0"
    else:
        so_far = f"ids so far are 0 to {len(trials) - 1}"
    raise HistoryError(f"trial {i} was never asked; {so_far}.")


_STATUSES: dict[type[Event], Status] = {
    Failed: "failed",
    Cancelled: "cancelled",
    Lost: "lost",
}


class Ledger:
    """All events of a run and the trials as they stand after the last one.

    Every ``History`` of one run looks at the same ledger; the lock makes an append and the length
    it is stamped with one step.
    """

    __slots__ = (
        *("asked_count", "attempts", "batches", "events", "lock", "models", "reasons", "rounds"),
        "trials",
    )

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.trials: list[Trial] = []
        self.attempts: dict[int, list[Dispatched]] = {}  # trial id -> its dispatches, in order
        self.batches: list[int | None] = []  # of each trial, from 1; None unless it was asked for
        self.reasons: dict[int, str] = {}  # trial id -> why it failed or was lost
        self.asked_count = 0
        self.rounds = 0
        self.models: tuple[dict[str, Any], ...] | None = None
        self.lock = threading.RLock()
        for event in events:
            check(event, self.trials)
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Append an event that ``check`` has passed."""
        if isinstance(event, Asked | Enqueued | Added):
            self.trials += _created(event, len(self.trials))
            batch = self.rounds + 1 if isinstance(event, Asked) else None
            self.batches += [batch] * len(event.points)
        elif isinstance(event, Dispatched):
            self.attempts.setdefault(event.id, []).append(event)
        elif not isinstance(event, Late):
            for trial in _changed(event, self.trials):
                self.trials[trial.id] = trial
                self.reasons.pop(trial.id, None)
                if isinstance(event, Failed | Lost):
                    self.reasons[trial.id] = event.reason
        if isinstance(event, Asked):
            self.asked_count += len(event.points)
            self.rounds += 1
            self.models = self.models if event.models is None else event.models
        self.events.append(event)


def _created(event: Asked | Enqueued | Added, first_id: int) -> list[Trial]:
    ids = range(first_id, first_id + len(event.points))
    if isinstance(event, Added):
        return [
            Trial(i, point, value, "told", sem, "added")
            for i, point, value, sem in zip(
                ids, event.points, event.values, event.sems, strict=True
            )
        ]
    origin: Origin = "asked" if isinstance(event, Asked) else "enqueued"
    return [Trial(i, point, origin=origin) for i, point in zip(ids, event.points, strict=True)]


def _changed(
    event: Told | Failed | Cancelled | Lost | Amended, trials: Sequence[Trial]
) -> list[Trial]:
    if isinstance(event, Told):
        return [
            replace(trials[i], status="told", value=value, sem=sem)
            for i, value, sem in zip(event.ids, event.values, event.sems, strict=True)
        ]
    if isinstance(event, Amended):
        old = trials[event.id]
        return [replace(old, value=event.value, sem=old.sem if event.sem is None else event.sem)]
    status: Status = _STATUSES[type(event)]
    return [replace(trials[i], status=status) for i in event.ids]


def _require_pending(trial: Trial) -> None:
    if trial.status == "pending":
        return
    was = f"told {trial.value}" if trial.status == "told" else trial.status
    raise HistoryError(
        f"trial {trial.id} was already {was}; only a pending trial can be run, fail or be "
        "cancelled."
    )


def _require_untold(trial: Trial) -> None:
    # A late result is never thrown away: failed, cancelled and lost trials may still be told.
    if trial.status == "told":
        raise HistoryError(
            f"trial {trial.id} was already told {trial.value}; tell each trial once, "
            f"or correct it with study.amend({trial.id}, value, reason)."
        )


def _require_told(trial: Trial) -> None:
    if trial.status != "told":
        raise HistoryError(
            f"trial {trial.id} is {trial.status}, so there is no value to amend; "
            f"use study.tell({trial.id}, value)."
        )
