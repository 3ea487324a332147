"""Plates in a log: which trial stands in which well, and what was measured there.

`Measured` is the event of a reading; `PlateBook` is what a ledger knows about plates. A trial is
told once all of its wells are measured or marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from covey.errors import HistoryError, did_you_mean, is_whole, several
from covey.history.checks import non_empty_text, outcome, plain_object, sized, text
from covey.history.trial import Point, Trial

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

    A value is a number; or, where outcomes have names, an object with all of them; None if a well
    that is marked has none. ``marks`` say what is wrong with a well, whose value does not count.
    ``goal`` names the only goal among values by name, and is empty if there are several.
    """

    plate: str
    wells: tuple[str, ...]
    values: tuple[float | Point | None, ...] = ()  # () where all wells are marked
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
        marks = {well: non_empty_text(said, "a mark") for well, said in self.marks.items()}
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
            checked.append(None if value is None else outcome(value, name, hint))
        for name, found in (
            ("plate", plate),
            ("wells", wells),
            ("values", tuple(checked)),
            ("marks", marks),
            ("goal", None if self.goal is None else text(self.goal, "goal")),
            ("day", None if self.day is None else non_empty_text(self.day, "day")),
        ):
            object.__setattr__(self, name, found)


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
    readings: Mapping[str, float | Point] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    days: Mapping[str, str] = field(default_factory=dict)  # well -> day of its reading

    @property
    def missing(self) -> tuple[str, ...]:
        """Wells that are neither measured nor marked yet."""
        done = {*self.readings, *self.marks}
        return tuple(well for well in self.uses if well not in done)


class PlateBook:
    """All plates of a log; a ledger has one."""

    def __init__(self) -> None:
        self.records: dict[str, PlateRecord] = {}
        self._wells: dict[int, list[tuple[str, str]]] = {}  # trial -> plates and wells

    def snapshot(self) -> PlateBook:
        """The plates as they are now; later readings do not change it."""
        made = PlateBook()
        made.records, made._wells = dict(self.records), dict(self._wells)
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

    def wells_of(self, trial: int) -> tuple[tuple[str, str], ...]:
        """The plates and wells in which a trial stands."""
        return tuple(self._wells.get(trial, ()))

    def readings_of(self, trial: int) -> list[tuple[str, str, float | Point]]:
        """Plate, well and value of each well of a trial that was measured and is not marked."""
        found = []
        for plate, well in self.wells_of(trial):
            record = self.records[plate]
            if well in record.readings and well not in record.marks:
                found.append((plate, well, record.readings[well]))
        return found

    def check(self, event: Measured, trials: Sequence[Trial]) -> None:
        """Raise HistoryError unless these readings may come next."""
        record = self.records.get(event.plate)
        if record is None:
            there = f"there are {', '.join(self.records)}" if self.records else "there is none yet"
            raise HistoryError(
                f"there is no plate {event.plate!r}; {there}."
                f"{did_you_mean(event.plate, self.records)}"
            )
        for well in event.wells:
            if well not in record.uses:
                raise HistoryError(
                    f"plate {event.plate}: nothing stands in well {well}, so nothing is measured "
                    "there; leave it out."
                )
            if well in record.readings or well in record.marks:
                was = record.readings.get(well, record.marks.get(well))
                raise HistoryError(
                    f"plate {event.plate}: well {well} was measured already ({was}). Tell each "
                    "well once; a wrong value is corrected with study.amend(trial, value, reason)."
                )
            trial = record.uses[well].trial
            if trial is not None and trials[trial].status == "told":
                raise HistoryError(
                    f"plate {event.plate}: trial {trial} in well {well} was told "
                    f"{trials[trial].values} already, without its wells; leave this well out."
                )

    def measure(self, event: Measured, trials: Sequence[Trial]) -> tuple[list[Trial], list[int]]:
        """Take in readings; the trials that they complete, and those given up for their marks."""
        record = self.records[event.plate]
        values = zip(event.wells, event.values, strict=True)
        readings = {well: value for well, value in values if value is not None}
        days = {} if event.day is None else dict.fromkeys(event.wells, event.day)
        self.records[event.plate] = replace(
            record,
            readings={**record.readings, **readings},
            marks={**record.marks, **event.marks},
            days={**record.days, **days},
        )
        touched = dict.fromkeys(record.uses[well].trial for well in event.wells)
        done, lost = [], []
        for id in touched:
            if id is None or not self._complete(id):
                continue
            found = [value for _, _, value in self.readings_of(id)]
            if found:
                done.append(trials[id].told(*mean_and_error(found, event.goal), event.goal))
            else:
                done.append(replace(trials[id], status="lost"))
                lost.append(id)
        return done, lost

    def _complete(self, trial: int) -> bool:
        done = ((self.records[plate], well) for plate, well in self.wells_of(trial))
        return all(well in record.readings or well in record.marks for record, well in done)


def mean_and_error(
    values: Sequence[float | Point], goal: str | None = None
) -> tuple[float | Point, float | None]:
    """The mean of readings of one point, and its standard error from their scatter, if any.

    Of values by name, that of the only goal.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    if isinstance(values[0], Point):
        named = [value for value in values if isinstance(value, Point)]
        means = {n: _mean([float(value[n]) for value in named]) for n in values[0]}
        error = _error([float(value[goal]) for value in named]) if goal else None
        return Point(means), error
    plain = [float(value) for value in values if not isinstance(value, Point)]
    return _mean(plain), _error(plain)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _error(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    middle = _mean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))


def given_up(count: int) -> str:
    """Why a trial is lost whose wells were all marked."""
    return f"{_GIVEN_UP} ({several(count, 'well')})"
