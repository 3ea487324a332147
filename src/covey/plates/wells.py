"""`Plate`: what stands in each well of a plate and what was measured there; its table of wells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import SpaceError
from covey.history import History, PlateRecord, Point, Trial
from covey.history.trial import as_told
from covey.plates.layout import Grid, Layout, row_name
from covey.plates.placement import Balance, balance_of, balance_values
from covey.spreadsheets import escaped

if TYPE_CHECKING:
    from covey.plates.machines import PickList
    from covey.plates.picking import Dispense
    from covey.plates.reader import Readings

COLUMNS = ("plate", "well", "row", "column", "role", "trial", "replicate", "run_order")
RESULTS = ("predicted", "value", "mark", "note")


@dataclass(frozen=True)
class Well:
    """One well of a plate."""

    plate: str
    name: str  # such as A1
    row: str  # its letters
    column: int  # from 1
    role: str  # "sample", "control:<name>" or "empty"
    trial: int | None = None
    replicate: int | None = None
    order: int | None = None  # in which wells are run, from 1
    point: Point | None = None
    predicted: float | None = None
    values: Point | None = None  # what was measured, by outcome
    mark: str = ""
    asked: Point | None = None  # the point that was asked for, if it is another

    @property
    def value(self) -> float | Mapping[str, float] | None:
        """What was measured: a number, or outcomes by name where they have names."""
        return None if self.values is None else as_told(self.values)


@dataclass(frozen=True)
class Plate:
    """One plate of a study, as it stood when it was read from the log."""

    name: str
    layout: Layout
    wells: tuple[Well, ...]  # all of them, row by row, empty ones too
    parameters: tuple[str, ...]
    outcomes: tuple[str, ...] = ("value",)

    @property
    def grid(self) -> Grid:
        """Its rows and columns."""
        return self.layout.grid

    @cached_property
    def used(self) -> tuple[Well, ...]:
        """The wells that hold something, in the order in which they are run."""
        return tuple(sorted((w for w in self.wells if w.order is not None), key=_order))

    @property
    def trials(self) -> tuple[int, ...]:
        """The ids of its trials, in order."""
        return tuple(sorted({well.trial for well in self.wells if well.trial is not None}))

    @property
    def held(self) -> dict[str, Any]:
        """The parameters that its layout has one value of for all of it, and these values."""
        point = next((w.point for w in self.wells if w.trial is not None and w.point), None)
        names = (name for name, level in self.layout.shared.items() if level == "plate")
        return {} if point is None else {name: point.get(name) for name in names}

    @property
    def missing(self) -> tuple[str, ...]:
        """Wells in use that are neither measured nor marked yet."""
        return tuple(w.name for w in self.wells if w.order and w.value is None and not w.mark)

    def well(self, name: object) -> Well:
        """The well of this name: A1, a01, or (row, column)."""
        return self.wells[self.grid.index(name)]

    @cached_property
    def balance(self) -> Balance:
        """How evenly the plate is filled."""
        roles = [(self.grid.index(w.name), w.role) for w in self.used]
        samples = [w for w in self.wells if w.point is not None]
        free = [name for name in self.parameters if name not in self.layout.shared]
        features = _features([w.point for w in samples if w.point is not None], free)
        places = [(self.grid.index(w.name), w.trial, w.order) for w in samples]
        return balance_of(self.grid, roles, *balance_values(self.grid, places, features))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its table: always all of them."""
        named = tuple(n for n in self.outcomes if n != "value")
        results = ("predicted", *(named or ("value",)), "mark", "note")
        return (*COLUMNS, *(self.heading(name) for name in self.parameters), *results)

    def heading(self, name: str) -> str:
        """The column of a parameter in its table."""
        taken = (*COLUMNS, *RESULTS, *self.outcomes)
        return f"point.{name}" if name in taken else name

    def rows(self) -> list[dict[str, Any]]:
        """One row for each well, row by row; the order of rows means nothing."""
        return [self._row(well) for well in self.wells]

    def _row(self, well: Well) -> dict[str, Any]:
        found: dict[str, Any] = dict(
            zip(
                COLUMNS,
                (
                    *(self.name, well.name, well.row, well.column, well.role),
                    *(well.trial, well.replicate, well.order),
                ),
                strict=True,
            )
        )
        for name in self.parameters:
            found[self.heading(name)] = None if well.point is None else well.point.get(name)
        found |= {"predicted": well.predicted, "mark": well.mark, "note": ""}
        values = well.values or Point()
        return found | {name: values.get(name) for name in self.outcomes}

    def table(self, decimal: str = ".") -> str:
        """Its wells as CSV text; with decimal commas, cells are separated by semicolons."""
        return csv_text(self.columns, self.rows(), decimal)

    def write(self, path: str | Path, decimal: str = ".") -> None:
        """Write its wells as a CSV file."""
        Path(path).write_text(self.table(decimal), encoding="utf-8", newline="")

    def to_frame(self) -> Any:
        """Its wells as a pandas frame."""
        try:
            import pandas
        except ImportError as error:
            from covey.errors import MissingExtraError

            raise MissingExtraError("pandas", "frames") from error
        return pandas.DataFrame(self.rows(), columns=list(self.columns))

    def readings(
        self, source: Any, *, value: str | None = None, decimal: str | None = None
    ) -> Readings:
        """What a file of a reader says of this plate, for `Study.tell_plate`.

        ``value`` names the column of the only outcome where it has another name; ``decimal`` is the
        decimal mark, where the file leaves it open.
        """
        from covey.plates.reader import read_readings

        return read_readings(source, self.grid, self.outcomes, self.name, decimal, value)

    def pick_list(
        self,
        profile: str = "generic",
        *,
        stocks: Any,
        dispense: Iterable[Dispense | Mapping[str, Any]],
    ) -> PickList:
        """What a liquid handler is to pipette: "echo", "opentrons", "hamilton", ... see docs."""
        from covey.plates.picking import pick_list

        return pick_list(self, profile, stocks, dispense)

    def map(self, decimal: str = ".") -> str:
        """A page to print: the plate as it looks from above, one page of paper in HTML."""
        from covey.plates.sheet import plate_map

        return plate_map(self, decimal)


