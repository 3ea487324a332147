"""Plates in a report: facts, shifts with their doubt, and what was corrected by hand."""

import json

import numpy as np
import pytest

import covey
from covey.report import card, page
from covey.report.plates import plates_of

SPACE = covey.Space({"temperature": covey.Integer(20, 70, step=10), "x": covey.Real(0.0, 1.0)})
SHIFTS = (0.0, 6.0, -6.0)


def measured(goal="max", effects=("plate",), plates=3, shared=True):
    """Three plates that read 0, 6 more and 6 less, with blanks; and corrections of each kind."""
    layout = covey.Layout(
        plate=24,
        shared={"temperature": "plate"} if shared else {},
        controls={"blank": 4},
        replicates=2,
        effects=effects,
    )
    study, rng = covey.Study(SPACE, goal, seed=0), np.random.default_rng(0)
    sign = 1.0 if goal == "max" else -1.0
    for shift in SHIFTS[:plates]:
        (plate,) = study.ask_plates(1, layout, strategy="random")
        readings = {}
        for well in plate.used:
            true = 2.0 if well.point is None else sign * 30.0 * (1 - (well.point["x"] - 0.4) ** 2)
            readings[well.name] = true + shift + 0.3 * rng.standard_normal()
        study.tell_plate(plate, readings)
    return study


@pytest.mark.parametrize("goal", ["max", "min"])
def test_shifts_are_those_of_the_plates_in_the_users_sign(goal):
    found = card(measured(goal)).plates
    assert [one.name for one in found.each] == ["p1", "p2", "p3"]
    for one, shift in zip(found.each, SHIFTS, strict=True):
        assert abs(one.shift.mean - shift) < 3.0 * one.shift.std < 20.0
        assert (one.trials, one.wells, one.measured, one.marked) == (10, 24, 24, 0)
        assert one.shared.startswith("temperature ")
    gaps = [one.shift.mean for one in found.each]
    assert gaps[1] - gaps[0] == pytest.approx(6.0, abs=0.5)
    assert gaps[2] - gaps[0] == pytest.approx(-6.0, abs=0.5)
    assert found.each[1].controls[0].startswith("blank 8.")
    # The level is unknown by the size of a shift over the root of three.
    assert 1.0 < found.level < 8.0
    assert f"about {found.level:.2g}" in found.note
    assert "the root of the number of plates" in found.note


def test_one_plate_and_no_effects_are_said():
    assert "by a second plate" in card(measured(plates=1)).plates.note
    assert "model no shifts" in card(measured(effects=())).plates.note
    rows = card(measured(effects=("row", "column"), shared=False)).plates
    assert rows.level is None
    assert "without shifts of" in rows.note
    names = [one.name for one in rows.others]
    assert names[:2] == ["column 1", "column 2"]
    assert names[-1] == "row D"
    fresh = covey.Study(SPACE, seed=0)
    fresh.ask_plates(1, covey.Layout(plate=6))
    assert "once there are results" in card(fresh).plates.note
    plain = covey.Study(SPACE, seed=0)
    assert plates_of(plain.history, plain.recipe, None) is None
    assert card(plain).plates is None


def test_the_page_says_what_was_corrected_marked_and_excluded_and_why():
    study = measured()
    plate = study.plate("p1")
    first, second = [w.name for w in plate.used if w.trial == 0]
    study.mark_wells("p1", [first], "a <b>bubble</b>")
    study.amend_wells("p1", {second: 31.0}, "a typing error")
    study.exclude(3, "the wrong vial")
    study.amend(4, 12.0, "read off the screen")
    made = card(study)
    assert [one.what for one in made.corrections] == [
        "amended to 12",
        f"p1 {second} amended to 31",
        f"p1 {first} marked",
    ]
    assert made.plates.each[0].marked == 1
    text = page(made)
    assert "What was corrected or left out, and why" in text
    for said in (
        "a &lt;b&gt;bubble&lt;/b&gt;",
        "a typing error",
        "the wrong vial",
        "off the screen",
    ):
        assert said in text
    assert made.plates.note in text
    plain = json.loads(json.dumps(made.to_json()))
    assert plain["corrections"][0] == {
        "ids": [4],
        "what": "amended to 12",
        "reason": "read off the screen",
    }
    assert plain["plates"]["each"][0]["shift"]["effect"] == "plate"
    without = covey.Study(SPACE, seed=0)
    assert "Plates</h2>" not in page(card(without))


def test_a_plate_of_several_outcomes_is_reported():
    goals = {"yield": "max", "cost": "min"}
    study = covey.Study(SPACE, goals, seed=0)
    for _ in range(2):
        layout = covey.Layout(plate=6, controls={"blank": 2})
        (plate,) = study.ask_plates(1, layout, strategy="random")
        study.tell_plate(
            plate,
            {w.name: {"yield": 2.0 * w.column, "cost": 1.0 + 0.1 * w.order} for w in plate.used},
        )
    study.mark_wells("p2", plate.used[0].name, "dust")
    made = card(study)
    assert [one.reason for one in made.corrections] == ["dust"]
    assert len(made.plates.each) == 2
    assert "dust" in page(made)
