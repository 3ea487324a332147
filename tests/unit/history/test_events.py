from __future__ import annotations

import os
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from covey.errors import HistoryError
from covey.history import (
    Added,
    Amended,
    Asked,
    Began,
    Cancelled,
    Ended,
    Enqueued,
    Excluded,
    Extended,
    Failed,
    Included,
    Lost,
    Measured,
    Moved,
    Noted,
    Point,
    Reported,
    Retried,
    Revised,
    Told,
)
from covey.history.checks import (
    finite_value,
    points_of,
    sized,
    standard_error,
    text,
    trial_ids,
    whole,
)

X = Point(x=1.0)


def refuses(message: str):
    return pytest.raises(HistoryError, match=re.escape(message))


@pytest.mark.parametrize(
    "number",
    [
        2,
        2.0,
        np.float64(2),
        np.float32(2),
        np.int8(2),
        np.array(2.0),
        np.array(2),
        Fraction(4, 2),
        Decimal(2),
    ],
)
def test_any_real_number_becomes_a_plain_float(number):
    for value in (
        Told((0,), (number,)).values[0]["value"],
        Told((0,), ({"yield": number},)).values[0]["yield"],
        Told((0,), (1.0,), (number,)).sems[0],
        Added((X,), (number,)).values[0]["value"],
        Amended(0, number, "typo").value["value"],
        Amended(0, 1.0, "typo", number).sem,
    ):
        assert type(value) is float
        assert value == 2.0


class Odd:
    def __float__(self) -> float:
        raise TypeError("no")

    def __index__(self) -> int:
        raise TypeError("no")


@pytest.mark.parametrize(
    "odd",
    [
        True,
        np.True_,
        np.array(True),
        "1.5",
        np.str_("1.5"),
        np.array("1.5"),
        None,
        1j,
        np.complex128(1),
        [1.0],
        np.array([1.0]),
        np.ma.masked,
        np.datetime64("2020-01-01"),
        {},
        Odd(),
    ],
)
def test_what_is_not_a_real_number_is_refused(odd):
    with refuses("trial 3: value must be a real number, got"):
        Told((3,), (odd,))
    with refuses("trial 3: value must be a real number, got"):
        Amended(3, odd, "typo")
    with refuses("point 2 of 2: value must be a real number, got"):
        Added((X, X), (1.0, odd))
    if odd is not None:
        with refuses("trial 3: sem must be a real number, got"):
            Told((3,), (1.0,), (odd,))


