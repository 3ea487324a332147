"""Reals in steps, numbers as options that are ordered, and logs of before."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey import Choice, Integer, Linear, Real, Space, Study
from covey.errors import JournalMismatch, SpaceError
from covey.report.slices import axes_of
from covey.space import space_from_description
from covey.space.description import as_described
from covey.testing import ParameterContract


class TestFewSteps(ParameterContract):
    def parameter(self):
        return Real(0.1, 0.4, step=0.05)

    def values(self):
        return [0.1, 0.15, 0.3, 0.4]

    def strangers(self):
        return [0.12, 0.05, 0.41, "0.1", True, None, math.nan]


class TestManySteps(TestFewSteps):
    def parameter(self):
        return Real(-3.0, 1.0, step=1e-3)

    def values(self):
        return [-3.0, -0.001, 0.0, 0.007, 1.0]

    def strangers(self):
        return [0.0005, 1.001, "0"]


class TestStepsThatMissTheEnd(TestFewSteps):
    def parameter(self):
        return Real(0.1, 1.0, step=0.4)

    def values(self):
        return [0.1, 0.5, 0.9]

    def strangers(self):
        return [1.0, 0.95, 1.3]


class TestStepsInLogs(TestFewSteps):
    def parameter(self):
        return Real(0.5, 64.0, log=True, step=0.5)

    def values(self):
        return [0.5, 1.0, 63.5, 64.0]

    def strangers(self):
        return [0.0, 0.7, 64.5]


# The values are decimals, as people write them.


@given(st.integers(-300, 300), st.integers(1, 400), st.integers(0, 6), st.integers(1, 150))
def test_the_values_are_the_nearest_floats_to_the_decimals(low, step, digits, count):
    unit = 10**digits
    real = Real(low / unit, (low + step * count) / unit, step=step / unit)
    expected = [float(Fraction(low + step * i, unit)) for i in range(count + 1)]
    assert real.decode(real.levels()) == expected
    assert real.numbers(real.levels()).tolist() == expected
    assert real.span == (expected[0], expected[-1])


def test_values_beyond_exact_integers_are_right_too():
    real = Real(1e-30, 3e-30, step=1e-31)
    assert real.decode(real.levels())[:3] == [1e-30, 1.1e-30, 1.2e-30]
    large = Real(1e15, 1e15 + 64, step=8)
    assert large.decode(large.levels())[1] == 1e15 + 8


def test_a_computed_step_reaches_the_end():
    assert Real(0, 1, step=1 / 3).examples(9) == [0.0, 1 / 3, 2 / 3, 1.0]
    assert Real(0.1, 0.7, step=(0.7 - 0.1) / 3).size == 4


def test_rounding_is_forgiven_and_no_more():
    real = Real(0, 1, step=0.1)
    assert real.check(0.1 + 0.2) == 0.3
    assert real.check(1.0000000000000002) == 1.0
    assert real.check(np.float64(0.7)) == 0.7
    with pytest.raises(SpaceError, match=r"0.31 is not on the grid.*neighbours are 0.3 and 0.4"):
        real.check(0.31)
    with pytest.raises(SpaceError, match=r"0\.95.*step 0\.4.*0\.0.*0\.8"):
        Real(0, 1, step=0.4).check(0.95)
    with pytest.raises(SpaceError, match=r"1\.1.*\[0\.0, 1\.0\]"):
        real.check(1.1)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"step": 0}, r"got 0\.0"),
        ({"step": -0.1}, r"got -0\.1"),
        ({"step": 1.5}, r"low = 1\.0, got 1\.5"),
        ({"step": math.nan}, "the step of a Real must be a finite number"),
        ({"step": "5"}, "the step of a Real must be a finite number"),
        ({"step": True}, "the step of a Real must be a finite number"),
        ({"step": 1e-16}, "more values than float64 can tell apart"),
        ({"low": 0.1, "log": True, "step": 0.3}, "low > step"),
    ],
)
def test_a_wrong_step_is_refused(arguments, reason):
    with pytest.raises(SpaceError, match=reason):
        Real(**{"low": 0, "high": 1, **arguments})


def test_a_plain_real_is_described_and_shown_as_before():
    assert Real(0, 1).describe() == {"kind": "real", "low": 0.0, "high": 1.0, "log": False}
    assert repr(Real(0, 1)) == "Real(low=0.0, high=1.0, log=False)"
    assert Real(0, 1) != Real(0, 1, step=0.5)
    assert Real(20, 80, step=5).words() == "real, 20.0 to 80.0 in steps of 5.0"


# In a space: a grid, candidates on it, and a resolution.


def test_a_stepped_real_is_the_grid():
    """The coordinates, hence the batches, are those of the integers and of the ordered options."""
    batches = []
    for parameter in (Real(0, 12, step=1), Integer(0, 12), Choice([float(i) for i in range(13)])):
        study = Study(Space({"x": parameter, "y": Real(0, 1)}), seed=3)
        first = study.ask(4)
        study.tell(first, [-((t.point["x"] - 5) ** 2) - t.point["y"] for t in first])
        batches.append([dict(t.point) for t in (*first, *study.ask(4))])
    assert batches[0] == batches[1] == batches[2]


@given(st.integers(1, 50), st.integers(1, 9), st.integers(1, 300), st.booleans())
def test_an_integer_is_a_real_in_steps_with_whole_values(low, step, count, log):
    low, high = low + step, low + step * (count + 1)
    real, whole = Real(low, high, log=log, step=step), Integer(low, high, log=log, step=step)
    assert (whole.size, whole.span, whole.scale) == (real.size, real.span, real.scale)
    np.testing.assert_array_equal(whole.levels(), real.levels())
    anywhere = np.linspace(-0.1, 1.1, 77)[:, None]
    assert whole.decode(anywhere) == real.decode(anywhere)
    assert {type(x) for x in whole.decode(anywhere)} == {int}
    np.testing.assert_array_equal(whole.snap(anywhere), real.snap(anywhere))
    between = np.linspace(low - 1, high + 1, 99)
    np.testing.assert_array_equal(whole.nearest(between), real.nearest(between))


def test_uniform_coordinates_give_each_value_its_fair_share():
    real = Real(0.2, 0.9, step=0.1)
    drawn = real.decode((np.arange(8000)[:, None] + 0.5) / 8000)
    assert [drawn.count(x) for x in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)] == [1000] * 8


@pytest.mark.parametrize("step", [0.25, 0.002])
def test_batches_lie_on_the_grid_and_differ(step):
    space = Space({"x": Real(-1, 1, step=step), "y": Real(1, 2)})
    study = Study(space, goal="min", seed=0)
    for _ in range(3):
        batch = study.ask(6)
        study.tell(batch, [(t.point["x"] - 0.1) ** 2 + t.point["y"] for t in batch])
    for trial in study.history.trials:
        assert trial.point["x"] == float(Fraction(str(step)) * round(trial.point["x"] / step))
    assert study.history.to_frame()["x"].tolist() == [t.point["x"] for t in study.history.trials]


def test_the_resolution_is_the_step():
    few, many = Real(0, 1, step=0.25), Real(0, 1, step=0.002)
    assert not few.continuous
    assert many.continuous
    space = Space({"few": few, "many": many, "any": Real(0, 1)})
    np.testing.assert_allclose(space.resolution(0.01), [0.01, 0.5 / 501, 0.01])
    np.testing.assert_allclose(space.resolution(0.2), [0.1, 0.5 / 501, 0.2])
    assert space.resolution(0.0).tolist() == [0.0, 0.0, 0.0]
    assert len(space.levels()) == 1
    assert Space({"x": few, "y": few}).size == 25
    assert len(Space({"x": few, "y": few}).grid(25)) == 25


def test_steps_under_a_linear_constraint():
    parts = {name: Real(0, 1, step=0.05) for name in "abc"}
    space = Space(parts, where=[Linear(dict.fromkeys("abc", 1.0), lower=0.99, upper=1.01)])
    for trial in Study(space, seed=0).ask(8):
        assert sum(trial.point.values()) == pytest.approx(1.0)


def test_a_chart_is_drawn_at_the_values():
    (axis,) = axes_of(Space({"x": Real(20, 80, step=5)}))
    assert axis.values == tuple(float(x) for x in range(20, 81, 5))
    assert axis.ends == (20.0, 80.0)


def test_a_journal_of_steps_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(Space({"x": Real(0, 1, step=0.1)}), seed=0, journal=path)
    study.tell(study.ask(2), [1.0, 2.0])
    again = Study.load(path)
    assert again.space == Space({"x": Real(0, 1, step=0.1)})
    assert len(again.history.trials) == 2
    with pytest.raises(JournalMismatch, match="another space"):
        Study(Space({"x": Real(0, 1, step=0.05)}), journal=path)


# Options that are numbers.


def test_numbers_are_ordered_by_size_unless_told_otherwise():
    assert Choice([1.0, 0.05, 0.1]) == Choice([0.05, 0.1, 1.0], ordered=True)
    assert not Choice([0.05, 0.1], ordered=False).ordered
    assert Choice([3, 1, 2], ordered=True).options == (3, 1, 2)
    for others in (["a", "b"], [1, "1"], [True, False], [1, 1.0], [1.0, math.inf], [None, 1]):
        assert not Choice(others).ordered
        assert Choice(others).options == tuple(others)


def test_a_log_that_says_no_order_has_none():
    entry = {"name": "c", "kind": "choice", "options": [3, 1, 2]}
    written = {"kind": "space", "parameters": [entry], "where": [], "opaque": False}
    assert space_from_description(written) == Space({"c": Choice([3, 1, 2], ordered=False)})


def test_a_journal_keeps_the_order_of_its_header(tmp_path):
    """The script of 0.1 had Choice([32, 16]), without order, and says the same today."""
    path = tmp_path / "run.jsonl"
    then = Space({"b": Choice([32, 16, 64], ordered=False), "x": Real(0, 1)})
    expected = [dict(t.point) for t in Study(then, seed=0, journal=path).ask(3)]
    today = Space({"b": Choice([32, 16, 64]), "x": Real(0, 1)})
    again = Study(today, journal=path)
    assert again.space == then
    assert [dict(t.point) for t in again.history.trials] == expected
    for other in (Choice([32, 16, 64], ordered=True), Choice([32, 16, 65])):
        with pytest.raises(JournalMismatch):
            Study(Space({"b": other, "x": Real(0, 1)}), journal=path)
    assert as_described(then, json.loads(json.dumps(then.describe()))) is then
    assert as_described(today, today.describe()) is today


def test_public_names_are_enough():
    assert covey.Real(20, 80, step=5).size == 13
