"""`History`: an immutable view of the events up to some length, and the trials they lead to.

`Ledger` is what the views of one study share; which event may follow is in rules.py.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from itertools import repeat, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from covey.errors import HistoryError, is_whole
from covey.history.checks import trial_ids
from covey.history.events import (
    Added,
    Amended,
    Asked,
    Began,
    Cancelled,
    Changing,
    Creating,
    Dispatched,
    Ended,
    Enqueued,
    Event,
    Excluded,
    Extended,
    Failed,
    Included,
    Late,
    Lost,
    Moved,
    Noted,
    Recording,
    Reported,
    Retried,
    Told,
    ids_in,
)
from covey.history.rules import Correction, check, corrections_in, known
from covey.history.trial import PLAIN, Batch, Origin, Point, Status, Trial
from covey.history.wells import Measured, PlateBook, Revised, mean_and_error

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")

_CHANGES: dict[type[Event], Mapping[str, Any]] = {  # to each trial of an event
    Failed: {
        **{"status": "failed", "values": Point(), "sem": None},
        **{"goal": PLAIN, "excluded": False},
    },
    Cancelled: {"status": "cancelled"},
    Lost: {"status": "lost"},
    Retried: {"status": "pending", "started_at": None, "ended_at": None},
    Excluded: {"excluded": True},
    Included: {"excluded": False},
}


class Ledger:
    """All events of a study, and the trials as they are after the last one.

    It belongs to the views that go on from one another, and is appended to under their lock.
    """

    __slots__ = (
        *("asked_count", "attempts", "batches", "events", "models", "notes"),
        *("_of_space", "metrics", "plates", "reports", "rounds", "times", "trials"),
    )

    def __init__(self, events: Iterable[Event] = (), times: Iterable[datetime | None] = ()) -> None:
        self.events: list[Event] = []
        self.times: list[datetime | None] = []  # of each event, as far as they are known
        self.trials: list[Trial] = []
        self.attempts: dict[int, list[Dispatched]] = {}  # trial id -> its attempts, in order
        self.batches: list[Batch] = []  # in the order of their trials' ids
        self.notes: dict[int, list[str]] = {}
        self.reports: dict[int, list[Reported]] = {}
        self.metrics: dict[int, dict[str, Any]] = {}  # trial id -> what was recorded beside values
        self.plates = PlateBook()
        self.asked_count = self.rounds = 0
        self.models: tuple[dict[str, Any], ...] | None = None
        # Fingerprint of a space that was left -> the hyper-parameters of the last batch in it.
        self._of_space: dict[str, tuple[dict[str, Any], ...] | None] = {}
        for event, at in zip_longest(events, times) if times else zip(events, repeat(None)):
            self.check(event)
            self.apply(event, at)

    def check(self, event: Event) -> None:
        """Raise HistoryError unless the event may come next."""
        check(event, self.trials)
        if isinstance(event, Measured | Revised):
            self.plates.check(event, self.trials)
        if isinstance(event, Asked) and event.plates is not None:
            self.plates.require_new(event.plates)
        if isinstance(event, Failed) and event.told:
            self.plates.require_unread(event.ids, self.trials)

    def apply(self, event: Event, at: datetime | None = None) -> None:
        """Append an event that ``check`` has passed, and that was logged at this time."""
        match event:
            case Told():
                self._change(event, at)
            case Asked() | Enqueued() | Added():
                self._create(event, at)
            case Dispatched() | Reported() | Noted() | Late() | Extended() | Began() | Ended():
                self._keep(event, at)
            case _:
                self._change(event, at)
        self.events.append(event)
        self.times.append(at)

    def _keep(self, event: Recording, at: datetime | None) -> None:
        """Take in what leaves trials as they are; some of it is in the events alone."""
        match event:
            case Dispatched(id=i):
                self.attempts.setdefault(i, []).append(event)
                self.trials[i] = replace(self.trials[i], started_at=at)
            case Reported(id=i):
                self.reports.setdefault(i, []).append(event)
            case Noted(ids=ids, text=text):
                for i in ids:
                    self.notes.setdefault(i, []).append(text)
            case Extended():
                self._extend(event)

    def _extend(self, event: Extended) -> None:
        """Complete the points of all trials; hyper-parameters belong to the space they are of."""
        if event.values is not None:
            self.trials = [
                replace(trial, point=Point({**trial.point, **event.values_of(trial.id)}))
                for trial in self.trials
            ]
        if event.before is not None and event.changes:
            self._of_space[event.before] = self.models
            self.models = self._of_space.get(event.fingerprint)

    def _record(self, event: Told | Added, ids: Iterable[int]) -> None:
        for i, found in zip(ids, event.metrics, strict=True):
            if found is not None:
                self.metrics[i] = {**self.metrics.get(i, {}), **found}

    def _create(self, event: Creating, at: datetime | None) -> None:
        first, place, points = len(self.trials), len(self.events), event.points
        if isinstance(event, Asked):
            self.rounds += 1
            self.asked_count += len(points)
            self.models = self.models if event.models is None else event.models
            made = Batch("asked", self.rounds, first, points, place, event.strategy)
            made = replace(made, modelled=bool(event.models), after=event.after)
            made = replace(made, reasons=event.reasons, nats=event.nats)
            if event.plates is not None:
                self.plates.create(event.plates, first)
        else:
            origin: Origin = "enqueued" if isinstance(event, Enqueued) else "added"
            made = Batch(origin, None, first, points, place)
        self.batches.append(made)
        pairs = zip(made.ids, points, strict=True)
        new = [Trial(i, p, origin=made.origin, asked_at=at) for i, p in pairs]
        self.trials += _told(event, new, at) if isinstance(event, Added) else new
        if isinstance(event, Added):
            self._record(event, made.ids)

    def _put(self, trial: Trial, reason: str) -> None:
        """Keep a trial as it is now, and why it is so."""
        self.trials[trial.id] = trial if trial.reason == reason else replace(trial, reason=reason)

    def _change(self, event: Changing, at: datetime | None) -> None:
        if isinstance(event, Measured | Revised):
            for trial in self.plates.take(event, self.trials, at):
                self.trials[trial.id] = trial
            return
        trials = [self.trials[i] for i in ids_in(event)]
        if isinstance(event, Amended | Moved):  # what was recorded of it before stays
            for trial in _corrected(event, trials):
                kept = trial.excluded or isinstance(event, Moved)
                self._put(trial, trial.reason if kept else event.reason)
            return
        if isinstance(event, Told):
            changed = _told(event, trials, at)
            self._record(event, event.ids)
        else:
            changed = [replace(trial, **_CHANGES[type(event)]) for trial in trials]
        if isinstance(event, Failed | Cancelled | Lost):  # a result is worthless only afterwards
            ended = [at if was.status == "pending" else was.ended_at for was in trials]
            pairs = zip(changed, ended, strict=True)
            changed = [replace(trial, ended_at=when) for trial, when in pairs]
        reason = event.reason if isinstance(event, Failed | Cancelled | Lost | Excluded) else ""
        for trial in changed:
            # A further value of an excluded trial changes nothing of why it is excluded.
            kept = isinstance(event, Told) and trial.excluded
            early = self._stopped(trial) if isinstance(event, Told) else ""
            self._put(trial, trial.reason if kept else early or reason or "")

    def _stopped(self, trial: Trial) -> str:
        """That a run stopped it early, in words: it was told its last report, and the step."""
        step, reports = self.metrics.get(trial.id, {}).get("stopped"), self.reports.get(trial.id)
        early = is_whole(step, 0) and reports and reports[-1].value == trial.value
        return f"stopped early at step {step}" if early else ""


def _told(event: Told | Added, trials: Iterable[Trial], at: datetime | None) -> list[Trial]:
    results = zip(trials, event.values, event.sems, strict=True)
    return [trial.told(values, sem, event.goal, at) for trial, values, sem in results]


def _corrected(event: Amended | Moved, trials: Sequence[Trial]) -> list[Trial]:
    if isinstance(event, Amended):
        return [trials[0].amended(event.value, event.sem)]
    return [replace(t, point=point) for t, point in zip(trials, event.points, strict=True)]


def _of_outcome(trial: Trial, name: str, book: PlateBook) -> Trial:
    """Return a trial as of a study of one outcome, whose standard error is that of its wells."""
    own = trial.of_outcome(name)
    read = [] if own is trial or own.value is None else book.readings_of(trial.id)
    if not read or trial.goal == name:
        return own
    mean, error = mean_and_error([values[name] for _, _, values in read])
    return replace(own, sem=error) if own.value == mean else own


def models_of(
    models: Iterable[dict[str, Any]] | None, outcome: str
) -> tuple[dict[str, Any], ...] | None:
    """Return the hyper-parameters of one outcome; None if none were logged for it."""
    return tuple(m for m in models or () if m.get("outcome", PLAIN) == outcome) or None


def _stopped_in(ledger: Ledger, outcome: str) -> dict[int, int]:
    """Return the last step of each trial that was stopped early, of those with this only goal."""
    found = {}
    for i, metrics in ledger.metrics.items():
        step: Any = metrics.get("stopped")
        reports, trial = ledger.reports.get(i, []), ledger.trials[i]
        if not reports or reports[-1].step != step or not is_whole(step, 0):
            continue
        # One that came to its end all the same has been given the value it had there.
        if reports[-1].value == trial.value and outcome in ("", trial.goal):
            found[i] = int(step)
    return found


def _trials_named(event: Event, book: PlateBook) -> Iterable[int]:
    """Return the ids of existing trials that an event is about, by their wells too."""
    if isinstance(event, Measured | Revised):
        return book.trials_in(event.plate, event.wells)
    return ids_in(event)


class History:
    """What was asked and what was told, in order; nothing in it ever changes.

    ``then`` costs O(size of the event): it appends to the ledger, which the new view shares. A view
    that finds events after its own there replays its own once, and has that ledger from then on: so
    an older view stays what it was, and ``then`` on it forks.

    >>> from covey.history import Asked, Point, Told
    >>> asked = History().then(Asked((Point(x=0.1), Point(x=0.9)), "random"))
    >>> told = asked.then(Told(ids=(1,), values=(2.5,)))
    >>> told
    History(2 trials: 1 pending, 1 told)
    >>> told.best("max").point, asked.best("max")
    ({'x': 0.9}, None)
    """

    __slots__ = (
        *("_asked_count", "_count", "_ledger", "_length", "_lock", "_models", "_outcome"),
        *("_rounds", "_trials"),
    )

    def __init__(self, events: Iterable[Event] = (), times: Iterable[datetime | None] = ()) -> None:
        self._stamp(Ledger(events, times), threading.RLock())

    def _stamp(self, ledger: Ledger, lock: threading.RLock) -> History:
        self._ledger, self._lock = ledger, lock  # the lock is that of all views of one study
        self._length = len(ledger.events)
        self._count = len(ledger.trials)
        self._asked_count = ledger.asked_count
        self._rounds = ledger.rounds
        self._models = ledger.models
        self._trials: tuple[Trial, ...] | None = None
        self._outcome = ""  # the only one that is looked at, see `of_outcome`
        return self

    def _read(self, look: Callable[[Ledger], _T]) -> _T:
        """Return what `look` finds in the ledger as it stood after the last event of this view."""
        with self._lock:
            if len(self._ledger.events) > self._length:  # others have gone on from here
                self._ledger = Ledger(self.events, self.times)
            return look(self._ledger)

    def check(self, event: Event) -> None:
        """Raise HistoryError unless the event may come next; changes nothing."""
        self._read(lambda ledger: ledger.check(event))

    def then(self, event: Event, at: datetime | None = None) -> History:
        """Return this history and one more event, which was logged at this time.

        Raises:
            HistoryError: The event does not fit; this history goes on as it was.
        """
        self.check(event)
        return self.then_checked(event, at)

    def then_checked(self, event: Event, at: datetime | None = None) -> History:
        """Return this history and one more event, which `check` has passed on this very view."""

        def appended(ledger: Ledger) -> History:
            ledger.apply(event, at)
            return History.__new__(History)._stamp(ledger, self._lock)

        return self._read(appended)

    def changed_since(self, earlier: History) -> tuple[Trial, ...]:
        """Return the trials that the events after an earlier view created or name, as of now."""
        with self._lock:
            events = self._ledger.events[earlier._length : self._length]
            book = self._ledger.plates  # which only gains plates
            named = {id for event in events for id in _trials_named(event, book)}
        return tuple(map(self.trial, sorted(named.union(range(len(earlier), len(self))))))

    def of_outcome(self, name: str) -> History:
        """Return this view as of a study of one outcome alone: where it is not told, trials wait.

        The trials as they stand have no other value, and the hyper-parameters are those that were
        logged for it. Events, batches and plates are those of the whole study.
        """
        view = copy(self)
        view._outcome, view._models = name, models_of(self._models, name)
        book = self.plates
        view._trials = tuple(_of_outcome(trial, name, book) for trial in self.trials)
        return view

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, in the order of ids."""
        if self._trials is None:
            self._trials = self._read(lambda ledger: tuple(ledger.trials))
        return self._trials

    def trial(self, id: int) -> Trial:
        """The trial of this id, as it stands."""
        if self._trials is not None:
            return known(id, self._trials)
        return self._read(lambda ledger: known(id, ledger.trials))

    def attempts(self, trial: Trial | int) -> tuple[Dispatched, ...]:
        """How often this trial was handed to an engine, and under which names."""
        id = self._id(trial)
        return self._read(lambda ledger: tuple(ledger.attempts.get(id, ())))

    def reason(self, trial: Trial | int) -> str:
        """Why it failed, was lost, cancelled, stopped early, amended or is excluded; empty if not.

        It is empty also where nobody said why.
        """
        return self.trial(self._id(trial)).reason

    def metrics(self, trial: Trial | int) -> dict[str, Any]:
        """What was recorded beside the values of this trial."""
        id = self._id(trial)
        return self._read(lambda ledger: dict(ledger.metrics.get(id, {})))

    def notes(self, trial: Trial | int) -> tuple[str, ...]:
        """What people wrote about this trial, in order."""
        id = self._id(trial)
        return self._read(lambda ledger: tuple(ledger.notes.get(id, ())))

    def reports(self, trial: Trial | int) -> tuple[Reported, ...]:
        """Intermediate values of this trial, in the order they came."""
        id = self._id(trial)
        return self._read(lambda ledger: tuple(ledger.reports.get(id, ())))

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Which event made which trials: every batch asked for, enqueued or added, in order."""
        return self._read(lambda ledger: tuple(ledger.batches))

    def batch(self, trial: Trial | int) -> int | None:
        """The number of the batch this trial was asked for in, from 1; None if it was not."""
        return self._batch_of(self._id(trial)).round

    def point_asked(self, trial: Trial | int) -> Point:
        """The point that was asked for, enqueued or added; a trial may have been run at another."""
        id = self._id(trial)
        batch = self._batch_of(id)
        return batch.points[id - batch.first]

    def why(self, trial: Trial | int) -> str:
        """Why this trial is in its batch, in words; empty if the log does not say."""
        id = self._id(trial)
        return self._batch_of(id).why(id)

    def _batch_of(self, id: int) -> Batch:
        """The event that made this trial."""

        def last_begun(ledger: Ledger) -> Batch:
            return ledger.batches[bisect_right(ledger.batches, id, key=attrgetter("first")) - 1]

        return self._read(last_begun)

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """What was amended, marked, excluded, included or run otherwise than asked, in order."""
        book = self.plates
        return tuple(found for event in self.events for found in corrections_in(event, book))

    @property
    def plates(self) -> PlateBook:
        """The plates of the log, with what stands in their wells and what was measured there."""
        return self._read(lambda ledger: ledger.plates.snapshot())

    def _id(self, trial: Trial | int) -> int:
        (id,) = trial_ids([trial.id if isinstance(trial, Trial) else trial])
        return self.trial(id).id

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event, in order; ``History(history.events)`` is this history again."""
        return tuple(self._ledger.events[: self._length])

    @property
    def times(self) -> tuple[datetime | None, ...]:
        """When each event was logged, by the clock of who did; None where that is not known."""
        return tuple(self._ledger.times[: self._length])

    def __len__(self) -> int:
        """The number of trials, which is also the next id."""
        return self._count

    def __iter__(self) -> Iterator[Trial]:
        """Every trial, in the order of ids."""
        return iter(self.trials)

    @overload
    def __getitem__(self, id: int) -> Trial: ...
    @overload
    def __getitem__(self, id: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, id: int | slice) -> Trial | tuple[Trial, ...]:
        """The trial of this id, as it stands, or several; counted from the end if negative."""
        try:
            return self.trials[id]
        except (IndexError, TypeError) as error:
            raise HistoryError(f"there is no trial {id!r} among {len(self)}: {error}.") from error

    @property
    def asked_count(self) -> int:
        """The number of points ever proposed by ``ask``; the random generator starts from it."""
        return self._asked_count

    @property
    def rounds(self) -> int:
        """The number of batches proposed by ``ask``."""
        return self._rounds

    @property
    def models(self) -> tuple[dict[str, Any], ...] | None:
        """The hyper-parameters of the last batch in this space; the next fit starts there."""
        return self._models

    @property
    def told(self) -> tuple[Trial, ...]:
        """The trials with a value."""
        return self._having("told")

    @property
    def counted(self) -> tuple[Trial, ...]:
        """The told trials that the model learns from and the best is chosen among.

        Left out are excluded trials, and those with several goals, of which none is the value.
        """
        return tuple(t for t in self.told if not t.excluded and t.value is not None)

    @property
    def pending(self) -> tuple[Trial, ...]:
        """The trials still waiting for a result."""
        return self._having("pending")

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials that ran and gave no result."""
        return self._having("failed")

    @property
    def stopped(self) -> dict[int, int]:
        """The told trials whose evaluation was stopped early, each with its last step."""
        # An evaluation reports the only goal; of another outcome every value is the last.
        return self._read(lambda ledger: _stopped_in(ledger, self._outcome))

    @property
    def ended(self) -> tuple[Trial, ...]:
        """The counted trials that were not stopped early; all that count, if each of them was."""
        counted, stopped = self.counted, self.stopped
        return tuple(t for t in counted if t.id not in stopped) or counted

    def best(self, goal: Literal["max", "min"]) -> Trial | None:
        """The trial of `ended` with the largest (or smallest) value; the first of equal ones."""
        if goal not in ("max", "min"):
            raise HistoryError(f"goal must be 'max' or 'min', got {goal!r}.")
        choose, worst = (max, -float("inf")) if goal == "max" else (min, float("inf"))
        return choose(
            self.ended,
            key=lambda trial: worst if trial.value is None else trial.value,
            default=None,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per trial: id, status, value, sem, origin, parameters, batch, reason, times.

        A parameter that bears the name of one of the first five is called ``point.<name>``. Values
        told by name, and what was recorded beside them, have a column each after the parameters.
        Its ``batch`` is the number of the ask that made it; the ``reason`` says why it failed, was
        lost, cancelled, stopped early, amended or is excluded (there is a column ``excluded`` if
        one is). Then come ``asked``, ``started`` and ``ended``, in UTC, and the ``seconds`` that
        its last attempt took; a column ``notes`` if there are some. Where a parameter has their
        name, they are ``trial.batch`` and so on.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from covey.history.frame import frame_of

        return self._read(frame_of)

    def _having(self, status: Status) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.status == status)

    def __reduce__(self) -> tuple[type[History], tuple[Any, ...]]:
        return History, (self.events, self.times)

    def __repr__(self) -> str:
        found = Counter(trial.status for trial in self.trials)
        out = sum(trial.excluded for trial in self.trials)
        parts = ", ".join(f"{found[status]} {status}" for status in sorted(found))
        parts += f" ({out} excluded)" if out else ""  # "told" comes last
        noun = "trial" if len(self) == 1 else "trials"
        return f"History({len(self)} {noun}{': ' + parts if parts else ''})"