@pytest.mark.parametrize(
    ("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (10**400, "inf")]
)
def test_values_are_finite(value, shown):
    with refuses(
        f"trial 3: value must be finite, got {shown}. Use study.fail(3) if the run crashed."
    ):
        Told((1, 3), (0.0, value))
    with refuses(f"trial 3: value must be finite, got {shown}."):
        Amended(3, value, "typo")
    with refuses(
        f"point 1 of 1: value must be finite, got {shown}. Leave out points without a result."
    ):
        Added((X,), (value,))


@pytest.mark.parametrize("sem", [-1e-9, np.nan, np.inf])
def test_standard_errors_are_none_or_finite_and_not_negative(sem):
    assert Told((0, 1), (1.0, 2.0), (None, 0.0)).sems == (None, 0.0)
    for build in (
        lambda: Told((0, 1), (1.0, 2.0), (0.5, sem)),
        lambda: Added((X, X), (1.0, 2.0), (None, sem)),
        lambda: Amended(1, 1.0, "typo", sem),
    ):
        with refuses(f"sem must be from 0 to 1e+100, got {float(sem)}. Use None"):
            build()


def test_no_standard_errors_means_none_known_of_each():
    assert Told((0, 1), (1.0, 2.0)).sems == (None, None)
    assert Told((0, 1), np.array([1.0, 2.0]), np.array([0.5, 0.25])).sems == (0.5, 0.25)
    assert Added((X, X), (1.0, 2.0)).sems == (None, None)


def test_lengths_agree():
    with refuses("8 trials but 7 values; give one for each."):
        Told(range(8), range(7))
    with refuses("2 trials but 1 sem"):
        Told((0, 1), (1.0, 2.0), (0.1,))
    with refuses("2 trials but 1 metric"):
        Told((0, 1), (1.0, 2.0), metrics=({"latency": 3},))
    with refuses("1 point but 2 values"):
        Added((X,), (1.0, 2.0))
    with refuses("1 point but 2 sems"):
        Added((X,), (1.0,), (0.1, 0.1))


def test_an_event_is_about_something():
    for build in (lambda: Told((), ()), lambda: Failed(()), lambda: Cancelled(())):
        with refuses("no trial was given"):
            build()
    for build in (lambda: Asked((), "x"), lambda: Enqueued(()), lambda: Added((), ())):
        with refuses("no point was given"):
            build()


def test_no_trial_twice_in_one_event():
    for build in (lambda: Told((1, 2, 1), (0, 0, 0)), lambda: Failed((1, 1))):
        with refuses("trial 1 was given twice"):
            build()


@pytest.mark.parametrize("odd", [True, "0", 0.0, None, Odd()])
def test_ids_are_integers(odd):
    for build in (lambda: Told((odd,), (1.0,)), lambda: Amended(odd, 1.0, "typo")):
        with refuses("a trial id is an integer, got"):
            build()
    assert type(Told((np.int64(3),), (1.0,)).ids[0]) is int


def test_points_become_read_only():
    plain = {"x": 1.0}
    event = Enqueued([plain, X])
    plain["x"] = 2.0
    assert event.points == ({"x": 1.0}, X)
    assert all(type(point) is Point for point in event.points)
    with refuses("a point is a dict of names and values, got 'x'"):
        Enqueued(X)


def test_texts_are_strings_and_an_amendment_needs_a_reason():
    with refuses("strategy must be a string, got 3 (int)"):
        Asked((X,), 3)
    with refuses("reason must be a string, got None"):
        Failed((0,), None)
    for reason in ("", "  "):
        with refuses("trial 0: say why the value changes"):
            Amended(0, 1.0, reason)


def test_models_are_a_private_copy_in_plain_json():
    model = {"lengths": (0.5, np.float64(0.25)), "noise": 0.1}
    event = Asked((X,), "auto", [model])
    model["noise"] = 9.0
    assert event.models == ({"lengths": [0.5, 0.25], "noise": 0.1},)
    assert Asked((X,), "auto").models is Asked((X,), "auto", ()).models is None
    for odd in (float("nan"), np.array([1.0]), object()):
        with refuses("models must be plain JSON"):
            Asked((X,), "auto", [{"noise": odd}])
    for odd in (1, {"noise": 0.1}, [[0.1]]):
        with refuses("models must be plain JSON"):
            Asked((X,), "auto", odd)


def test_values_by_name_are_checked_one_by_one():
    told = Told((0,), ({"yield": np.float32(2), "cost": 3},))
    assert told.values == ({"yield": 2.0, "cost": 3.0},)
    assert type(told.values[0]["yield"]) is float
    with refuses("trial 0, 'cost': value must be finite, got nan."):
        Told((0,), ({"yield": 1.0, "cost": float("nan")},))
    with refuses("point 1 of 1, 'yield': value must be a real number, got 'high' (str)."):
        Added((X,), ({"yield": "high"},))
    with refuses("trial 0: values by name are {name: number, ...}, got {1: 2.0}."):
        Told((0,), ({1: 2.0},))
    with pytest.raises(TypeError, match="read-only"):
        told.values[0]["yield"] = 9.0


def test_a_plain_number_is_the_outcome_named_value():
    assert Told((0, 1), (1.0, {"yield": 1.0})).values == ({"value": 1.0}, {"yield": 1.0})
    assert Told((0,), (1.0,)) == Told((0,), ({"value": 1.0},))


def test_the_goal_is_among_the_values():
    assert Told((0,), ({"yield": 1.0, "cost": 2.0},), goal="yield").goal == "yield"
    with refuses("the goal 'gain' has no value in {'yield': 1.0}; name it there."):
        Told((0,), ({"yield": 1.0},), goal="gain")
    with refuses("the goal 'yield' has no value in {'value': 1.0}; name it there."):
        Added((X,), (1.0,), goal="yield")


def test_a_standard_error_belongs_to_one_value():
    several = {"yield": 1.0, "cost": 2.0}
    assert Told((0,), (several,), (0.1,), goal="cost").sems == (0.1,)
    assert Told((0,), ({"yield": 1.0},), (0.1,)).sems == (0.1,)
    with refuses("a standard error belongs to one value, and {'yield': 1.0, 'cost': 2.0} are"):
        Told((0,), (several,), (0.1,))


@pytest.mark.parametrize("blank", ["", "  "])
def test_what_is_excluded_or_noted_is_said_why(blank):
    for make in (
        lambda: Excluded((0,), blank),
        lambda: Included((0,), blank),
        lambda: Noted((0,), blank),
        lambda: Extended({}, "abc", blank),
        lambda: Extended({}, blank, "wider"),
    ):
        with refuses("must not be empty"):
            make()
    for make in (lambda: Excluded((0,), None), lambda: Noted((0,), 3)):
        with refuses("must be a string, got"):
            make()


def test_the_events_about_trials_name_each_once():
    kinds = (Retried, lambda ids: Excluded(ids, "x"), lambda ids: Noted(ids, "x"))
    for make in (*kinds, lambda ids: Included(ids, "x")):
        with refuses("trial 1 was given twice"):
            make((1, 1))
        with refuses("no trial was given"):
            make(())


def test_a_report_is_of_a_step_and_a_finite_value():
    assert Reported(0, 1, 0, 2).value == 2.0
    with refuses("step must be a whole number >= 0, got -1."):
        Reported(0, 1, -1, 2.0)
    with refuses("trial 0: value must be finite, got inf."):
        Reported(0, 1, 1, float("inf"))
    with refuses("trial 0: value must be a real number, got {'a': 1.0} (dict)."):
        Reported(0, 1, 1, {"a": 1.0})


def test_a_run_has_a_name_and_a_plan_of_plain_json():
    with refuses("run must not be empty"):
        Began(" ", 7, "tern", {})
    with refuses("pid must be a whole number >= 0, got -1."):
        Began("0a1b2c3d", -1, "tern", {})
    with refuses("plan must be plain JSON with finite numbers"):
        Began("0a1b2c3d", 7, "tern", {"purse": float("inf")})
    with refuses("run must not be empty"):
        Ended("", "Ctrl-C")
    assert Ended("0a1b2c3d", "caf\udce9").reason == "caf\N{REPLACEMENT CHARACTER}"


def test_an_extended_space_is_plain_json():
    with refuses("space must be plain JSON with finite numbers"):
        Extended({"upper": float("nan")}, "abc", "wider")


# The fields of an event, checked


def test_numbers_of_any_kind_become_floats():
    for value in (3, np.float32(3), np.array(3.0)):
        assert finite_value(value, "it", "hint") == 3.0


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "finite"), (1e300, "Rescale"), ("3", "real number"), (True, "real number")],
)
def test_what_is_no_value_is_named(value, words):
    with pytest.raises(HistoryError, match=f"it.*{words}"):
        finite_value(value, "it", "hint")


