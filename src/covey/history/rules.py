"""Which event may follow on which trials (`check`), and what it corrects (`corrections_in`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from covey.errors import HistoryError
from covey.history.events import (
    Added,
    Amended,
    Asked,
    Began,
    Cancelled,
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
    Reported,
    Retried,
    Told,
    ids_in,
)
from covey.history.trial import Point, Trial, as_told, value_in_words
from covey.history.wells import Measured, PlateBook, Revised


def check(event: Event, trials: Sequence[Trial]) -> None:
    """Raise HistoryError unless the event may follow on these trials; O(size of the event)."""
    if type(event) not in _RULES:
        raise HistoryError(f"an event of covey.history was expected, got {event!r}.")
    rule = _RULES[type(event)]
    for i in ids_in(event):
        rule(known(i, trials))
    if isinstance(event, Told):
        for i, values in zip(event.ids, event.values, strict=True):
            _require_untold(trials[i], values)
    if isinstance(event, Failed):
        _require_may_fail(event, trials)
    if isinstance(event, Amended):
        _require_named_so(trials[event.id], event.value)


def known(i: int, trials: Sequence[Trial]) -> Trial:
    """The trial of this id; HistoryError if there is none."""
    if 0 <= i < len(trials):
        return trials[i]
    several = f"ids so far are 0 to {len(trials) - 1}" if trials else "no trial has been asked yet"
    so_far = "the only id so far is 0" if len(trials) == 1 else several
    raise HistoryError(f"trial {i} was never asked; {so_far}.")


def _require_may_fail(event: Failed, trials: Sequence[Trial]) -> None:
    for trial in (trials[i] for i in event.ids):
        if not (event.told and trial.status == "told"):
            _require_pending(trial)


def _require_pending(trial: Trial) -> None:
    if trial.status == "pending":
        return
    was = f"told {as_told(trial.values)}" if trial.status == "told" else trial.status
    instead = ""
    if trial.status == "told":
        case = "the rest cannot be measured" if trial.named else "it is worth nothing"
        instead = f" If {case}: study.exclude({trial.id}, reason)"
        instead += f", or study.fail({trial.id}, reason, told=True)."
    raise HistoryError(
        f"trial {trial.id} was already {was}; only a pending trial can be run, fail or be "
        f"cancelled.{instead}"
    )


def _require_untold(trial: Trial, values: Point) -> None:
    # A late result is never discarded: failed, cancelled and lost trials may still be told. Values
    # may come one after the other.
    if trial.status == "told" and not trial.values.keys().isdisjoint(trial.called(values)):
        raise HistoryError(
            f"trial {trial.id} was already told {as_told(trial.values)}; tell each trial once, "
            f"or correct it with study.amend({trial.id}, value, reason)."
        )


def _require_told(trial: Trial) -> None:
    if trial.status != "told":
        raise HistoryError(
            f"trial {trial.id} is {trial.status}, so there is no value to amend; "
            f"use study.tell({trial.id}, value)."
        )


def _require_failed(trial: Trial) -> None:
    if trial.status == "failed":
        return
    instead = {
        "told": "amend a wrong value, or exclude it",
        "pending": "it is still to be run",
    }.get(trial.status, "enqueue its point, which is free again")
    raise HistoryError(
        f"trial {trial.id} is {trial.status}; only a failed trial is retried: {instead}."
    )


def _require_counted(trial: Trial) -> None:
    if trial.excluded:
        raise HistoryError(f"trial {trial.id} is excluded already; include it to take that back.")
    if trial.status != "told":
        instead = "; cancel it if it will not be run" if trial.status == "pending" else ""
        raise HistoryError(
            f"trial {trial.id} is {trial.status}, and only a result is excluded{instead}."
        )


def _require_excluded(trial: Trial) -> None:
    if not trial.excluded:
        raise HistoryError(f"trial {trial.id} is not excluded, so there is nothing to include.")


def _any(_trial: Trial) -> None:
    """Accept a trial of any status."""


_RULES: dict[type[Event], Callable[[Trial], None]] = {
    **dict.fromkeys((Asked, Enqueued, Added, Extended, Moved, Noted, Reported, Told), _any),
    **dict.fromkeys((Failed, Measured, Revised), _any),  # these have rules of their own
    **dict.fromkeys((Began, Ended), _any),  # of no trial
    **dict.fromkeys((Cancelled, Lost, Dispatched), _require_pending),
    **dict.fromkeys((Amended, Late), _require_told),
    Retried: _require_failed,
    Excluded: _require_counted,
    Included: _require_excluded,
}


def _require_named_so(trial: Trial, values: Point) -> None:
    if not trial.values.keys() >= trial.called(values).keys():
        raise HistoryError(
            f"trial {trial.id} was told {trial.values}; amend values by these names, got {values}."
        )


def corrections_in(event: Event, book: PlateBook) -> Iterator[Correction]:
    """What an event corrects, leaves out or takes back, and why."""
    match event:
        case Amended(id=i, value=value, reason=reason):
            yield Correction((i,), f"amended to {value_in_words(value)}", reason)
        case Excluded(ids=ids, reason=reason):
            yield Correction(ids, "excluded", reason)
        case Included(ids=ids, reason=reason):
            yield Correction(ids, "included again", reason)
        case Moved(ids=ids, reason=reason):
            yield Correction(ids, "run at another point than asked", reason)
        case Measured() | Revised():
            for wells, what, said in _well_by_well(event):
                where = f"{event.plate} {', '.join(wells)} {what}"
                yield Correction(book.trials_in(event.plate, wells), where, said)


def _well_by_well(event: Measured | Revised) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Wells, what became of them and why."""
    if isinstance(event, Measured):
        for well, said in event.marks.items():
            yield (well,), "marked", said
        return
    for well, value in (event.values or {}).items():
        yield (well,), f"amended to {value_in_words(value)}", event.reason
    for wells, what in ((event.marked, "marked"), (event.unmarked, "unmarked")):
        if wells:
            yield wells, what, event.reason


class Correction(NamedTuple):
    """Something that was corrected, left out or taken back by hand."""

    ids: tuple[int, ...]  # trials that it is about; none of a control
    what: str
    reason: str

    @property
    def is_exclusion(self) -> bool:
        """Whether whole trials were left out, or count again."""
        return self.what in ("excluded", "included again")
