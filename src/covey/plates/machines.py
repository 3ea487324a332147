"""Machines that fill plates: the transfers of a pick list, and how each machine reads them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from covey.errors import SpaceError

_TINY = 1e-9  # µL: rounding of decimals
_WRITTEN = 1e-6  # µL: to which volumes are written


@dataclass
class Stock:
    """A material in a well of a source plate, and how much of it is left."""

    material: str
    plate: str
    well: str
    plate_type: str
    concentration: float | None
    unit: str
    slot: str
    left: float  # µL that can be drawn: the volume less what a machine cannot reach

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"{self.plate} {self.well}"


@dataclass(frozen=True)
class Transfer:
    """So many µL from a well of a stock into a well of the plate."""

    source: Stock
    plate: str
    well: str
    volume: float  # as it will be dispensed
    wanted: float  # before it was rounded
    trial: int | None = None
    parameter: str = ""  # whose value the volume is, or makes
    amount: float = 0.0  # that value, of the volume as it will be dispensed

    @property
    def is_rounded(self) -> bool:
        """Whether a machine cannot dispense what was wanted."""
        return abs(self.volume - self.wanted) > _WRITTEN

    def __str__(self) -> str:
        return (
            f"{_short(self.volume)} instead of {_short(self.wanted)} µL of {self.source.material} "
            f"({100.0 * self.error:+.2g} %)"
        )

    @property
    def error(self) -> float:
        """By how much what is dispensed is more than what was wanted, as a share of that."""
        return (self.volume - self.wanted) / self.wanted


@dataclass(frozen=True)
class Profile:
    """How a machine wants its list."""

    header: tuple[str, ...]
    row: Callable[[Transfer, Mapping[str, str]], tuple[str, ...]]
    step: float  # µL: volumes are multiples of it; 0: any
    least: float  # µL: the smallest transfer
    most: float = math.inf  # µL: the largest
    rows: int = 0  # transfers of a file; 0: any number


def _nanolitres(t: Transfer, to: Mapping[str, str]) -> tuple[str, ...]:
    del to
    volume = _short(1000.0 * t.volume)
    return (t.source.plate, t.source.plate_type, t.source.well, t.plate, t.well, volume)


def _opentrons(t: Transfer, to: Mapping[str, str]) -> tuple[str, ...]:
    source = (t.source.plate_type or t.source.plate, t.source.slot, t.source.well, "1")
    return (*source, to.get("type", t.plate), to.get("slot", ""), t.well, _short(t.volume))


def _hamilton(t: Transfer, to: Mapping[str, str]) -> tuple[str, ...]:
    del to
    return (t.source.plate, t.source.well, t.plate, t.well, _short(t.volume))


def _epmotion(t: Transfer, to: Mapping[str, str]) -> tuple[str, ...]:
    tool = next(number for number, most in _TOOLS if t.volume <= most + _TINY)
    where = (t.source.slot or "1", t.source.well, to.get("slot") or "1", t.well)
    return (*where, _short(t.volume), tool)


def _generic(t: Transfer, to: Mapping[str, str]) -> tuple[str, ...]:
    del to
    where = (t.source.material, t.source.plate, t.source.well, t.plate, t.well)
    return (*where, _short(t.volume), _short(t.wanted))


_TOOLS = (("1", 50.0), ("2", 300.0), ("3", 1000.0))  # TS_50, TS_300 and TS_1000, by largest µL

PROFILES = {
    "echo": Profile(
        (
            *("Source Plate Name", "Source Plate Type", "Source Well", "Destination Plate Name"),
            *("Destination Well", "Transfer Volume"),
        ),
        _nanolitres,
        step=0.0025,
        least=0.0025,
    ),
    "opentrons": Profile(
        (
            *("Source Labware", "Source Slot", "Source Well"),
            "Source Aspiration Height Above Bottom (in mm)",
            *("Dest Labware", "Dest Slot", "Dest Well", "Volume (in ul)"),
        ),
        _opentrons,
        step=0.1,
        least=1.0,
    ),
    "hamilton": Profile(
        ("SourceLabware", "SourcePosition", "TargetLabware", "TargetPosition", "Volume"),
        _hamilton,
        step=0.1,
        least=0.5,
    ),
    "epmotion": Profile(
        ("Rack", "Source", "Rack", "Destination", "Volume", "Tool"),
        _epmotion,
        step=0.1,
        least=1.0,
        most=_TOOLS[-1][1],
        rows=500,
    ),
    "generic": Profile(
        (
            *("material", "source_plate", "source_well", "plate", "well", "volume_ul"),
            "wanted_ul",
        ),
        _generic,
        step=0.0,
        least=0.0,
    ),
}
"""Machines by name; volumes in µL, those of an Echo in nL."""


@dataclass(frozen=True)
class PickList:
    """The transfers that fill a plate."""

    profile: str
    transfers: tuple[Transfer, ...]
    destination: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was noticed when the table of stocks was read

    @property
    def rounded(self) -> tuple[Transfer, ...]:
        """Those whose volume is not what was wanted, since a machine has steps."""
        return tuple(t for t in self.transfers if t.is_rounded)

    @property
    def rounded_by_volume(self) -> dict[str, list[str]]:
        """What is rounded, in words, and the wells that get so much of it; the most wrong first."""
        found: dict[str, list[str]] = {}
        for transfer in sorted(self.rounded, key=lambda t: -abs(t.error)):
            found.setdefault(str(transfer), []).append(transfer.well)
        return found

    @property
    def as_dispensed(self) -> dict[int, dict[str, float]]:
        """By trial, the parameters whose value is another once volumes are rounded.

        Raises:
            SpaceError: Two wells of a trial, or two rules, make different values of a parameter.
        """
        found: dict[int, dict[str, float]] = {}
        for t in self.transfers:
            if t.trial is None or not t.parameter:
                continue
            known = found.setdefault(t.trial, {}).setdefault(t.parameter, t.amount)
            if known != t.amount:
                raise SpaceError(
                    f"well {t.well}: {t.parameter} of trial {t.trial} is {t.amount:g} as "
                    f"dispensed, and {known:g} by another rule or in another well; a trial has one "
                    "value of it."
                )
        rounded = {(t.trial, t.parameter) for t in self.rounded}
        return {
            trial: now
            for trial, values in found.items()
            if (now := {name: v for name, v in values.items() if (trial, name) in rounded})
        }

    def tables(self) -> list[str]:
        """The list as the machine reads it: several files where one may not have all of it."""
        profile = PROFILES[self.profile]
        size = profile.rows or max(len(self.transfers), 1)
        made = []
        for first in range(0, max(len(self.transfers), 1), size):
            out = io.StringIO(newline="")
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(profile.header)
            part = self.transfers[first : first + size]
            writer.writerows(profile.row(transfer, self.destination) for transfer in part)
            made.append(out.getvalue())
        return made

    def table(self) -> str:
        """The list as the machine reads it, where one file has all of it."""
        made = self.tables()
        if len(made) > 1:
            raise SpaceError(
                f"{self.profile} reads {PROFILES[self.profile].rows} transfers of a file, and "
                f"there are {len(self.transfers)}: use tables(), or write() to several files."
            )
        return made[0]

    def files(self, path: str | Path) -> dict[Path, str]:
        """What to write where: to this path; if there are several files, numbered from 1."""
        made, path = self.tables(), Path(path)
        if len(made) == 1:
            return {path: made[0]}
        return {path.with_stem(f"{path.stem}-{n}"): text for n, text in enumerate(made, start=1)}

    def write(self, path: str | Path) -> list[Path]:
        """Write the list to a file, or to several; their paths."""
        for one, text in (made := self.files(path)).items():
            one.write_text(text, encoding="utf-8", newline="")
        return [*made]


def _short(number: float) -> str:
    """A number as short as it is exact to a millionth.

    >>> _short(27.5), _short(25.0), _short(0.30000000000000004)
    ('27.5', '25', '0.3')
    """
    return f"{round(number, 6):.6f}".rstrip("0").rstrip(".")