def test_the_rest_of_an_event_is_checked_too():
    assert standard_error(None, "it") is None
    with pytest.raises(HistoryError, match=r"got -1\.0"):
        standard_error(-1.0, "it")
    with pytest.raises(HistoryError, match="trial 1"):
        trial_ids([1, 1])
    with pytest.raises(HistoryError, match="no point"):
        points_of([])
    with pytest.raises(HistoryError, match="2 trials but 1 value"):
        sized([1.0], 2, "trial", "value")
    with pytest.raises(HistoryError, match="must be a string"):
        text(3, "reason")
    assert whole(0, "attempt") == 0
    for wrong in (-1, True, 1.0):
        with pytest.raises(HistoryError, match="attempt must be a whole number"):
            whole(wrong, "attempt")


def test_reasons_are_one_for_each_point_or_none():
    said = Asked((X, X), "auto", reasons=["first", "drawn"], nats=[np.float64(0.12345), 2])
    assert said.reasons == ("first", "drawn")
    assert said.nats == (0.123, 2.0)  # as a log holds them
    with refuses("2 points but 1 reason"):
        Asked((X, X), "auto", reasons=("first",))
    with refuses("2 points but 1 gain in nats"):
        Asked((X, X), "auto", nats=(1.0,))
    with refuses("a reason must be a string"):
        Asked((X,), "auto", reasons=(3,))
    with refuses("nats: value must be finite"):
        Asked((X,), "auto", nats=(float("nan"),))


NAME = os.fsdecode(b"data-\xff.csv")  # of a file, and not UTF-8


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Failed((0,), NAME), "reason"),
        (Failed((0,), NAME, told=True), "reason"),
        (Cancelled((0,), NAME), "reason"),
        (Lost((0,), NAME), "reason"),
        (Amended(0, 1.0, NAME), "reason"),
        (Excluded((0,), NAME), "reason"),
        (Included((0,), NAME), "reason"),
        (Moved((0,), (Point(x=0.5),), NAME), "reason"),
        (Revised("p1", NAME, marked=("A1",)), "reason"),
        (Extended({}, "f", NAME), "reason"),
        (Noted((0,), NAME), "text"),
        (Measured("p1", ("A1",), (1.0,), day=NAME), "day"),
    ],
)
def test_what_no_file_can_hold_is_replaced_in_words_on_the_way_in(event, words):
    assert getattr(event, words) == "data-\N{REPLACEMENT CHARACTER}.csv"


def test_what_no_file_can_hold_is_replaced_in_marks_and_in_what_is_recorded():
    legible = "data-\N{REPLACEMENT CHARACTER}.csv"
    assert Measured("p1", ("A1",), marks={"A1": NAME}).marks == {"A1": legible}
    told = Told((0,), (1.0,), metrics=({NAME: [NAME, {"n": 1}], "μ": "naïve"},))
    assert told.metrics == ({legible: [legible, {"n": 1}], "μ": "naïve"},)
