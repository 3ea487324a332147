"""Whether a plate was turned by 180 degrees, or taken for another: what should read alike says so.

Wells of one control read alike, and so do copies of one point. Readings that disagree there, and
agree where those wells would be if the plate had been turned, or on another plate that is still to
be measured, were probably taken so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from covey.errors import HistoryError, several
from covey.history import PlateRecord, Point
from covey.plates.layout import Grid, Layout
from covey.plates.reader import Readings

_CHANCE = 0.01  # of asking about a plate that is as it should be, were its readings noise alone
_SHOWN = 4  # wells of a control that a message names

Numbers = Mapping[str, float]  # by well


@dataclass(frozen=True)
class MixUp:
    """A way in which readings fit better than as they were told."""

    plate: str  # whose wells they fit
    turned: bool
    says: str  # the wells that show it


def turned_back(found: Readings, grid: Grid) -> Readings:
    """The readings of a plate that was turned by 180 degrees, each in the well that it is of."""

    def well(name: str) -> str:
        return grid.name(grid.turned(grid.index(name)))

    return replace(
        found,
        values={well(name): value for name, value in found.values.items()},
        marks={well(name): said for name, said in found.marks.items()},
        where={well(name): where for name, where in found.where.items()},
        rows={},  # a table of wells names what stands there as laid out
    )


def require_own_place(found: Readings, name: str, records: Mapping[str, PlateRecord]) -> None:
    """Raise if readings fit better on the plate turned, or on another one.

    Raises:
        HistoryError: They do; it names the wells and what to answer.
    """
    better = mix_up(found, name, records)
    if better is None:
        return
    how = f"they are of plate {better.plate}"
    answer = f"Tell them as readings of {better.plate!r}"
    if better.turned:
        how, answer = "the plate was turned by 180 degrees", "Tell them with turned=True"
    raise HistoryError(
        f"plate {name}: the readings fit better if {how}: {better.says}. Nothing was recorded. "
        f"{answer}; or with turned=False, if they are of {name} and it stood as laid out."
    )


def mix_up(found: Readings, name: str, records: Mapping[str, PlateRecord]) -> MixUp | None:
    """The way in which readings of a plate fit much better than as told; None if there is none.

    Sums of squares of wells that should read alike are compared by an F test, with those of plates
    measured before on the side of the alternative. So it asks by chance about fewer than one plate
    in a hundred, even if readings were noise alone.
    """
    record = records[name]
    new = {w: v for w, v in found.values.items() if w not in {*found.marks, *record.readings}}
    ways = [(name, True)]
    ways += [
        (other, False) for other in records if other != name and _is_open(records, other, name)
    ]
    kinds = dict.fromkeys(name for values in new.values() for name in values)
    best: tuple[float, MixUp] | None = None
    for kind in kinds:
        numbers = _numbers(new, kind)
        as_told, usual = _Alike.of(numbers, record), _usual(name, records, kind)
        for plate, turned in ways:
            moved = _turned(numbers, record) if turned else numbers
            other = _Alike.of(moved, records[plate])
            chance = as_told.chance_beside(other, usual)
            if chance * len(ways) * len(kinds) < _CHANCE and (best is None or chance < best[0]):
                says = _in_words(as_told, other, turned, record)
                best = chance, MixUp(plate, turned, says)
    return None if best is None else best[1]


def _is_open(records: Mapping[str, PlateRecord], other: str, name: str) -> bool:
    """Whether a plate of the same size is still to be measured."""
    same = records[other].layout.get("plate") == records[name].layout.get("plate")
    return same and bool(records[other].missing)


def _numbers(readings: Mapping[str, Point], outcome: str) -> dict[str, float]:
    """The readings of one outcome by well."""
    return {well: values[outcome] for well, values in readings.items() if outcome in values}


def _turned(numbers: Numbers, record: PlateRecord) -> dict[str, float]:
    grid = Layout.from_description(record.layout).grid
    return {grid.name(grid.turned(grid.index(well))): value for well, value in numbers.items()}


@dataclass(frozen=True)
class _Alike:
    """Readings in wells of a plate that should read alike."""

    groups: Mapping[str, Numbers]  # by control, or trial
    controls: tuple[str, ...]
    squares: float  # sum of squares within groups
    freedom: int  # degrees of freedom of it

    @classmethod
    def of(cls, numbers: Numbers, record: PlateRecord) -> _Alike:
        """Group the readings of a plate by what should read alike.

        Each group has a mean of its own: what a control reads on other plates says nothing, for
        plates shift.
        """
        groups = _groups(numbers, record)
        controls = tuple(n for n in record.layout.get("controls", {}) if n in groups)
        squares = sum(float(np.var([*wells.values()])) * len(wells) for wells in groups.values())
        return cls(groups, controls, squares, sum(len(wells) - 1 for wells in groups.values()))

    def chance_beside(self, other: _Alike, usual: tuple[float, int]) -> float:
        """How often chance would make the other so much more alike, were both noise alone.

        ``usual``: sum of squares and degrees of freedom on plates measured before.
        """
        from scipy.stats import f

        if not (self.freedom and other.freedom and self.squares > 0.0):
            return 1.0
        squares, freedom = other.squares + usual[0], other.freedom + usual[1]
        ratio = self.squares / self.freedom
        ratio /= max(squares / freedom, 1e-12 * ratio)
        return float(f.sf(ratio, self.freedom, freedom))


def _groups(numbers: Numbers, record: PlateRecord) -> dict[str, dict[str, float]]:
    """Readings that should be alike, by control or trial; marked wells say nothing."""
    groups: dict[str, dict[str, float]] = {}
    for well, use in record.uses.items():
        if well in numbers and well not in record.marks:
            # A control has no colon in its name.
            groups.setdefault(use.control or f"trial: {use.trial}", {})[well] = numbers[well]
    return groups


def _usual(name: str, records: Mapping[str, PlateRecord], kind: str) -> tuple[float, int]:
    """Sum of squares within wells that should read alike, and its degrees of freedom, elsewhere."""
    squares, freedom = 0.0, 0
    for record in records.values():
        if record.name != name:
            alike = _Alike.of(_numbers(record.readings, kind), record)
            squares, freedom = squares + alike.squares, freedom + alike.freedom
    return squares, freedom


def _in_words(as_told: _Alike, other: _Alike, turned: bool, record: PlateRecord) -> str:
    """The wells of controls, or of copies, with what they read as told and otherwise."""
    names = [name for name in as_told.controls if name in other.groups]
    if not names:
        return (
            f"copies of {several(len(as_told.groups), 'trial')} disagree as told, and agree there"
        )
    parts = []
    for name in names:
        here, there = _wells(as_told.groups[name]), dict(other.groups[name])
        if turned:  # in the wells where they were read
            there = _turned(there, record)
        parts.append(f"{name} reads {here} as told, and otherwise {_wells(there)}")
    return "; ".join(parts)


def _wells(numbers: Numbers) -> str:
    shown = [f"{value:.4g} in {well}" for well, value in numbers.items()]
    return ", ".join(shown[:_SHOWN]) + (" ..." if len(shown) > _SHOWN else "")
