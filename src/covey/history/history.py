"""History: an immutable view on the log, stamped with the length it answers for."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from covey.errors import HistoryError, MissingExtraError
from covey.history.events import Dispatched, Event
from covey.history.fields import trial_ids
from covey.history.ledger import Ledger, check, known
from covey.history.trial import Status, Trial

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("id", "status", "value", "sem", "origin")


def beside(name: str, taken: Container[str]) -> str:
    """A column of ours beside parameters, which keep their names.

    >>> beside("batch", ["x"]), beside("batch", ["x", "batch"])
    ('batch', 'trial.batch')
    """
    while name in taken:
        name = f"trial.{name}"
    return name


class History:
    """What was asked and what was told, in order; nothing in it ever changes.

    ``then`` costs O(size of the event): all views of one run share one ledger, and the newest view
    reads it directly. An older view replays its own part of the log when it is next asked
    (O(its length), once); ``then`` on an older view forks, so neither branch sees the other.

    >>> from covey.history import Asked, Point, Told
    >>> asked = History().then(Asked((Point(x=0.1), Point(x=0.9)), "random"))
    >>> told = asked.then(Told(ids=(1,), values=(2.5,)))
    >>> told
    History(2 trials: 1 pending, 1 told)
    >>> told.best("max").point, asked.best("max")
    ({'x': 0.9}, None)
    """

    __slots__ = ("_asked_count", "_count", "_ledger", "_length", "_models", "_rounds", "_trials")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._stamp(Ledger(events))

    def _stamp(self, ledger: Ledger) -> History:
        self._ledger = ledger
        self._length = len(ledger.events)
        self._count = len(ledger.trials)
        self._asked_count = ledger.asked_count
        self._rounds = ledger.rounds
        self._models = ledger.models
        self._trials: tuple[Trial, ...] | None = None
        return self

    @property
    def _newest(self) -> bool:
        """Whether nothing was appended since; ask only while holding the ledger's lock."""
        return len(self._ledger.events) == self._length

    def check(self, event: Event) -> None:
        """Raise HistoryError unless the event may come next; changes nothing."""
        with self._ledger.lock:
            if self._newest:
                return check(event, self._ledger.trials)
        return check(event, self.trials)

    def then(self, event: Event) -> History:
        """This history and one more event.

        Raises:
            HistoryError: The event does not fit; this history goes on as it was.
        """
        with self._ledger.lock:
            ledger = self._as_it_stood()
            check(event, ledger.trials)
            ledger.apply(event)
            return History.__new__(History)._stamp(ledger)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, in the order of ids."""
        if self._trials is None:
            with self._ledger.lock:
                self._trials = tuple(self._as_it_stood().trials)
        return self._trials

    def trial(self, id: int) -> Trial:
        """The trial of this id, as it stands."""
        with self._ledger.lock:
            if self._newest and 0 <= id < self._count:
                return self._ledger.trials[id]
        return known(id, self.trials)

    def attempts(self, trial: Trial | int) -> tuple[Dispatched, ...]:
        """How often this trial was handed to an engine, and under which names."""
        id = self._id(trial)
        with self._ledger.lock:
            return tuple(self._as_it_stood().attempts.get(id, ()))

    def reason(self, trial: Trial | int) -> str:
        """Why this trial failed or was lost; empty if it was not, or if nobody said why."""
        id = self._id(trial)
        with self._ledger.lock:
            return self._as_it_stood().reasons.get(id, "")

    def batch(self, trial: Trial | int) -> int | None:
        """The number of the batch this trial was asked for in, from 1; None if it was not."""
        id = self._id(trial)
        with self._ledger.lock:
            return self._as_it_stood().batches[id]

    def _id(self, trial: Trial | int) -> int:
        (id,) = trial_ids([trial.id if isinstance(trial, Trial) else trial])
        return known(id, self.trials).id

    def _as_it_stood(self) -> Ledger:
        """The ledger as far as this view goes; ask only while holding the lock."""
        return self._ledger if self._newest else Ledger(self._prefix())

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event, in order; ``History(history.events)`` is this history again."""
        return self._prefix()

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
        """The hyper-parameters of the last batch that recorded some; the next fit starts there."""
        return self._models

    @property
    def told(self) -> tuple[Trial, ...]:
        """The trials with a value."""
        return self._having("told")

    @property
    def pending(self) -> tuple[Trial, ...]:
        """The trials still waiting for a result."""
        return self._having("pending")

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials that ran and gave no result."""
        return self._having("failed")

    def best(self, goal: Literal["max", "min"]) -> Trial | None:
        """The told trial with the largest (or smallest) value; the first of several equal ones."""
        if goal not in ("max", "min"):
            raise HistoryError(f"goal must be 'max' or 'min', got {goal!r}.")
        choose, worst = (max, -float("inf")) if goal == "max" else (min, float("inf"))
        return choose(
            self.told,
            key=lambda trial: worst if trial.value is None else trial.value,
            default=None,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per trial: id, status, value, sem, origin, the parameters, batch and reason.

        A parameter that bears the name of one of the first five is called ``point.<name>``. Its
        ``batch`` is the number of the ask that made it; the ``reason`` says why it failed or was
        lost. Where a parameter has their name, they are ``trial.batch`` and ``trial.reason``.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "frames") from error
        trials = self.trials
        data: dict[str, Any] = {
            name: [getattr(trial, name) for trial in trials] for name in _COLUMNS
        }
        data |= {name: pd.Series(data[name], dtype="float64") for name in ("value", "sem")}
        names = dict.fromkeys(name for trial in trials for name in trial.point)
        for name in names:
            column = name
            while column in _COLUMNS or (column != name and column in names):
                column = f"point.{column}"
            data[column] = [trial.point.get(name) for trial in trials]
        with self._ledger.lock:
            ledger = self._as_it_stood()
            batches = pd.Series(ledger.batches[: len(trials)], dtype="Int64")
            reasons = [ledger.reasons.get(trial.id, "") for trial in trials]
        data[beside("batch", data)] = batches
        data[beside("reason", data)] = reasons
        return pd.DataFrame(data)

    def _prefix(self) -> tuple[Event, ...]:
        return tuple(self._ledger.events[: self._length])

    def _having(self, status: Status) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.status == status)

    def __reduce__(self) -> tuple[type[History], tuple[tuple[Event, ...]]]:
        return History, (self.events,)

    def __repr__(self) -> str:
        found: dict[str, int] = {}
        for trial in self.trials:
            found[trial.status] = found.get(trial.status, 0) + 1
        parts = ", ".join(f"{found[status]} {status}" for status in sorted(found))
        noun = "trial" if len(self) == 1 else "trials"
        return f"History({len(self)} {noun}{': ' + parts if parts else ''})"
