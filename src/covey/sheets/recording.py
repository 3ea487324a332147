"""Recording a plan: what rows of sheets say, written to the log of a study, all or nothing.

All of it is tried on a copy of the study in memory before anything is written. Events are then
written one after the other, each under a key made of its content; after an interruption the same
command records what is missing, since what is in the log is known by then. A trial that was run
otherwise is cancelled last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from covey.sheets.deviations import note_of
from covey.sheets.intake import Intake, Measurement

if TYPE_CHECKING:
    from covey.history import Event, Noted, Trial
    from covey.study import Study

_FAILED = "told as failed"


def check_intake(plan: Intake, study: Study) -> None:
    """Raise if some event of this plan may not follow on the history; nothing is written."""
    _record(plan, study.rehearsal())


def record_intake(plan: Intake, study: Study) -> list[Trial]:
    """Write a plan, all of it; or raise and write nothing. Returns the trials told, or failed."""
    check_intake(plan, study)
    return [study.history.trial(id) for id in sorted(_record(plan, study))]


def _record(plan: Intake, study: Study) -> set[int]:
    """Write the events of a plan; the ids of the trials that are told by them, or have failed."""
    key = _Keys(len(study.history))
    _record_trials(plan, study, key)
    made: dict[int, int] = {}  # ids of trials by those of measurements
    ids = {*plan.failed, *(id for id, one in plan.told.items() if one.new)}
    if plan.added:
        points, values = [one.point for one in plan.added], _values(plan.added, study)
        named = key.of("add", points, values, _sems(plan.added))
        trials = study.add(points, values, _sems(plan.added), key=named)
        made = {id(one): trial.id for one, trial in zip(plan.added, trials, strict=True)}
    if plan.failed_points:
        named = key.of("enqueue", plan.failed_points)
        enqueued = study.enqueue(list(plan.failed_points), key=named)
        study.fail(enqueued, _FAILED)
        ids |= {trial.id for trial in enqueued}
    for note in _notes(plan, made):
        if note.text not in study.history.notes(note.ids[0]):
            study.note(note)
    if plan.otherwise:
        study.cancel(list(plan.otherwise))
    if plan.pending:
        study.enqueue(plan.pending)
    return ids | {*made.values()}


def _record_trials(plan: Intake, study: Study, key: _Keys) -> None:
    """Write what became of trials that there are."""
    news = {id: one for id, one in plan.told.items() if one.new}
    if news:
        values, sems = _values(news.values(), study), _sems(news.values())
        study.tell(list(news), values, sems, key=key.of("tell", list(news), values, sems))
    for event in _late_sems(plan, study):
        study.note(event)
    if plan.failed:
        study.fail(list(plan.failed), _FAILED)


def _values(measured: Iterable[Measurement], study: Study) -> list[Any]:
    """What is new of each measurement, as `Study.tell` takes it."""
    outcomes = study.outcomes
    return [
        {
            **one.new,
            **dict.fromkeys(name for name in outcomes.names if name not in one.values),
            **one.record,
        }
        for one in measured
    ]


def _sems(measured: Iterable[Measurement]) -> list[float | None] | None:
    """The standard error of each; None if none is known."""
    sems = [one.sem for one in measured]
    return None if all(sem is None for sem in sems) else sems


def _late_sems(plan: Intake, study: Study) -> Iterator[Event]:
    """Standard errors of values that were told before."""
    from covey.history import Amended, Point

    only = study.outcomes.only
    for id, one in plan.told.items():
        if one.new_sem and not one.new:
            given = Point({only: one.values[only]})
            yield Amended(id, given, "its standard error was told later", one.sem)


def _notes(plan: Intake, made: Mapping[int, int]) -> Iterator[Noted]:
    """Notes about trials that were run otherwise; ``made`` has the ids of what was added."""
    for asked, instead in plan.otherwise.items():
        every = [made[id(one)] if one.trial is None else one.trial for one in instead]
        yield note_of(asked, list(dict.fromkeys(every)))  # two files may say the same


class _Keys:
    """Keys of messages: the same for the same content after as many trials."""

    def __init__(self, count: int) -> None:
        self.count = count

    def of(self, verb: str, *content: Sequence[Any] | None) -> str:
        """The key of a message."""
        text = json.dumps([verb, self.count, content], sort_keys=True, default=str)
        return f"{verb}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
