"""Pick lists: what a liquid handler is to transfer into the wells of a plate, volumes checked.

A table of stocks says where materials stand; `Dispense` rules say how much of which goes into a
well; machines.py writes the transfers as a machine reads them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.errors import HistoryError, SpaceError, did_you_mean
from covey.plates.layout import SIZES, Grid
from covey.plates.machines import PROFILES, PickList, Profile, Stock, Transfer
from covey.tables import Expected, SheetRow, as_space_errors, lines_in, table_from

if TYPE_CHECKING:
    from covey.plates.wells import Plate, Well

_COLUMNS = (
    *("material", "plate", "plate_type", "well", "concentration", "unit", "volume_ul", "dead_ul"),
    "slot",
)
_NEEDED = ("material", "plate", "well", "volume_ul")
_NUMBERS = ("concentration", "volume_ul", "dead_ul")
_WELL_NAME = re.compile(r"[A-Za-z]{1,2}[0-9]{1,3}")
_SIZE = re.compile(r"(?<![0-9])(6|12|24|48|96|384|1536)(?![0-9]|ul)", re.IGNORECASE)
_OTHER_SHAPE = re.compile(r"res|rack|trough|tube|vial", re.IGNORECASE)
_FIELD = re.compile(r"\{([^{}]+)\}")
_TINY = 1e-9  # µL: rounding of decimals


@dataclass(frozen=True)
class Dispense:
    """A rule: how much of a material goes into the wells of a role.

    Texts may hold parameters in braces: ``Dispense("{ligand}", volume="{ligand_ul}")``.

    Attributes:
        material: a name of the table of stocks.
        volume: in µL.
        concentration: wanted in the well, in the unit of the stock; ``of`` is the volume there.
        of: µL in the well, for a concentration.
        up_to: fill up to so many µL.
        role: "sample", the name of a control, or "all".
    """

    material: str
    volume: str | float | None = None
    concentration: str | float | None = None
    of: float | None = None
    up_to: float | None = None
    role: str = "sample"

    def __post_init__(self) -> None:
        given = [w for w in ("volume", "concentration", "up_to") if getattr(self, w) is not None]
        if len(given) != 1 or (self.concentration is not None) != (self.of is not None):
            raise SpaceError(
                f"dispense {self.material!r}: give volume in µL, or up_to in µL, or concentration "
                f"with of, the volume in the well; got {', '.join(given) or 'none of them'}."
            )

    @staticmethod
    def from_table(given: Dispense | Mapping[str, Any]) -> Dispense:
        """A rule from an entry of [[dispense]] in covey.toml."""
        if isinstance(given, Dispense):
            return given
        known = [one.name for one in fields(Dispense)]
        for name in given:
            if name not in known:
                raise SpaceError(
                    f"dispense has no {name!r}; it may have {', '.join(known)}."
                    f"{did_you_mean(name, known)}"
                )
        if "material" not in given:
            raise SpaceError(f"dispense needs a material; got {dict(given)!r}.")
        return Dispense(**given)


@dataclass(frozen=True)
class _Wish:
    """A volume that a rule puts into a well, before a machine rounds it."""

    well: Well
    material: str
    volume: float
    rule: Dispense

    @property
    def parameter(self) -> str:
        """The parameter that the volume or the concentration is, if it is just that."""
        rule = self.rule
        said = rule.volume if rule.volume is not None else rule.concentration
        alone = _FIELD.fullmatch(str(said).strip())
        return alone[1] if alone else ""


def pick_list(
    plate: Plate,
    profile: str,
    stocks: Any,
    dispense: Iterable[Dispense | Mapping[str, Any]],
    destination: Mapping[str, str] | None = None,
    decimal: str | None = None,
) -> PickList:
    """What is to be transferred into a plate, rule by rule and well by well in run order.

    ``decimal`` is the decimal mark of a file of stocks, where its numbers leave it open.

    Raises:
        SpaceError: A volume is below the smallest step, a stock runs dry, a well overflows,
            nobody has the material, or two plates would stand in one place.
    """
    if profile not in PROFILES:
        raise SpaceError(
            f"there is no profile {profile!r}; there are {', '.join(PROFILES)}."
            f"{did_you_mean(profile, PROFILES)}"
        )
    rules = [Dispense.from_table(one) for one in dispense]
    if not rules:
        raise SpaceError("nothing says what is dispensed; give rules, such as [[dispense]].")
    for rule in rules:
        _require_role(rule, plate)
    (shelf, notes), machine, to = (
        read_stocks(stocks, decimal),
        PROFILES[profile],
        dict(destination or {}),
    )
    filled: dict[str, float] = {}
    wanted: list[_Wish] = []
    for rule in rules:
        for well in plate.used:
            if not _applies(rule, well):
                continue
            material = _filled_in(rule.material, well)
            volume = _volume(rule, well, material, shelf, filled.get(well.name, 0.0))
            filled[well.name] = filled.get(well.name, 0.0) + volume
            if volume > _TINY:
                wanted.append(_Wish(well, material, volume, rule))
    _require_enough(shelf, wanted)
    made = [_drawn(shelf, wish, machine, profile) for wish in wanted]
    _require_slots(made, profile, to)
    return PickList(profile, tuple(made), to, notes)


def _require_slots(made: Sequence[Transfer], profile: str, to: Mapping[str, str]) -> None:
    """Raise if a machine would not know where a plate stands."""
    sources = {t.source.plate: t.source.slot for t in made}
    lacking = [plate for plate, slot in sources.items() if not slot]
    if profile == "opentrons" and (lacking or not to.get("slot")):
        what = [f"of {plate} (column slot of the stocks)" for plate in lacking]
        what += [] if to.get("slot") else ["of the plate itself (--slot)"]
        raise SpaceError(f"opentrons needs the slot of every labware; give that {what[0]}.")
    if profile == "epmotion" and lacking and len(sources) > 1:
        raise SpaceError(
            f"epmotion knows source plates by the number of their rack, and {lacking[0]} has none; "
            "give it in the column slot of the stocks."
        )
    if profile in ("opentrons", "epmotion"):
        # The racks of an epMotion are numbered anew for what it fills; the slots of a deck are not.
        own = {to["slot"]: "the plate itself (--slot)"} if profile == "opentrons" else {}
        _require_one_each(made, profile, own)


def _require_one_each(made: Sequence[Transfer], profile: str, own: Mapping[str, str]) -> None:
    """Raise if two plates stand in one slot, or a plate in two: a machine would mix them up."""
    there, place = dict(own), "rack" if profile == "epmotion" else "slot"
    slots: dict[str, str] = {}
    for t in made:
        plate, slot = t.source.plate, t.source.slot
        if slots.setdefault(plate, slot) != slot:
            raise SpaceError(
                f"the stocks have {plate} in {place} {slots[plate]} and in {place} {slot}; give "
                "all rows of a plate the same number in the column slot."
            )
        if slot and there.setdefault(slot, plate) != plate:
            raise SpaceError(
                f"{place} {slot} is that of {plate} and of {there[slot]}, and {profile} would mix "
                f"them up; give each a {place} of its own (column slot of the stocks)."
            )


def _require_role(rule: Dispense, plate: Plate) -> None:
    """Raise if no well can have the role of a rule, whose liquid would be left out."""
    known = ("sample", "all", *plate.layout.samples_of_controls)
    if rule.role not in known:
        raise SpaceError(
            f"dispense {rule.material!r}: plate {plate.name} has no control {rule.role!r}; the "
            f"role is one of {', '.join(known)}.{did_you_mean(rule.role, known)}"
        )


def _applies(rule: Dispense, well: Well) -> bool:
    if rule.role == "all":
        return True
    if rule.role == "sample":
        return well.point is not None
    return well.role == f"control:{rule.role}"


def _filled_in(text: object, well: Well) -> str:
    """A text with the parameters of the well's point in place of their names."""

    def value(found: re.Match[str]) -> str:
        point: Mapping[str, Any] = well.point or {}
        if found[1] not in point:
            raise SpaceError(
                f"well {well.name}: dispense names {{{found[1]}}}, which "
                f"{'is no parameter' if well.point else 'a control outside the space has not'}"
                f"{'; those are ' + ', '.join(point) if point else ''}."
                f"{did_you_mean(found[1], point)}"
                f"{'' if well.point else ' Write a rule of its own for it, with its role.'}"
            )
        return str(point[found[1]])

    return _FIELD.sub(value, str(text))


