"""What readings mean for a plate: what is new in them, what contradicts it, what each well is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from covey.errors import HistoryError, several
from covey.history import PlateRecord, Point
from covey.history.trial import value_in_words
from covey.plates.layout import Layout
from covey.plates.reader import Readings
from covey.tables import is_alike, with_point

if TYPE_CHECKING:
    from covey.plates.wells import Plate

_SHOWN = 8  # wells that a message names
_BY_CHANCE = 12  # different readings that two plates do not have alike, well by well, by chance


def require_as_placed(found: Readings, plate: Plate, spans: Mapping[str, float]) -> None:
    """Raise if a filled table of wells has another trial or point in a well than the plate.

    Empty cells say nothing; numbers may be rounded, within ``spans``, as sheets show them.
    """
    for well, row in found.rows.items():
        there = plate.well(well)
        wanted: dict[str, tuple[Any, float]] = {"trial": (there.trial, 0.0)}
        for name, value in (there.point or {}).items():
            wanted[plate.heading(name)] = (value, spans.get(name, 0.0))
        asked = {plate.heading(name): value for name, value in (there.asked or {}).items()}
        for column, (value, span) in wanted.items():
            cell = with_point(row.text(column)) or row.text(column)
            if cell and not is_alike(cell, value, span):
                if column in asked and is_alike(cell, asked[column], span):
                    continue  # volumes were rounded since the table was written
                here = "no trial" if value is None else f"{column} {value}"
                raise HistoryError(
                    f"{found.where[well]}: {column} is {row.text(column)!r}, but plate "
                    f"{plate.name} has {here} there. Nothing was recorded. Is it the table of this "
                    "plate? Put back what was there, or tell a file with the columns of wells and "
                    "values alone."
                )


def news(found: Readings, record: PlateRecord, *, part: bool = False) -> Readings:
    """What a log does not have yet of these readings; readings of empty wells are passed over.

    Raises:
        HistoryError: A well in use has none (unless only a ``part`` is told), or was told another.
    """
    for well in (*found.values, *found.marks):
        said = _contradiction(well, found, record)
        if said:
            where, way = found.where.get(well, f"well {well}"), _way_to_correct(well, record, found)
            raise HistoryError(f"{where}: {said}. Nothing was recorded. {way}")
    lacking = [w for w in record.missing if w not in found.values and w not in found.marks]
    if lacking and not part:
        places = [_with_line(well, found) for well in lacking[:_SHOWN]]
        shown = ", ".join(places) + (" ..." if len(lacking) > _SHOWN else "")
        raise HistoryError(
            f"plate {record.name}: {several(len(lacking), 'well')} without a reading: {shown}. "
            "Nothing was recorded. Mark what went wrong, or tell a part of the plate with "
            f"{'--part' if found.by_command else 'part=True'}."
        )
    return found.of_wells(record.missing)


def _contradiction(well: str, found: Readings, record: PlateRecord) -> str:
    """What is wrong with a reading or mark, given what the log has of the well; empty if nothing.

    A well may be told again as it was, and marked again.
    """
    known, given, plate = record.readings.get(well), found.values.get(well), f"plate {record.name}"
    if known is not None and given is not None and known != given:
        told = f"{plate} was told {value_in_words(known)} there already"
        return f"{value_in_words(given)}, but {told}"
    if well in record.marks:
        if known is not None or given is None or well in found.marks:
            return ""
        marked = f"{plate} has this well marked already ({record.marks[well]})"
        return (
            f"{value_in_words(given)}, but {marked}, and a marked well does not count; leave its "
            "cell empty"
        )
    if known is not None and well in found.marks:
        return f"marked, but {plate} was told {value_in_words(known)} there already"
    return ""


def _with_line(well: str, found: Readings) -> str:
    """A well, and the line of the file in which its reading is missing."""
    line = found.where.get(well, "").rpartition(", well ")[0]
    return f"{well} ({line})" if line else well


def marked_as_well(found: Readings, marks: Mapping[str, str], record: PlateRecord) -> Readings:
    """The same readings, with these wells marked as well: what a person says went wrong there.

    Raises:
        HistoryError: Nothing stands in such a well, so another one is meant, which would count.
    """
    if not isinstance(marks, Mapping):
        raise HistoryError(
            f"marks say by well what went wrong there, {{'A1': 'bubble'}}; got {marks!r}."
        )
    grid = Layout.from_description(record.layout).grid
    more = {grid.name(grid.index(well)): said for well, said in marks.items()}
    for well in more:
        if well not in record.uses:
            raise HistoryError(
                f"plate {record.name}: a mark names well {well}, where nothing stands. Nothing was "
                "recorded. Name the well that went wrong, or leave the mark out."
            )
    return replace(found, marks={**found.marks, **more})


def same_as_told(found: Readings, name: str, records: Mapping[str, PlateRecord]) -> str | None:
    """The plate, if another, that was told these very readings, well by well: it is its file.

    Readings with few different values may agree by chance, and say nothing.
    """
    used = {well: value for well, value in found.values.items() if well in records[name].uses}
    if (
        len({value_in_words(value) for value in used.values()}) < _BY_CHANCE
        or records[name].readings
    ):
        return None
    for other, record in records.items():
        if other != name and all(record.readings.get(well) == used[well] for well in used):
            return other
    return None


@dataclass(frozen=True)
class WellTold:
    """What a well is, given readings of its plate."""

    well: str
    kind: str  # sample, control, marked, known, contradicts, missing or unknown
    trial: int | None = None
    values: Point | None = None
    says: str = ""


def what_wells_are(found: Readings, record: PlateRecord) -> list[WellTold]:
    """What each well is that is in use or has a reading, in the order of rows."""
    grid = Layout.from_description(record.layout).grid
    every = {*record.uses, *found.values, *found.marks}
    return [_what(well, found, record) for well in sorted(every, key=grid.index)]


def _what(well: str, found: Readings, record: PlateRecord) -> WellTold:
    use, value = record.uses.get(well), found.values.get(well)
    if use is None:
        return WellTold(well, "unknown", None, value, "nothing stands there; it is passed over")
    trial, mark = use.trial, found.marks.get(well) or record.marks.get(well)
    known = record.readings.get(well)
    against = _contradiction(well, found, record)
    if against:
        return WellTold(well, "contradicts", trial, value, against)
    if mark:
        return WellTold(well, "marked", trial, value, mark)
    if known is not None:
        return WellTold(well, "known", trial, known)
    if value is None:
        line = found.where.get(well, "").rpartition(", well ")[0]
        return WellTold(well, "missing", trial, None, line)
    return WellTold(well, "control" if trial is None else "sample", trial, value, use.control)


def _way_to_correct(well: str, record: PlateRecord, found: Readings) -> str:
    """What to do about a well that was told wrongly."""
    plate = record.name
    if found.by_command:
        return (
            f"A wrong reading is corrected with `covey plate amend {plate} {well}=VALUE --reason "
            f"WHY`, one that is worth nothing is left out with `covey plate mark {plate} {well} "
            f"--reason WHY`, and `covey plate unmark` takes that back."
        )
    return (
        f"A wrong reading is corrected with study.amend_wells({plate!r}, {{{well!r}: value}}, "
        f"reason), one that is worth nothing is left out with study.mark_wells({plate!r}, "
        f"{well!r}, reason), and study.unmark_wells takes that back."
    )
