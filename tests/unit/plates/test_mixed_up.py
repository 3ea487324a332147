"""Plates that were turned or taken for another: what should read alike says so."""

import numpy as np
import pytest

from covey import Control, Layout, Real, Space, Study
from covey.errors import HistoryError

SPACE = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
LAYOUT = Layout(plate=24, controls={"blank": 3, "high": 3})


def by_name(numbers):
    return {well: {"value": number} for well, number in numbers.items()}


def plates_of(seed, layout=LAYOUT, count=2, **options):
    study = Study(SPACE, seed=seed, strategy="random", **options)
    return study, study.ask_plates(count, layout)


def readings_of(plate, seed=0, noise=1.0):
    rng = np.random.default_rng([seed, int(plate.name[1:])])
    level = {"control:blank": 0.0, "control:high": 80.0}
    true = {w.name: level.get(w.role, 90.0 * w.point["x"] if w.point else 0.0) for w in plate.used}
    return {well: value + noise * rng.standard_normal() for well, value in true.items()}


def turned(plate, readings):
    grid = plate.grid
    return {grid.name(grid.turned(grid.index(well))): value for well, value in readings.items()}


def test_a_turned_plate_is_refused_and_turned_back():
    study, (plate, _) = plates_of(1)
    right = readings_of(plate)
    events = study.history.events
    blank = next(w.name for w in plate.used if w.role == "control:blank")
    with pytest.raises(HistoryError, match=rf"plate p1: .*turned.* in {blank}.*turned=True"):
        study.tell_plate(plate, turned(plate, right), part=True)
    assert study.history.events == events
    study.tell_plate(plate, turned(plate, right), turned=True)
    assert dict(study.history.plates.records["p1"].readings) == by_name(right)


def test_a_plate_taken_for_another_is_refused_by_name():
    study, (first, second) = plates_of(2)
    events = study.history.events
    with pytest.raises(HistoryError, match=r"they are of plate p2.*blank reads.*turned=False"):
        study.tell_plate(first, readings_of(second), part=True)
    assert study.history.events == events
    study.tell_plate(second, readings_of(second))
    study.tell_plate(first, readings_of(first))


def test_who_knows_better_is_believed():
    study, (plate, _) = plates_of(1)
    wrong = turned(plate, readings_of(plate))
    study.tell_plate(plate, wrong, part=True, turned=False)
    known = {well: value for well, value in wrong.items() if plate.well(well).order}
    assert dict(study.history.plates.records["p1"].readings) == by_name(known)


def test_copies_of_points_tell_where_there_are_no_controls():
    study, (plate,) = plates_of(3, Layout(plate=24, replicates=2, reserved=["A1", "A2"]), 1)
    right = readings_of(plate)
    with pytest.raises(HistoryError, match=r"copies of .* disagree as told"):
        study.tell_plate(plate, turned(plate, right), part=True)
    study.tell_plate(plate, right)


def test_the_scatter_of_plates_before_says_how_alike_wells_are():
    """Two wells alone say little; beside a plate that was read before they say enough."""
    layout = Layout(plate=24, controls={"blank": 2, "high": 2})
    study, (first, second) = plates_of(4, layout)
    study.tell_plate(first, readings_of(first))
    with pytest.raises(HistoryError, match="turned"):
        study.tell_plate(second, turned(second, readings_of(second)), part=True)
    study.tell_plate(second, readings_of(second))


def test_plates_as_laid_out_are_asked_about_hardly_ever():
    """On 60 plates, noise alone among them, at most one; the test above is what turning does."""
    asked = 0
    for seed in range(15):
        for noise in (1.0, 1000.0):
            study, plates = plates_of(seed, Layout(plate=24, controls={"blank": 3}), 2)
            for plate in plates:
                try:
                    study.tell_plate(plate, readings_of(plate, seed, noise))
                except HistoryError:
                    asked += 1
                    study.tell_plate(plate, readings_of(plate, seed, noise), turned=False)
    assert asked <= 1


@pytest.mark.parametrize("told_turned", [False, True])
def test_shifts_of_plates_turn_none_and_hide_none(told_turned):
    """Plates with shifts as large as f are never asked about, and each that was turned is."""
    asked = 0
    for seed in range(5):
        layout = Layout(plate=96, controls={"blank": 4})
        study, plates = plates_of(seed, layout, 4)
        for plate in plates:
            shift = 90.0 * np.random.default_rng([seed, int(plate.name[1:])]).normal()
            right = {well: value + shift for well, value in readings_of(plate, seed).items()}
            try:
                study.tell_plate(plate, turned(plate, right) if told_turned else right, part=True)
            except HistoryError:
                asked += 1
                study.tell_plate(plate, right, turned=False)
    assert asked == (20 if told_turned else 0)


def test_a_reference_that_has_the_value_of_its_plate_is_compared_within_it():
    at = {"y": 0.5}
    layout = Layout(plate=24, shared={"x": "plate"}, controls={"reference": Control(4, at=at)})
    study, (first, second) = plates_of(5, layout)
    for plate, level in ((first, 10.0), (second, 90.0)):
        rng = np.random.default_rng(0)
        value = {w.name: level if w.trial is None else level * w.point["y"] for w in plate.used}
        study.tell_plate(plate, {w: v + 0.1 * rng.standard_normal() for w, v in value.items()})
    assert not study.history.pending
