"""Plates in a log: which trial stands in which well, and what was measured there.

`Measured` is the event of a reading and `Revised` that of its correction; `PlateBook` is what a
ledger knows about plates. A trial is told once all of its wells are measured or marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from covey.errors import HistoryError, did_you_mean, is_whole, several
from covey.history.checks import (
    non_empty_prose,
    non_empty_text,
    outcome_values,
    plain_object,
    sized,
    text,
)
from covey.history.trial import PLAIN, Point, Trial, as_told, is_plain

_GIVEN_UP = "every well of it was marked"


class Use(NamedTuple):
    """What stands in a well: a copy of a trial's point, or of a control."""

    trial: int | None
    control: str  # its name; empty for a trial
    replicate: int  # from 1
    order: int  # in which wells are run, from 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Readings of a plate, in the user's sign: one for each of these wells.

    Each has all outcomes by name (a plain number is that of "value"); or is None, if a well that is
    marked has none. ``marks`` say what is wrong with a well, whose value does not count. ``goal``
    is as of `Told`.
    """

    plate: str
    wells: tuple[str, ...]
    values: tuple[Point | None, ...] = ()  # () where all wells are marked
    marks: dict[str, str] = field(default_factory=dict, hash=False)
    goal: str | None = None
    day: str | None = None

    ids = ()  # its trials are found by their wells

    def __post_init__(self) -> None:
        plate = non_empty_text(self.plate, "the name of a plate")
        wells = tuple(non_empty_text(well, "a well") for well in self.wells)
        if not wells:
            raise HistoryError("no well was given; a reading needs at least one.")
        if len({*wells}) < len(wells):
            twice = next(well for i, well in enumerate(wells) if well in wells[:i])
            raise HistoryError(f"plate {plate}: well {twice} was given twice; give each once.")
        marks = {well: non_empty_prose(said, "a mark") for well, said in self.marks.items()}
        for well in marks:
            if well not in wells:
                raise HistoryError(
                    f"plate {plate}: well {well} is marked, but not among the wells."
                )
        values = sized(self.values or (None,) * len(wells), len(wells), "well", "value")
        checked = []
        for well, value in zip(wells, values, strict=True):
            if value is None and well not in marks:
                raise HistoryError(
                    f"plate {plate}: well {well} has no value; leave it out until it is measured, "
                    "or mark it with what is wrong."
                )
            name, hint = f"plate {plate}, well {well}", "Mark the well if it went wrong."
            checked.append(None if value is None else outcome_values(value, name, hint))
        for name, found in (
            ("plate", plate),
            ("wells", wells),
            ("values", tuple(checked)),
            ("marks", marks),
            ("goal", None if self.goal is None else text(self.goal, "goal")),
            ("day", None if self.day is None else non_empty_prose(self.day, "day")),
        ):
            object.__setattr__(self, name, found)


@dataclass(frozen=True, slots=True)
class Revised:
    """Wells of a plate whose reading was wrong, that are marked, or that are marked no longer.

    ``values`` are the right readings by well, of the outcomes that change. Wells in
    ``marked`` do not count from now on, for this reason; those in ``unmarked`` count again, or are
    still to be measured if they never were. ``goal`` is as of `Measured`.
    """

    plate: str
    reason: str
    values: dict[str, Point] | None = field(default=None, hash=False)
    marked: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    goal: str | None = None

    ids = ()  # its trials are found by their wells

    def __post_init__(self) -> None:
        plate = non_empty_text(self.plate, "the name of a plate")
        reason = non_empty_prose(self.reason, "reason")
        values = {}
        for well, value in (self.values or {}).items():
            name = f"plate {plate}, well {non_empty_text(well, 'a well')}"
            values[well] = outcome_values(value, name, "Mark the well if it went wrong.")
        marked, unmarked = (
            tuple(non_empty_text(well, "a well") for well in wells)
            for wells in (self.marked, self.unmarked)
        )
        every = (*values, *marked, *(well for well in unmarked if well not in values))
        if not every:
            raise HistoryError("no well was given; a correction needs at least one.")
        if len({*every}) < len(every):
            twice = next(well for i, well in enumerate(every) if well in every[:i])
            raise HistoryError(f"plate {plate}: well {twice} was given twice; give each once.")
        for field_, found in (
            ("plate", plate),
            ("reason", reason),
            ("values", values or None),
            ("marked", marked),
            ("unmarked", unmarked),
            ("goal", None if self.goal is None else text(self.goal, "goal")),
        ):
            object.__setattr__(self, field_, found)

    @property
    def wells(self) -> tuple[str, ...]:
        """All wells that it is about, each once."""
        return tuple(dict.fromkeys((*(self.values or ()), *self.marked, *self.unmarked)))


def checked_plates(given: object, count: int) -> dict[str, Any]:
    """The plates of a batch of so many points, as JSON holds them.

    ``wells`` has rows [plate, well, place of the point in the batch, replicate, run order], and
    ``controls`` rows [plate, well, name, replicate, run order].
    """
    plates = plain_object(given, "plates")
    layout, wells, controls = (plates.get(name) for name in ("layout", "wells", "controls"))
    sound = isinstance(layout, dict) and isinstance(wells, list) and isinstance(controls, list)
    if not sound or not all(_is_row(row) for row in (*(wells or ()), *(controls or ()))):
        raise HistoryError(f"plates have a layout, wells and controls; got {str(given)[:200]}.")
    taken: set[tuple[str, str]] = set()
    for plate, well, what, *_ in (*(wells or ()), *(controls or ())):
        if (plate, well) in taken:
            raise HistoryError(f"plate {plate}: well {well} is used twice.")
        taken.add((plate, well))
        if is_whole(what, 0) and what >= count:
            raise HistoryError(f"plate {plate}: well {well} holds point {what} of {count}.")
    if {row[2] for row in wells or ()} != {*range(count)}:
        raise HistoryError("some points of the batch stand in no well.")
    return plates


def _is_row(row: object) -> bool:
    if not isinstance(row, list) or len(row) != 5:
        return False
    plate, well, what, replicate, order = row
    texts = isinstance(plate, str) and isinstance(well, str) and bool(plate) and bool(well)
    named = is_whole(what, 0) or (isinstance(what, str) and bool(what))
    return texts and named and is_whole(replicate, 1) and is_whole(order, 1)


@dataclass(frozen=True)
class PlateRecord:
    """One plate of a log: its layout, what stands in its wells, and what was measured there."""

    name: str
    layout: Mapping[str, Any]
    uses: Mapping[str, Use]  # by well
    readings: Mapping[str, Point] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    days: Mapping[str, str] = field(default_factory=dict)  # well -> day of its reading

    def point_of_control(self, name: str, trials: Sequence[Trial]) -> Point | None:
        """The point of a control, with the values that it shares with the samples of its plate.

        None if it has none: it is a constant outside the space. ``trials`` are all of the log.
        """
        at = self.layout.get("controls", {}).get(name, {}).get("at")
        if at is None:
            return None
        sample = next(
            trials[use.trial].point for use in self.uses.values() if use.trial is not None
        )
        return Point({n: sample[n] for n in self.layout.get("shared", {})} | dict(at))

    @property
    def done(self) -> frozenset[str]:
        """Wells that are measured or marked."""
        return frozenset((*self.readings, *self.marks))

    @property
    def missing(self) -> tuple[str, ...]:
        """Wells that are neither measured nor marked yet."""
        done = self.done
        return tuple(well for well in self.uses if well not in done)


class PlateBook:
    """All plates of a log; a ledger has one."""

    def __init__(self) -> None:
        self.records: dict[str, PlateRecord] = {}
        self._wells: dict[int, list[tuple[str, str]]] = {}  # trial -> plates and wells
        self._before: dict[int, Trial] = {}  # those that their wells decide, as they were before

    def snapshot(self) -> PlateBook:
        """The plates as they are now; later readings do not change it."""
        made = PlateBook()
        made.records, made._wells = dict(self.records), dict(self._wells)
        made._before = dict(self._before)
        return made

    def create(self, plates: Mapping[str, Any], first: int) -> None:
        """Take in the plates of a batch whose trials are numbered from ``first``."""
        uses: dict[str, dict[str, Use]] = {}
        for plate, well, place, replicate, order in plates["wells"]:
            uses.setdefault(plate, {})[well] = Use(first + place, "", replicate, order)
            self._wells.setdefault(first + place, []).append((plate, well))
        for plate, well, control, replicate, order in plates["controls"]:
            uses.setdefault(plate, {})[well] = Use(None, control, replicate, order)
        for name, used in uses.items():
            self.records[name] = PlateRecord(name, plates["layout"], used)

    def require_new(self, plates: Mapping[str, Any]) -> None:
        """Raise if a plate of this name is in the log."""
        for row in (*plates["wells"], *plates["controls"]):
            if row[0] in self.records:
                raise HistoryError(f"there is a plate {row[0]} already; call this one otherwise.")

    def record(self, plate: str) -> PlateRecord:
        """The plate of this name; HistoryError if there is none."""
        if plate in self.records:
            return self.records[plate]
        there = ", ".join(self.records)
        raise HistoryError(
            f"there is no plate {plate!r}; "
            f"{f'there are {there}' if there else 'none was asked for yet'}."
            f"{did_you_mean(plate, self.records)}"
        )

    def wells_of(self, trial: int) -> tuple[tuple[str, str], ...]:
        """The plates and wells in which a trial stands."""
        return tuple(self._wells.get(trial, ()))

    def readings_of(self, trial: int) -> list[tuple[str, str, Point]]:
        """Plate, well and values of each well of a trial that was measured and is not marked."""
        found = []
        for plate, well in self.wells_of(trial):
            record = self.records[plate]
            if well in record.readings and well not in record.marks:
                found.append((plate, well, record.readings[well]))
        return found

    def check(self, event: Measured | Revised, trials: Sequence[Trial]) -> None:
        """Raise HistoryError unless these readings, or corrections of them, may come next."""
        record = self.record(event.plate)
        for well in event.wells:
            if well not in record.uses:
                raise HistoryError(
                    f"plate {event.plate}: nothing stands in well {well}, so nothing is measured "
                    "there; leave it out."
                )
        if isinstance(event, Revised):
            self._check_revision(event, record, trials)
            return
        for well in event.wells:
            if well in record.readings or well in record.marks:
                read = record.readings.get(well)
                was = record.marks.get(well) if read is None else as_told(read)
                raise HistoryError(
                    f"plate {event.plate}: well {well} was measured already ({was}). Tell each "
                    "well once; a wrong reading is corrected with study.amend_wells(plate, "
                    "{well: value}, reason), and one that is worth nothing marked with "
                    "study.mark_wells(plate, wells, reason)."
                )
            trial = record.uses[well].trial
            if trial is not None and trials[trial].status == "told":
                raise HistoryError(
                    f"plate {event.plate}: trial {trial} in well {well} was told "
                    f"{trials[trial].values} already, without its wells; leave this well out."
                )

    def require_unread(self, ids: Iterable[int], trials: Sequence[Trial]) -> None:
        """Raise if one of these results has readings of wells, which stay."""
        for i in ids:
            if trials[i].status == "told" and self.readings_of(i):
                raise HistoryError(
                    f"trial {i} was measured in wells, whose readings stay; exclude it instead: "
                    f"study.exclude({i}, reason)."
                )

    def _check_revision(self, event: Revised, record: PlateRecord, trials: Sequence[Trial]) -> None:
        _check_right(event, record)
        for well in event.marked:
            if well in record.marks:
                raise HistoryError(
                    f"plate {event.plate}: well {well} is marked already ({record.marks[well]})."
                )
        for well in event.unmarked:
            if well not in record.marks:
                raise HistoryError(
                    f"plate {event.plate}: well {well} is not marked, so there is no mark to take "
                    "back."
                )
        self._check_trials(event, record, trials)

    def _check_trials(self, event: Revised, record: PlateRecord, trials: Sequence[Trial]) -> None:
        """Raise if a trial would change that its wells do not decide, or that is excluded."""
        after = self.snapshot()
        after.records[event.plate] = _revised(record, event)
        for id in after.trials_in(event.plate, event.wells):
            trial = trials[id]
            if trial.status != "told":
                continue
            found = [value for _, _, value in self.readings_of(id)]
            decided = id in self._before and found and _is_mean(trial, found, event.goal)
            if not decided:
                raise HistoryError(
                    f"plate {event.plate}: trial {id} was told or corrected by hand, so that its "
                    f"wells do not decide its value {trial.values}; correct it with "
                    f"study.amend({id}, value, reason)."
                )
            if trial.excluded and not (after.complete(id) and after.readings_of(id)):
                raise HistoryError(
                    f"plate {event.plate}: trial {id} is excluded, and would have no value any "
                    "more; include it first."
                )

    def trials_in(self, plate: str, wells: Iterable[str]) -> tuple[int, ...]:
        """The trials in some wells of a plate, each once."""
        found = (self.records[plate].uses[well].trial for well in wells)
        return tuple(dict.fromkeys(id for id in found if id is not None))

    def take(
        self, event: Measured | Revised, trials: Sequence[Trial], at: datetime | None
    ) -> list[Trial]:
        """Take in readings or corrections that ``check`` has passed; the trials that change.

        A trial is told once all its wells are measured or marked; it is lost if all are marked. If
        a mark is taken back from a well that was never measured, it is what it was before.
        """
        record, revised = self.records[event.plate], isinstance(event, Revised)
        new = _revised(record, event) if isinstance(event, Revised) else _measured(record, event)
        self.records[event.plate] = new
        changed = []
        for id in self.trials_in(event.plate, event.wells):
            trial = trials[id]
            if not self.complete(id):
                if id in self._before:  # the space may have grown since
                    changed.append(replace(self._before.pop(id), point=trial.point))
                continue
            self._before.setdefault(id, trial)
            ended = trial.ended_at if revised and trial.ended_at else at  # a correction is no end
            found = [value for _, _, value in self.readings_of(id)]
            if not found:
                lost = Trial(id, trial.point, status="lost", origin=trial.origin)
                lost = replace(lost, reason=given_up(len(self.wells_of(id))), ended_at=ended)
                changed.append(replace(lost, asked_at=trial.asked_at, started_at=trial.started_at))
                continue
            means, error = _means_and_error(found, event.goal)
            told = trial.told(means, error, event.goal)
            # An error that there is no longer goes, too; why a result is excluded stays.
            said = trial.reason if trial.status == "told" else ""
            told = replace(told, sem=error, ended_at=ended)
            changed.append(replace(told, excluded=trial.excluded, reason=said))
        return changed

    def complete(self, trial: int) -> bool:
        """Whether all wells of a trial are measured or marked."""
        done = ((self.records[plate], well) for plate, well in self.wells_of(trial))
        return all(well in record.readings or well in record.marks for record, well in done)


def _measured(record: PlateRecord, event: Measured) -> PlateRecord:
    """A plate with further readings."""
    values = zip(event.wells, event.values, strict=True)
    readings = {well: value for well, value in values if value is not None}
    days = {} if event.day is None else dict.fromkeys(event.wells, event.day)
    return replace(
        record,
        readings={**record.readings, **readings},
        marks={**record.marks, **event.marks},
        days={**record.days, **days},
    )


def _revised(record: PlateRecord, event: Revised) -> PlateRecord:
    """A plate with corrections; readings keep their order, so that unmarking is the identity."""
    readings = dict(record.readings)
    for well, value in (event.values or {}).items():
        readings[well] = Point({**readings[well], **value})
    marks = {well: said for well, said in record.marks.items() if well not in event.unmarked}
    marks |= dict.fromkeys(event.marked, event.reason)
    return replace(record, readings=readings, marks=marks)


def _check_right(event: Revised, record: PlateRecord) -> None:
    """Raise unless there are readings to be corrected, under these names."""
    for well, value in (event.values or {}).items():
        where = f"plate {event.plate}: well {well}"
        if well in record.marks and well not in event.unmarked:
            raise HistoryError(
                f"{where} is marked ({record.marks[well]}), so its reading does not count; "
                "unmark it first, with study.unmark_wells(plate, wells, reason)."
            )
        was = record.readings.get(well)
        if was is None:
            raise HistoryError(f"{where} has no reading to correct; tell what was measured.")
        if not value.keys() <= was.keys():
            raise HistoryError(
                f"{where} was told {', '.join(was)}; correct values by these names, got "
                f"{', '.join(value)}."
            )


def _is_mean(trial: Trial, readings: Sequence[Point], goal: str | None) -> bool:
    """Whether a trial has the values and the standard error that its readings give."""
    return (trial.values, trial.sem) == _means_and_error(readings, goal)


def _means_and_error(values: Sequence[Point], goal: str | None) -> tuple[Point, float | None]:
    """The means of readings of one point, and the standard error of the only goal's."""
    means = Point({name: _mean([one[name] for one in values]) for name in values[0]})
    only = PLAIN if goal is None and is_plain(values[0]) else goal
    return means, _error([one[only] for one in values]) if only else None


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean of readings of one point, and its standard error from their scatter, if any.

    Readings that are equal leave it unknown.

    >>> mean_and_error([1.0, 3.0]), mean_and_error([2.0, 2.0])
    ((2.0, 1.0), (2.0, None))
    """
    return _mean(values), _error(values)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _error(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    reach = max(values) - min(values)
    if reach <= 1e-12 * max(map(abs, values)):  # equal readings do not prove that there is no noise
        return None
    middle = _mean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))


def given_up(count: int) -> str:
    """Why a trial is lost whose wells were all marked."""
    return f"{_GIVEN_UP} ({several(count, 'well')})"
