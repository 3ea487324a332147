"""A kind of parameter of one's own: one class, and everything takes it."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tests.angle import Angle

import covey
from covey.errors import SpaceError
from covey.report import card, write_page
from covey.report.slices import axes_of, edges
from covey.space import kinds, register, space_from_description
from covey.space.parameters import registered
from covey.testing import ParameterContract

pytestmark = pytest.mark.usefixtures("angle")


class TestAngle(ParameterContract):
    def parameter(self):
        return Angle()

    def values(self):
        return [0.0, 90.0, 359.5]

    def strangers(self):
        return ["north", None, float("nan")]


class TestReal(ParameterContract):
    def parameter(self):
        return covey.Real(-1.0, 3.0)

    def values(self):
        return [-1.0, 0.0, 0.1, 3.0]

    def strangers(self):
        return [3.1, "0", True, float("nan")]


class TestRealInLogs(TestReal):
    def parameter(self):
        return covey.Real(1e-5, 1.0, log=True)

    def values(self):
        return [1e-5, 0.02, 1.0]


class TestInteger(ParameterContract):
    def parameter(self):
        return covey.Integer(-4, 8, step=2)

    def values(self):
        return [-4, 0, 8]

    def strangers(self):
        return [1, 10, 0.5, "2", True]


class TestIntegerInLogs(TestInteger):
    def parameter(self):
        return covey.Integer(1, 1000, log=True)

    def values(self):
        return [1, 3, 1000]

    def strangers(self):
        return [0, 1.5, None]


class TestChoice(ParameterContract):
    def parameter(self):
        return covey.Choice(["adam", None, 1.5, True])

    def values(self):
        return ["adam", None, 1.5, True]

    def strangers(self):
        return ["sgd", 7]


class TestOrderedChoice(TestChoice):
    def parameter(self):
        return covey.Choice([1, 10, 100], ordered=True)

    def values(self):
        return [1, 10, 100]


class TestChoiceOfObjects(TestChoice):
    def parameter(self):
        return covey.Choice([(64, 32), frozenset({1}), "none"])

    def values(self):
        return [(64, 32), frozenset({1}), "none"]


@pytest.mark.parametrize(
    ("fault", "noticed_by"),
    [
        (
            {"check": lambda self, value: float(value)},
            "test_strangers_are_refused_by_an_error_of_ours",
        ),
        (
            {"decode": lambda self, u: (720.0 * u[:, 0]).tolist()},
            "test_every_row_decodes_to_a_value",
        ),
        ({"snap": lambda self, u: u}, "test_snap_is_encode_of_decode_and_idempotent"),
        (
            {"condensed": lambda self, u: np.argmax(u, axis=1)[:, None]},
            "test_condensed_coordinates_tell_the_same_values_apart",
        ),
        ({"examples": lambda self, most: [0.0] * most}, "test_examples_are_distinct_values"),
        ({"to_json": lambda self, value: value / 2}, "test_values_survive_json"),
        ({"describe": lambda self: {"kind": "compass"}}, "test_the_description_builds_it_again"),
        ({"parse": lambda self, text: 1.0}, "test_values_survive_a_sheet"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_the_contract_notices_a_fault(fault, noticed_by, monkeypatch):
    def look(**members):
        kind = type("Compass", (Angle,), members)
        monkeypatch.setitem(kinds._KINDS, "angle", kind)
        contract = type("Contract", (TestAngle,), {"parameter": lambda self: kind()})()
        getattr(contract, noticed_by)()

    look()
    with pytest.raises((AssertionError, SpaceError)):
        look(**fault)


def height(point):
    return float(np.cos(np.radians(point["turn"] - 350.0)) - (point["x"] - 0.3) ** 2)


def test_a_study_finds_the_best_angle_across_the_seam_and_its_journal_goes_on(tmp_path):
    space = covey.Space({"turn": Angle(), "x": covey.Real(0, 1)})
    study = covey.Study(space, seed=0, journal=tmp_path / "run.jsonl")
    for _ in range(4):
        batch = study.ask(6)
        study.tell(batch, [height(trial.point) for trial in batch])
    assert abs((study.best.point["turn"] - 350.0 + 180.0) % 360.0 - 180.0) < 15.0
    loaded = covey.Study.load(shutil.copy(tmp_path / "run.jsonl", tmp_path / "copy.jsonl"))
    assert loaded.space == space
    assert [t.point for t in loaded.history.trials] == [t.point for t in study.history.trials]
    assert [t.point for t in loaded.ask(3)] == [t.point for t in study.ask(3)]
    report = card(study)
    assert {one.name: one.numeric for one in report.slices} == {"turn": True, "x": True}
    page = write_page(report, tmp_path / "page.html")
    assert "turn" in page.read_text(encoding="utf-8")


def test_no_bound_is_reported_for_what_has_no_ends():
    space = covey.Space({"turn": Angle()})
    (axis,) = axes_of(space)
    assert (axis.numeric, axis.ends) == (True, None)
    assert edges(space, {"turn": 180.0}, [{"turn": 0.0}]) == ()


def test_nearly_the_same_angle_is_told_apart_and_the_same_one_is_not():
    space = covey.Space({"turn": Angle()})
    short = space.condensed(space.encode([{"turn": t} for t in (10.0, 30.0, 370.0)]))
    assert (short[0] == short[2]).all()
    assert (short[0] != short[1]).any()


def test_a_kind_that_nobody_registered_is_named():
    description = covey.Space({"turn": Angle()}).describe()
    description["parameters"][0]["kind"] = "quaternion"
    with pytest.raises(SpaceError, match="'quaternion'"):
        space_from_description(description)


def test_a_kind_keeps_its_name():
    with pytest.raises(SpaceError, match=r"'real'.*Mine"):
        register(type("Mine", (Angle,), {"kind": "real"}))
    assert registered("real") is covey.Real


def test_a_linear_constraint_does_not_weigh_an_angle():
    with pytest.raises(SpaceError, match=r"'turn'.*Real"):
        covey.Space({"turn": Angle()}, where=[covey.Linear({"turn": 1}, upper=1)])