def _volume(
    rule: Dispense, well: Well, material: str, shelf: Mapping[str, list[Stock]], there: float
) -> float:
    """µL of the material that a rule puts into a well that has ``there`` µL."""
    if rule.up_to is not None:
        if there > rule.up_to + _TINY:
            raise SpaceError(
                f"well {well.name}: {there:g} µL are dispensed, more than the {rule.up_to:g} µL "
                f"that {material} is to fill it up to."
            )
        return rule.up_to - there
    told = rule.volume if rule.volume is not None else rule.concentration
    where = f"well {well.name}, {material}"
    number = _number(_filled_in(told, well), where)
    if rule.concentration is None:
        return number
    stock, *others = _stocks_of(shelf, material, well.name)
    if stock.concentration is None or rule.of is None:
        raise SpaceError(f"{where}: the stock in {stock.place} has no concentration; give one.")
    for other in others:
        if other.concentration != stock.concentration:
            raise SpaceError(
                f"{where}: the stocks in {stock.place} and {other.place} have different "
                "concentrations; call them by different names, or make them alike."
            )
    return number * rule.of / stock.concentration


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise SpaceError(f"{where}: {text!r} is no volume in µL.") from error
    if not 0.0 <= number < math.inf:
        raise SpaceError(f"{where}: a volume is at least 0 µL; got {text}.")
    return number