def _order(well: Well) -> int:
    return well.order or 0


def _features(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> np.ndarray:
    """Numbers (n, q) of points: a column for each number, one for each option."""
    columns: list[np.ndarray] = []
    for name in names:
        values = [point.get(name) for point in points]
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            columns.append(np.array(values, dtype=float))
            continue
        options = list(dict.fromkeys(map(repr, values)))
        columns += [np.array([repr(v) == one for v in values], dtype=float) for one in options]
    return np.column_stack(columns) if columns else np.zeros((len(points), 0))


def plate_of(
    record: PlateRecord,
    history: History,
    parameters: Sequence[str],
    outcomes: Sequence[str] = ("value",),
    predicted: Mapping[int, float] | None = None,
) -> Plate:
    """A plate as a log knows it; ``predicted`` are values by trial."""
    layout = Layout.from_description(record.layout)
    grid, wells = layout.grid, []
    for index in range(len(grid)):
        name = grid.name(index)
        row, column = divmod(index, grid.columns)
        use = record.uses.get(name)
        made = Well(record.name, name, row_name(row), column + 1, "empty")
        if use is not None:
            trial: Trial | None = None if use.trial is None else history.trial(use.trial)
            role = "sample" if trial is not None else f"control:{use.control}"
            at = record.point_of_control(use.control, history.trials)
            made = Well(
                *(record.name, name, row_name(row), column + 1, role),
                trial=use.trial,
                replicate=use.replicate,
                order=use.order,
                point=at if trial is None else trial.point,
                predicted=(predicted or {}).get(-1 if use.trial is None else use.trial),
                values=record.readings.get(name),
                mark=record.marks.get(name, ""),
                asked=None if trial is None else _asked(history, trial),
            )
        wells.append(made)
    return Plate(record.name, layout, tuple(wells), tuple(parameters), tuple(outcomes))


def _asked(history: History, trial: Trial) -> Point | None:
    asked = history.point_asked(trial)
    return None if asked == trial.point else asked


# Tables as CSV. Text that a spreadsheet would take for a formula is escaped by an apostrophe.


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], decimal: str = ".") -> str:
    """Rows as CSV text: numbers exactly, text so that no spreadsheet takes it for a formula."""
    if decimal not in (".", ","):
        raise SpaceError(f'the decimal mark is "." or ","; got {decimal!r}.')
    out, separator = io.StringIO(newline=""), ";" if decimal == "," else ","
    writer = csv.writer(out, lineterminator="\n", delimiter=separator)
    writer.writerow([escaped(name, separator) for name in columns])
    writer.writerows([_cell(row.get(name), decimal, separator) for name in columns] for row in rows)
    return out.getvalue()


def _cell(value: Any, decimal: str, separator: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float | np.number):
        return str(value).replace(".", decimal)
    return escaped(str(value), separator)
