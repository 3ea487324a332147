"""What evaluations reported on their way, and which of them were stopped early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.errors import several
from covey.history import History, Reported
from covey.report.format import significant

_MOST = 100  # curves in a report, the latest (our choice)
_NAMED = 8  # trials in a sentence


@dataclass(frozen=True, slots=True)
class Training:
    """The values that the last attempt at a trial reported, by step."""

    id: int
    batch: int | None
    steps: tuple[int, ...]
    values: tuple[float, ...]
    stopped: bool  # early, at the last of these steps
    ended: bool  # it came to its end, or failed there


@dataclass(frozen=True, slots=True)
class Trainings:
    """The latest that reported something, and how many there are in all."""

    each: tuple[Training, ...]
    count: int
    stopped: int  # of all


def trainings_of(history: History) -> Trainings | None:
    """The curves of a study, in the order of their trials; None if nothing was reported."""
    reported = sorted({event.id for event in history.events if isinstance(event, Reported)})
    if not reported:
        return None
    stopped = history.stopped
    each = []
    for id in reported[-_MOST:]:
        reports = history.reports(id)
        last = [one for one in reports if one.attempt == reports[-1].attempt]
        steps, values = tuple(one.step for one in last), tuple(one.value for one in last)
        ended = history.trial(id).status != "pending" and id not in stopped
        each.append(Training(id, history.batch(id), steps, values, id in stopped, ended))
    return Trainings(tuple(each), len(reported), len(stopped))


def of_trainings(found: Trainings) -> str:
    """How many were stopped, and which were last, each with its step."""
    some = [one for one in found.each if one.stopped]
    named = ", ".join(f"{one.id} at step {one.steps[-1]}" for one in some[-_NAMED:])
    which = "the last of them trials" if found.stopped > _NAMED else "trials"
    were = "was" if found.stopped == 1 else "were"
    early = (
        f"{found.stopped} {were} stopped early ({which} {named})" if some else "none was stopped"
    )
    text = f"Of {several(found.count, 'evaluation')} that reported on the way, {early}."
    if len(found.each) < found.count:
        text += f" Only the last {len(found.each)} are drawn."
    return text


def rows_of(each: Sequence[Training]) -> tuple[tuple[str, ...], ...]:
    """Trial, batch, first and last value with their steps, and what became of it."""
    return tuple(
        (
            str(one.id),
            "" if one.batch is None else str(one.batch),
            f"{significant(one.values[0], 6)} at {one.steps[0]}",
            f"{significant(one.values[-1], 6)} at {one.steps[-1]}",
            "stopped early" if one.stopped else "ended" if one.ended else "goes on",
        )
        for one in each
    )