def _stocks_of(shelf: Mapping[str, list[Stock]], material: str, well: str) -> list[Stock]:
    if material not in shelf:
        raise SpaceError(
            f"well {well}: there is no stock of {material!r}; there are {', '.join(shelf)}."
            f"{did_you_mean(material, shelf)}"
        )
    return shelf[material]


def _require_enough(shelf: Mapping[str, list[Stock]], wanted: Sequence[_Wish]) -> None:
    """Raise if stocks would run dry, and say of each by how much."""
    needed: dict[str, float] = {}
    for wish in wanted:
        _stocks_of(shelf, wish.material, wish.well.name)
        needed[wish.material] = needed.get(wish.material, 0.0) + wish.volume
    there = {material: sum(stock.left for stock in shelf[material]) for material in needed}
    dry = [material for material in needed if needed[material] > there[material] + _TINY]
    if dry:
        short = (
            f"the stock of {m} runs dry: {needed[m]:.4g} µL are needed, and {there[m]:.4g} µL can "
            f"be drawn; {needed[m] - there[m]:.4g} µL are missing"
            for m in dry
        )
        raise SpaceError(
            f"{'; '.join(short)}. Fill up, and correct volume_ul in the table of stocks; or give "
            "the material a further row, for another source well."
        )


def _drawn(
    shelf: Mapping[str, list[Stock]], wish: _Wish, machine: Profile, profile: str
) -> Transfer:
    """One transfer, from the first source well that has enough."""
    well, material, wanted = wish.well, wish.material, wish.volume
    volume = round(wanted / machine.step) * machine.step if machine.step else wanted
    volume = round(volume, 6)
    stock = next((s for s in shelf[material] if s.left >= volume - _TINY), shelf[material][0])
    if volume < machine.least - _TINY:
        c = stock.concentration
        help_ = f"a stock of at most {c * wanted / machine.least:.3g} {stock.unit}" if c else ""
        raise SpaceError(
            f"well {well.name}: {wanted:.4g} µL of {material} is less than {profile} transfers, "
            f"{machine.least:g} µL; use {help_ or 'a more dilute stock'}, or a larger volume."
        )
    if volume > machine.most + _TINY:
        raise SpaceError(
            f"well {well.name}: {wanted:.4g} µL of {material} is more than {profile} transfers at "
            f"once, {machine.most:g} µL; split the rule in two, or use a stronger stock."
        )
    if stock.left < volume - _TINY:
        raise SpaceError(
            f"well {well.name}: no source well has {volume:.4g} µL of {material} left "
            f"({stock.place}: {stock.left:.4g} µL); pool what is left in one well."
        )
    stock.left -= volume
    amount, rule = volume, wish.rule
    if rule.concentration is not None:
        amount = volume * (stock.concentration or 0.0) / (rule.of or 1.0)
    amount = float(f"{amount:.12g}")
    made = (stock, well.plate, well.name, volume, wanted)
    return Transfer(*made, trial=well.trial, parameter=wish.parameter, amount=amount)


