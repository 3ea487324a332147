"""Deliberate defects of plates, each of which a named test must notice.

Which test kills which is in `DEFECTS`; docs/plates.md has the same as a table. Numbers such as
#2905 are issues of sequencescape and skpr, where these mistakes were made.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.unit.gp import test_shifts as shifts
from tests.unit.plates import test_choosing as choosing
from tests.unit.plates import test_correcting as correcting
from tests.unit.plates import test_layout as layouts
from tests.unit.plates import test_placement as placing
from tests.unit.plates import test_tables_and_maps as tables

from covey.gp import Posterior
from covey.gp.shifts import Shifts
from covey.history import wells
from covey.plates import asking, placement
from covey.plates.layout import Grid, _place

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Defect:
    """A mistake that somebody could make in good faith, and the tests that notice it."""

    plant: Callable[[Patch], None]
    killers: tuple[Callable[..., Any], ...]


def _wrap(patch: Patch) -> None:  # sequencescape #2905
    def index(self: Grid, well: object) -> int:
        row, column = _place(well)
        return (row * self.columns + column) % len(self)

    patch.setattr(Grid, "index", index)


def _blocks_by_order(patch: Patch) -> None:  # skpr #62
    real = placement._blocks

    def blocks(layout: Any, taken: Any) -> tuple[tuple[int, ...], ...]:
        found = real(layout, taken)
        every, first, made = sorted(w for block in found for w in block), 0, []
        for block in found:  # as many wells as the block has, in the order of the table
            made.append(tuple(every[first : first + len(block)]))
            first += len(block)
        # Of rows the order of the table is that of the wells, and so it is turned.
        return tuple(made) if layout.blocks_by != "row" else _interleaved(found)

    patch.setattr(placement, "_blocks", blocks)


def _interleaved(found: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    every = sorted((w for block in found for w in block), key=lambda w: (w % 5, w))
    ends = np.cumsum([len(block) for block in found])
    return tuple(tuple(part) for part in np.split(np.array(every), ends[:-1]))


def _readings_by_order(patch: Patch) -> None:  # skpr #62, on the way back
    real = asking.read_readings

    def read(readings: Any, grid: Grid, *rest: Any) -> Any:
        found = real(readings, grid, *rest)
        in_order = sorted(found.values, key=grid.index)
        return replace(found, values=dict(zip(in_order, found.values.values(), strict=True)))

    patch.setattr(asking, "read_readings", read)


def _left_side(patch: Patch) -> None:  # sequencescape #2955
    real = placement._spread_wells

    def spread(grid: Grid, free: Any, count: int, rng: Any) -> list[int]:
        left = grid.column(np.arange(len(grid))) < grid.columns // 2
        return real(grid, free & left, count, rng)

    patch.setattr(placement, "_spread_wells", spread)


def _ignored(patch: Patch) -> None:
    def after(self: Shifts, model: Any) -> tuple[Any, Any]:
        groups = len(self.of)
        return np.zeros(groups), np.zeros((groups, groups))

    patch.setattr(Shifts, "after_controls", after)


def _of_the_last(patch: Patch) -> None:
    real = Posterior.predict

    def predict(self: Posterior, at: Any) -> tuple[Any, Any]:
        mean, std = real(self, at)
        if self.data.shifts is not None:
            b, _ = self.data.shifts.after_controls(self.models[0])
            mean = mean + self.data.scale * b[-1]
        return mean, std

    patch.setattr(Posterior, "predict", predict)


def _mark_stays(patch: Patch) -> None:
    real = wells._revised

    def revised(record: Any, event: Any) -> Any:
        made = real(record, event)
        dropped = {w: v for w, v in made.readings.items() if w not in event.marked}
        return replace(made, readings=dropped)  # a marked reading is thrown away

    patch.setattr(wells, "_revised", revised)


def _error_stays(patch: Patch) -> None:
    real = wells._error

    def error(values: Any) -> float:
        return real(values) or 0.0

    patch.setattr(wells, "_error", error)


DEFECTS = {
    "wells wrap around": Defect(
        _wrap, (layouts.test_wells_do_not_wrap_around_at_the_end_of_a_row,)
    ),
    "blocks follow the order of rows": Defect(
        _blocks_by_order,
        (
            choosing.test_points_stand_where_their_row_or_column_has_the_value_that_they_share,
            partial(placing.test_ten_thousand_random_layouts_keep_every_rule, 0),
            partial(choosing.test_plates_keep_their_layout_with_and_without_a_model, "column"),
        ),
    ),
    "readings follow the order of rows": Defect(
        _readings_by_order,
        (tables.test_readings_go_by_the_names_of_wells_and_not_by_the_order_of_rows,),
    ),
    "controls on one side": Defect(
        _left_side,
        (
            placing.test_controls_stand_in_every_well_equally_often,
            placing.test_no_quadrant_and_no_third_of_a_plate_is_without_controls,
        ),
    ),
    "shifts are ignored": Defect(
        _ignored,
        (
            shifts.test_the_shift_of_a_plate_does_not_leak_into_predictions,
            partial(shifts.test_the_posterior_is_that_of_the_joint_gaussian, 2),
        ),
    ),
    "the last plate leaks into predictions": Defect(
        _of_the_last, (shifts.test_predictions_are_of_f_and_not_of_the_last_plate,)
    ),
    "a mark throws the reading away": Defect(
        _mark_stays, (partial(correcting.test_marking_and_unmarking_is_the_identity, "one"),)
    ),
    "a standard error outlives its wells": Defect(
        _error_stays, (correcting.test_value_and_standard_error_follow_a_corrected_well,)
    ),
}
PAIRS = [(name, killer) for name, defect in DEFECTS.items() for killer in defect.killers]


def called(killer: Any) -> str:
    """The name of a test."""
    return str(getattr(killer, "func", killer).__name__)


@pytest.mark.parametrize(
    ("name", "killer"), PAIRS, ids=[f"{name}: {called(killer)}" for name, killer in PAIRS]
)
def test_a_planted_defect_is_noticed(name, killer, monkeypatch, tmp_path):
    given = {"tmp_path": tmp_path} if "tables" in killer_module(killer) else {}
    DEFECTS[name].plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        killer(**given)


def killer_module(killer: Any) -> str:
    """Where a test stands; those of tables want a folder."""
    return str(getattr(killer, "func", killer).__module__)
