"""Recording a plan: what rows of sheets say, written to the journal of a study, all or nothing.

Everything is checked before anything is written. Events are then written one after the other, each
under a key made of its content; after an interruption the same command records what is missing,
since what is in the journal is known by then. A trial that was run otherwise is cancelled last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import covey
from covey.sheets.deviations import note_of
from covey.sheets.intake import Intake, Measurement

if TYPE_CHECKING:
    from covey.history import Event, Noted
    from covey.study import Study

_FAILED = "told as failed"


def check_intake(plan: Intake, study: Study) -> None:
    """Raise if some event of this plan may not follow on the history; nothing is written."""
    history = study.history
    for event in _events(plan, study):
        history = history.then(event)
    if plan.told and isinstance(study.space, covey.Pool):
        study.space.verify_source()


def record_intake(plan: Intake, study: Study) -> None:
    """Write a plan that was checked."""
    key = _Keys(len(study.history))
    _record_trials(plan, study, key)
    made = {}
    if plan.added:
        points, values = [one.point for one in plan.added], _values(plan.added, study)
        named = key.of("add", points, values, _sems(plan.added))
        trials = study.add(points, values, _sems(plan.added), key=named)
        made = {id(one): trial.id for one, trial in zip(plan.added, trials, strict=True)}
    if plan.failed_points:
        named = key.of("enqueue", plan.failed_points)
        study.fail(study.enqueue(list(plan.failed_points), key=named), _FAILED)
    for note in _notes(plan, made):
        if note.text not in study.history.notes(note.ids[0]):
            study.note(note)
    if plan.otherwise:
        study.cancel(list(plan.otherwise))


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


def _events(plan: Intake, study: Study) -> Iterator[Event]:
    """The events of a plan, as they are if nobody else writes meanwhile."""
    from covey.arguments import new_results, results_of
    from covey.history import Added, Cancelled, Enqueued, Failed, Point, Told

    outcomes, first = study.recipe.outcomes, len(study.history)
    news = {id: one for id, one in plan.told.items() if one.new}
    if news:
        found = results_of(_values(news.values(), study), list(news), study.history, outcomes)
        sems = _sems(news.values()) or ()
        yield Told(tuple(news), found.values, tuple(sems), found.metrics, found.goal)
    yield from _late_sems(plan, study)
    if plan.failed:
        yield Failed(tuple(plan.failed), _FAILED)
    if plan.added:
        found = new_results(_values(plan.added, study), len(plan.added), outcomes)
        points = tuple(Point(one.point) for one in plan.added)
        sems = _sems(plan.added) or ()
        yield Added(points, found.values, tuple(sems), found.metrics, found.goal)
    if plan.failed_points:
        yield Enqueued(tuple(Point(point) for point in plan.failed_points))
        start = first + len(plan.added)
        yield Failed(tuple(range(start, start + len(plan.failed_points))), _FAILED)
    yield from _notes(plan, {id(one): first + i for i, one in enumerate(plan.added)})
    if plan.otherwise:
        yield Cancelled(tuple(plan.otherwise))


def _values(measured: Iterable[Measurement], study: Study) -> list[Any]:
    """What is new of each measurement, as `Study.tell` takes it."""
    outcomes = study.recipe.outcomes
    if outcomes is None:
        return [one.new["value"] for one in measured]
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
            value = one.values[only]
            given = value if study.recipe.outcomes is None else Point({only: value})
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