def read_stocks(
    source: Any, decimal: str | None = None
) -> tuple[dict[str, list[Stock]], tuple[str, ...]]:
    """Stocks by material, and what was noticed when their file was read.

    They are a file or rows: material, plate, well, volume_ul and more.

    Raises:
        SpaceError: The file cannot be read, or a stock lacks something; its cell is named.
    """
    with as_space_errors():
        rows, name, notes = _rows(source, decimal)
        shelf: dict[str, list[Stock]] = {}
        taken: dict[tuple[str, str], str] = {}
        for row in rows:
            made = _stock(row)
            other = taken.setdefault((made.plate, made.well), made.material)
            if other != made.material:
                raise row.error(
                    f"{made.place} holds {other} and {made.material}; one well has one material."
                )
            shelf.setdefault(made.material, []).append(made)
    if not shelf:
        raise SpaceError(f"{name} has no stocks.")
    return shelf, notes


def _stock(row: SheetRow) -> Stock:
    lacking = [column for column in _NEEDED if not row.text(column)]
    if lacking:
        raise row.error(f"a stock needs {', '.join(_NEEDED)}; no {lacking[0]}.")
    numbers = {c: row.number(c) if row.text(c) else None for c in _NUMBERS}
    volume, dead = numbers["volume_ul"] or 0.0, numbers["dead_ul"] or 0.0
    if volume < 0.0 or dead < 0.0:
        raise row.error(f"volumes are at least 0 µL; got {volume:g} and {dead:g}.")
    text = {column: row.text(column) for column in _COLUMNS}
    _require_well(row, text["well"], text["plate_type"])
    return Stock(
        *(text["material"], text["plate"], text["well"], text["plate_type"]),
        concentration=numbers["concentration"],
        unit=text["unit"],
        slot=text["slot"],
        left=max(volume - dead, 0.0),
    )


def _require_well(row: SheetRow, well: str, plate_type: str) -> None:
    """Raise if a source plate of this type has no such well.

    The type of a plate has its number of wells in it, as 384PP_DMSO2 and corning_96_wellplate have.
    Racks and reservoirs have other shapes, and a type may say nothing: then no plate at all is
    larger than one of 1536 wells. What is no letter and number is a name of somebody's own.
    """
    found = None if _OTHER_SHAPE.search(plate_type) else _SIZE.search(plate_type)
    grid = Grid(*SIZES[int(found[0]) if found else max(SIZES)])
    if not _WELL_NAME.fullmatch(well):
        return
    try:
        grid.index(well)
    except SpaceError as error:
        of = f"a plate {plate_type}" if found else "any plate"
        raise row.error(
            f"there is no well {well!r} on {of}, whose wells are A1 to {grid.name(len(grid) - 1)}."
        ) from error


def _rows(source: Any, decimal: str | None) -> tuple[list[SheetRow], str, tuple[str, ...]]:
    """The rows of a table of stocks, their columns in small letters; its name; notes on it."""
    if not isinstance(source, str | Path):
        given = [{c: "" if v is None else str(v) for c, v in row.items()} for row in source]
        rows = [SheetRow(cells, f"stocks:{n}") for n, cells in enumerate(given, start=2)]
        return rows, "stocks", ()
    table = table_from(lines_in(source, Expected(_COLUMNS)), None, decimal, loose=True)
    names = {name: name.lower() for name in table.columns}
    missing = [column for column in _NEEDED if column not in names.values()]
    if missing:
        raise HistoryError(
            f"{source} has no column {missing[0]!r}; it has {', '.join(table.columns)}. Stocks "
            f"have {', '.join(_COLUMNS)}.{did_you_mean(missing[0], table.columns)}"
        )
    rows = [replace(r, cells={names[c]: text for c, text in r.cells.items()}) for r in table.rows]
    notes, unread = [*table.dialect.said()], [name for name in names if names[name] not in _COLUMNS]
    if unread:  # dead_ul by another name would be a stock that runs dry on the machine
        absent = [column for column in _COLUMNS if column not in names.values()]
        lacking = f"; there is no {', '.join(absent)}" if absent else ""
        notes.append(f"not read: {', '.join(unread)}{lacking}")
    return rows, table.file, tuple(notes)
