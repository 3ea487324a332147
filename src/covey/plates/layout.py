"""`Layout`: what a plate has room for, as plain data that a log can hold.

`Grid` names the wells of a plate; `Control` is a sample of known kind that every plate carries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from covey.errors import SpaceError, did_you_mean, is_whole, sentence, several
from covey.space import Pool

if TYPE_CHECKING:
    from covey.arrays import Mask
    from covey.space import Space

Shared: TypeAlias = Literal["plate", "row", "column"]

SIZES = {6: (2, 3), 12: (3, 4), 24: (4, 6), 48: (6, 8), 96: (8, 12), 384: (16, 24), 1536: (32, 48)}
"""Rows and columns of the usual plates."""
SHARED = ("plate", "row", "column")
ORDERS = ("random", "blocked", "mirrored", "listed")
EDGES = ("use", "controls", "empty")
SPREADS = ("within", "plates")
EFFECTS = ("plate", "row", "column", "day")
_MOST = 1536  # wells of a plate
WELL_NAME = re.compile(r"\s*([A-Za-z]{1,2})\s*0*([1-9]\d?)\s*")


@dataclass(frozen=True, slots=True)
class Grid:
    """The wells of a plate, numbered along its rows: A1, A2, ..., B1, ...

    >>> grid = Grid(8, 12)
    >>> grid.name(13), grid.index("b02"), grid.index((2, 2))
    ('B2', 13, 13)
    """

    rows: int
    columns: int

    def __len__(self) -> int:
        return self.rows * self.columns

    def name(self, well: int) -> str:
        """The name of a well, such as A1; the 27th row is AA."""
        row, column = divmod(int(well), self.columns)
        return f"{row_name(row)}{column + 1}"

    def index(self, well: object) -> int:
        """The number of a well given as A1, A01, a1 or (row, column), both from 1."""
        row, column = _place(well)
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            last = self.name(len(self) - 1)
            raise SpaceError(
                f"there is no well {_shown(well)} on a plate of {self.rows} x {self.columns}; "
                f"wells go from A1 to {last}."
            )
        return row * self.columns + column

    def row(self, wells: object) -> np.ndarray:
        """The rows of wells, from 0."""
        return np.asarray(wells, dtype=np.intp) // self.columns

    def column(self, wells: object) -> np.ndarray:
        """The columns of wells, from 0."""
        return np.asarray(wells, dtype=np.intp) % self.columns

    def turned(self, well: int) -> int:
        """Where a well comes to stand when the plate is turned by 180 degrees."""
        return len(self) - 1 - well

    @property
    def rim(self) -> Mask:
        """Which wells (n,) are at the edge."""
        row, column = self.row(np.arange(len(self))), self.column(np.arange(len(self)))
        return (row == 0) | (row == self.rows - 1) | (column == 0) | (column == self.columns - 1)

    def wells_of(self, words: str) -> list[int]:
        """The wells that a text names: one of them, "row C" or "column 12"."""
        parts = words.split()
        every = np.arange(len(self))
        if len(parts) == 2 and parts[0].lower() == "row":
            rows = [i for i in range(self.rows) if row_name(i) == parts[1].upper()]
            if rows:
                return every[self.row(every) == rows[0]].tolist()
        if len(parts) == 2 and parts[0].lower() == "column" and parts[1].isdecimal():
            columns = every[self.column(every) == int(parts[1]) - 1]
            if len(columns):
                return columns.tolist()
        if len(parts) == 2 and parts[0].lower() in ("row", "column"):
            raise SpaceError(
                f"there is no {words!r} on a plate of {self.rows} x {self.columns}; rows go to "
                f"{row_name(self.rows - 1)}, columns to {self.columns}."
            )
        if len(parts) == 2:
            raise SpaceError(f'{words!r} is no well; write such as "A1", "row H" or "column 12".')
        return [self.index(words)]


def row_name(row: int) -> str:
    """The letters of a row, from 0: A, ..., Z, AA, ...

    >>> row_name(7), row_name(31)
    ('H', 'AF')
    """
    letter = chr(ord("A") + row % 26)
    return letter if row < 26 else chr(ord("A") + row // 26 - 1) + letter


def _place(well: object) -> tuple[int, int]:
    """Row and column of a well, from 0."""
    if isinstance(well, str) and (found := WELL_NAME.fullmatch(well)):
        row = 0
        for letter in found[1].upper():
            row = 26 * row + ord(letter) - ord("A") + 1
        return row - 1, int(found[2]) - 1
    if isinstance(well, Sequence) and not isinstance(well, str) and len(well) == 2:
        row, column = well
        if is_whole(row, 1) and is_whole(column, 1):
            return int(row) - 1, int(column) - 1
    raise SpaceError(f"a well is named such as A1, or (row, column) from 1; got {_shown(well)}.")


def _shown(value: object) -> str:
    """A value in a message: a well without quotes, anything else as Python writes it."""
    return value if isinstance(value, str) and WELL_NAME.fullmatch(value) else repr(value)


@dataclass(frozen=True)
class Control:
    """A sample that every plate carries to compare plates by, such as a blank.

    Attributes:
        wells: how many of them a plate has; or which, such as ("D6", "E7").
        at: the point of the space that it is, if it is one; its readings are then results. What its
            plate shares may be left out: it has the value of its plate.
    """

    wells: int | Sequence[str] = 1
    at: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        listed = isinstance(self.wells, Sequence) and not isinstance(self.wells, str)
        if not listed and not is_whole(self.wells, 1):
            raise SpaceError(
                "the wells of a control are a number of at least 1, or a list such as "
                f"['D6', 'E7']; got {self.wells!r}."
            )
        if listed and not self.wells:
            raise SpaceError("a control needs at least one well; its list is empty.")
        if self.at is not None and not isinstance(self.at, Mapping):
            raise SpaceError(f"the point of a control is a dict, or None; got {self.at!r}.")
        if isinstance(self.wells, Sequence):
            object.__setattr__(self, "wells", tuple(self.wells))

    @property
    def count(self) -> int:
        """The number of its wells."""
        return len(self.wells) if isinstance(self.wells, Sequence) else int(self.wells)

    def describe(self) -> dict[str, Any]:
        """Plain data for a log."""
        wells = list(self.wells) if isinstance(self.wells, Sequence) else int(self.wells)
        return {"wells": wells, **({} if self.at is None else {"at": dict(self.at)})}


@dataclass(frozen=True)
class Layout:
    """How a plate is to be filled.

    What is shared, and so hard to change, is a property of the bench and not of the parameter; a
    study may use another layout next week.

    Attributes:
        plate: the number of wells (6, 12, 24, 48, 96, 384, 1536), or (rows, columns).
        shared: parameters that have one value for each "plate", "row" or "column".
        distinct: at most so many different values of a parameter on a plate.
        total: at most so much of a numeric parameter, summed over the samples of a plate.
        controls: by name, how many wells; or a `Control`.
        replicates: wells for each point.
        spread: the copies of a point stand "within" a plate, or on as many different "plates".
        reserved: wells that stay empty: "A1", "row H", "column 12".
        edge: "use" the rim as any other well, for "controls" first, or leave it "empty".
        order: "random"; "blocked", column by column; "mirrored", the second copy of a point where
            the first would stand on the plate turned by 180 degrees; or "listed", as chosen.
        effects: shifts that the model learns for each "plate", "row", "column" or "day".

    >>> Layout(plate=96, controls={"blank": 4}, replicates=2).points
    46
    """

    plate: int | tuple[int, int] = 96
    shared: Mapping[str, Shared] = field(default_factory=dict)
    distinct: Mapping[str, int] = field(default_factory=dict)
    total: Mapping[str, float] = field(default_factory=dict)
    controls: Mapping[str, int | Control] = field(default_factory=dict)
    replicates: int = 1
    spread: Literal["within", "plates"] = "within"
    reserved: Sequence[str] = ()
    edge: Literal["use", "controls", "empty"] = "use"
    order: Literal["random", "blocked", "mirrored", "listed"] = "random"
    effects: Sequence[str] = ("plate",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plate", _checked_size(self.plate))
        object.__setattr__(self, "controls", _checked_controls(self.controls))
        object.__setattr__(self, "reserved", _names(self.reserved, "reserved"))
        object.__setattr__(self, "effects", _names(self.effects, "effects"))
        for what, value, allowed in (
            ("spread", self.spread, SPREADS),
            ("edge", self.edge, EDGES),
            ("order", self.order, ORDERS),
            *(("shared", value, SHARED) for value in _table(self.shared, "shared").values()),
            *(("effects", value, EFFECTS) for value in self.effects),
        ):
            if value not in allowed:
                raise SpaceError(
                    f"{what} of a layout is one of {', '.join(allowed)}; got {value!r}."
                    f"{did_you_mean(value, allowed)}"
                )
        self._require_counts()
        if {"row", "column"} <= {*self.shared.values()}:
            raise SpaceError(
                "one parameter is shared by row and another by column: such strip plots are not "
                "laid out yet. Share both by row, both by column, or one of them by plate."
            )
        self._require_mirror()
        self._require_room()

    def _require_counts(self) -> None:
        for name, most in _table(self.distinct, "distinct").items():
            if not is_whole(most, 1):
                raise SpaceError(f"distinct {name!r} is a whole number >= 1; got {most!r}.")
        for name, most in _table(self.total, "total").items():
            if not _is_number(most):
                raise SpaceError(f"total {name!r} is a finite number; got {most!r}.")
        if not is_whole(self.replicates, 1):
            raise SpaceError(f"replicates is a whole number >= 1; got {self.replicates!r}.")

    def _require_mirror(self) -> None:
        if self.order != "mirrored":
            return
        by = {*self.shared.values()} - {"plate"}
        odd = [n for n, c in self.samples_of_controls.items() if c.count % 2]
        if self.replicates != 2 or self.spread != "within" or by or odd:
            raise SpaceError(
                "order 'mirrored' puts the second copy of a point, and half of each control, where "
                "the first stand on the plate turned by 180 degrees: it takes replicates=2 within "
                "a plate, nothing shared by row or column, and an even number of wells for each "
                "control. Change that, or use order='random'."
            )

    def _require_room(self) -> None:
        grid, taken = self.grid, dict[int, str]()
        blocked = self._unusable
        for name, control in self.samples_of_controls.items():
            for word in control.wells if isinstance(control.wells, Sequence) else ():
                well = grid.index(word)
                if blocked[well]:
                    raise SpaceError(
                        f"control {name!r}: well {word} is to stay empty; name another, or take it "
                        "out of reserved and edge."
                    )
                if well in taken:
                    both = " and ".join(dict.fromkeys((taken[well], name)))
                    raise SpaceError(f"well {word} is given twice, to {both}; name another.")
                taken[well] = name
        if self.capacity < 0 or self.points < 1:
            raise SpaceError(
                f"this layout leaves no well for a point: {self.sum_in_words}. Use a larger plate, "
                "or fewer controls, replicates and reserved wells."
            )

    @property
    def samples_of_controls(self) -> dict[str, Control]:
        """The controls by name."""
        return dict(self.controls)  # type: ignore[arg-type] # completed when it was built

    @property
    def grid(self) -> Grid:
        """The wells of the plate."""
        return Grid(*self.plate)  # type: ignore[misc] # completed when it was built

    @cached_property
    def _unusable(self) -> Mask:
        grid = self.grid
        out = np.zeros(len(grid), dtype=bool)
        for words in self.reserved:
            if not isinstance(words, str):
                raise SpaceError(f"a reserved well is 'A1', 'row H' or 'column 12'; got {words!r}.")
            out[grid.wells_of(words)] = True
        return out | grid.rim if self.edge == "empty" else out

    @property
    def usable(self) -> Mask:
        """Wells (n,) that are neither reserved nor on a rim that stays empty."""
        return ~self._unusable

    @property
    def control_count(self) -> int:
        """Wells that controls take on each plate."""
        return sum(control.count for control in self.samples_of_controls.values())

    @property
    def capacity(self) -> int:
        """Wells that are left for points; where halves are mirrored, those that have a partner."""
        if self.order == "mirrored":
            pairs = self.usable & self.usable[::-1]
            middle = len(pairs) % 2 and pairs[len(pairs) // 2]  # its own partner
            return int(pairs.sum()) - int(middle) - self.control_count
        return int(self.usable.sum()) - self.control_count

    @property
    def copies(self) -> int:
        """Wells of one plate that a point takes."""
        return self.replicates if self.spread == "within" else 1

    @property
    def points(self) -> int:
        """The most points that a plate has room for; what is shared by row or column may cost."""
        return max(self.capacity, 0) // self.copies

    @property
    def sum_in_words(self) -> str:
        """How the capacity comes about."""
        grid = self.grid
        empty = int(self._unusable.sum())
        copies = f", at {several(self.copies, 'well')} a point" if self.copies > 1 else ""
        return (
            f"{several(len(grid), 'well')}, {empty} reserved or on an empty rim, "
            f"{several(self.control_count, 'control')}: {self.capacity} left{copies}"
        )

    def shared_by(self, *kinds: str) -> tuple[str, ...]:
        """The parameters that are shared in these ways, in the order given."""
        return tuple(name for name, by in self.shared.items() if by in kinds)

    @property
    def blocks_by(self) -> Literal["row", "column"] | None:
        """Whether something is shared by row or by column."""
        kinds = {*self.shared.values()}
        return "row" if "row" in kinds else "column" if "column" in kinds else None

    def against(self, space: Space | Pool) -> Layout:
        """This layout, its names and points checked against a space.

        Raises:
            SpaceError: A name is no parameter, a total is not of numbers, a control is no point.
        """
        for what in ("shared", "distinct", "total"):
            for name in getattr(self, what):
                if name not in space.names:
                    raise SpaceError(
                        f"{what} of the layout names {name!r}, which is no parameter of the "
                        f"space; those are {', '.join(space.names)}."
                        f"{did_you_mean(name, space.names)}"
                    )
        for name in self.shared:
            require_present(space, name)
        for name in self.total:
            require_numeric(space, name)
        self._require_points(space)
        return self

    def _require_points(self, space: Space | Pool) -> None:
        for name, control in self.samples_of_controls.items():
            if control.at is None:
                continue
            shared = [n for n in self.shared if n not in control.at]  # taken over from its plate
            try:
                space.check(control.at, partial=bool(shared))
                for lacking in space.names if shared else ():
                    if lacking not in (*control.at, *shared) and _is_always_there(space, lacking):
                        raise SpaceError(f"its point has no {lacking!r}.")
            except SpaceError as error:
                raise SpaceError(
                    f"control {name!r}: {sentence(error)} Leave out its point if it is outside the "
                    "space."
                ) from error

    def describe(self) -> dict[str, Any]:
        """Plain data for a log; what is as usual is left out."""
        plain = Layout()
        found: dict[str, Any] = {"plate": [self.grid.rows, self.grid.columns]}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "plate" or value == getattr(plain, one.name):
                continue
            if one.name == "controls":
                value = {n: c.describe() for n, c in self.samples_of_controls.items()}
            found[one.name] = dict(value) if isinstance(value, Mapping) else value
            if isinstance(value, tuple):
                found[one.name] = list(value)
        return found

    @staticmethod
    def from_description(data: Mapping[str, Any]) -> Layout:
        """The layout of `describe`, or of a table [plate] in covey.toml."""
        known = [one.name for one in fields(Layout)]
        for name in data:
            if name not in known:
                raise SpaceError(
                    f"a layout has no {name!r}; it may have {', '.join(known)}."
                    f"{did_you_mean(name, known)}"
                )
        given = dict(data)
        if isinstance(given.get("plate"), list):
            given["plate"] = tuple(given["plate"])
        if isinstance(given.get("controls"), Mapping):
            given["controls"] = {n: _control(n, c) for n, c in given["controls"].items()}
        return Layout(**given)


def _is_always_there(space: Space | Pool, name: str) -> bool:
    """Whether all points have a parameter."""
    return space.presence is None or name not in space.presence


def require_present(space: Space | Pool, name: str) -> None:
    """Raise if some points do not have a parameter."""
    if not _is_always_there(space, name):
        raise SpaceError(
            f"shared of the layout names {name!r}, which some points do not have (`when`), so "
            "wells cannot share it; share what it depends on."
        )


def require_numeric(space: Space | Pool, name: str) -> None:
    """Raise unless the values of a parameter can be summed."""
    if isinstance(space, Pool):
        numeric = _is_number(space.point(0)[name])
    else:
        numeric = space.parameters[name].numeric
    if not numeric:
        raise SpaceError(f"total of the layout sums {name!r}, which is not a number; drop it.")


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return math.isfinite(value)


def _control(name: str, given: object) -> int | Control:
    if not isinstance(given, Mapping):
        return given  # type: ignore[return-value] # checked when the layout is built
    unknown = [key for key in given if key not in ("wells", "at")]
    if unknown:
        raise SpaceError(f"control {name!r} has no {unknown[0]!r}; it may have wells and at.")
    return Control(**given)


def _checked_size(plate: object) -> tuple[int, int]:
    if is_whole(plate, 1) and int(plate) in SIZES:
        return SIZES[int(plate)]
    if isinstance(plate, Sequence) and not isinstance(plate, str) and len(plate) == 2:
        rows, columns = plate
        whole = is_whole(rows, 1) and is_whole(columns, 1)
        if whole and rows <= 32 and columns <= 99 and rows * columns <= _MOST:
            return int(rows), int(columns)
    raise SpaceError(
        f"plate is a number of wells, one of {', '.join(map(str, SIZES))}, or (rows, columns) of "
        f"at most 32 rows, 99 columns and {_MOST} wells; got {plate!r}."
    )


def _checked_controls(controls: object) -> dict[str, Control]:
    found = {}
    for name, given in _table(controls, "controls").items():
        if not isinstance(name, str) or not name.strip() or ":" in name:
            raise SpaceError(f"the name of a control is a text without a colon; got {name!r}.")
        if name in ("sample", "all"):
            raise SpaceError(f"no control is named {name!r}, which rules of dispense need.")
        if not isinstance(given, Control) and not is_whole(given, 1):
            raise SpaceError(
                f"control {name!r} is a number of wells, or covey.Control(wells=4, at={{...}}); "
                f"got {given!r}."
            )
        found[name] = given if isinstance(given, Control) else Control(int(given))
    return found


def _table(given: object, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise SpaceError(f"{what} of a layout is a dict by name; got {given!r}.")
    return given


def _names(given: object, what: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SpaceError(f"{what} of a layout is a list of names; got {given!r}.")
    return tuple(given)
