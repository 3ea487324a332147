from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import Choice, Integer, Real
from covey.space.space import checked_parameters

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": 1, "high": 1}, "low < high, got low=1.0, high=1.0"),
        ({"low": 2, "high": 1}, "low < high, got low=2.0, high=1.0"),
        ({"low": NAN, "high": 1}, "got nan"),
        ({"low": 0, "high": INF}, "got inf"),
        ({"low": "0", "high": 1}, r"Real.*'0'"),
        ({"low": False, "high": 1}, "got False"),
        ({"low": 0, "high": 1, "log": True}, r"log=True.*low > 0.*low=0\.0"),
        ({"low": -1, "high": 1, "log": True}, r"log=True.*low > 0.*low=-1\.0"),
        ({"low": -1.7e308, "high": 1.7e308}, r"float64.* -1\.7e\+308 to 1\.7e\+308"),
        (
            {"low": 1e9, "high": np.nextafter(1e9, 2e9), "log": True},
            r"1000000000\.0 to .*log",
        ),
    ],
)
def test_real_refuses(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Real(**arguments)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"1\.5.*\[0\.0, 1\.0\]"),
        (NAN, "got nan"),
        (True, "got True"),
        ("0.5", r"Real.*'0\.5'"),
        (None, "got None"),
    ],
)
def test_real_values_are_checked(value, message):
    with pytest.raises(SpaceError, match=message):
        Real(0, 1).check(value)


def test_real_accepts_numbers_of_any_make():
    real = Real(np.float32(0), np.int64(2))
    assert real == Real(0.0, 2.0)
    for value in (1, 1.0, np.float32(1), np.int64(1)):
        checked = real.check(value)
        assert type(checked) is float
        assert checked == 1.0


@pytest.mark.parametrize(
    "real", [Real(-0.3, 0.1), Real(1e-5, 1e-1, log=True), Real(3e-308, 1.7e308, log=True)]
)
def test_real_meets_its_ends_exactly(real):
    assert real.decode(np.array([[0.0], [1.0], [-3.0], [7.0]])) == [
        real.low,
        real.high,
        real.low,
        real.high,
    ]
    np.testing.assert_array_equal(real.encode([real.low, real.high]), [[0.0], [1.0]])


def test_real_is_scaled_in_logs():
    real = Real(1e-4, 1.0, log=True)
    np.testing.assert_allclose(real.encode([1e-4, 1e-2, 1.0])[:, 0], [0.0, 0.5, 1.0])
    np.testing.assert_allclose(real.decode(np.array([[0.25]])), [1e-3])


def test_real_snaps_onto_the_floats_there_are():
    """Between 1e16 and 1e16 + 4 there are three floats, so three coordinates."""
    real = Real(1e16, 1e16 + 4)
    assert set(real.snap(np.linspace(0, 1, 50)[:, None])[:, 0]) == {0.0, 0.5, 1.0}


def test_real_describes_itself():
    real = Real(0, 2)
    assert (real.width, real.size, real.numeric, real.span) == (1, None, True, (0.0, 2.0))
    assert real.describe() == {"kind": "real", "low": 0.0, "high": 2.0, "log": False}
    assert real.nearest(np.array([9.0])).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": 2, "high": 1}, "low <= high, got low=2, high=1"),
        ({"low": 0.5, "high": 1}, r"got 0\.5"),
        ({"low": 0, "high": True}, "got True"),
        ({"low": 0, "high": 10**400}, r"high of an Integer.*got 10000"),
        ({"low": 0, "high": 4, "step": 0}, "step >= 1, got 0"),
        ({"low": 1, "high": 10, "step": 4}, "high=10"),
        ({"low": 1, "high": 12, "step": 4}, r"high=12.*13"),
        ({"low": 0, "high": 9, "log": True}, r"log=True.*low > step.*low=0, step=1"),
        ({"low": 1, "high": 9, "step": 2, "log": True}, "low > step/2, got low=1, step=2"),
        ({"low": 0, "high": 2**51}, "more values than float64 can tell apart"),
        ({"low": 1, "high": 2**41, "log": True}, "more values than float64 can tell apart"),
    ],
)
def test_integer_refuses(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Integer(**arguments)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (11, r"11.*\[1, 10\]"),
        (5, r"^5 .* step 3 from 1; .* 4 and 7"),
        (4.5, r"got 4\.5"),
        (True, "got True"),
        (NAN, "got nan"),
        (INF, "got inf"),
        ("4", r"Integer.*'4'"),
    ],
)
def test_integer_values_are_checked(value, message):
    with pytest.raises(SpaceError, match=message):
        Integer(1, 10, step=3).check(value)


def test_integer_accepts_whole_numbers_of_any_make():
    integer = Integer(np.int64(1), 10)
    for value in (4, 4.0, np.int32(4), np.float64(4)):
        checked = integer.check(value)
        assert type(checked) is int
        assert checked == 4


@pytest.mark.parametrize(
    "integer",
    [
        Integer(3, 3),
        Integer(3, 3, log=True),
        Integer(-5, 7),
        Integer(1, 1000, log=True),
        Integer(5, 50, step=5, log=True),
        Integer(10**20, 10**20 + 6, step=2),
        Integer(2**40 - 9, 2**40, log=True),
    ],
)
def test_integer_comes_back_exactly(integer):
    values = list(range(integer.low, integer.high + 1, integer.step))
    assert len(values) == integer.size
    encoded = integer.encode(values)
    assert ((encoded > 0) & (encoded < 1)).all()
    assert integer.decode(encoded) == values
    np.testing.assert_array_equal(integer.levels(), encoded)


def test_the_largest_integer_ranges_still_come_back():
    wide = Integer(0, 2**50 - 1)
    values = [0, 1, 2**49 + 1, 2**50 - 2, 2**50 - 1]
    assert wide.decode(wide.encode(values)) == values
    logs = Integer(1, 2**40, log=True)
    values = [1, 2, 3, 2**39 + 1, 2**40 - 1, 2**40]
    assert logs.decode(logs.encode(values)) == values


def test_integer_in_logs_has_edges_half_a_step_out():
    integer = Integer(1, 100, log=True)
    edge = math.log(1.5 / 0.5) / math.log(100.5 / 0.5)
    assert integer.decode(np.array([[edge - 1e-9], [edge + 1e-9]])) == [1, 2]
    np.testing.assert_allclose(integer.encode([1]), [[edge / 2]])


def test_integer_clips_at_its_ends():
    assert Integer(1, 8).decode(np.array([[-1.0], [0.0], [1.0], [2.0]])) == [1, 1, 8, 8]
    assert Integer(1, 8, log=True).decode(np.array([[-1.0], [1.0]])) == [1, 8]


def test_integer_describes_itself():
    integer = Integer(0, 6, step=2)
    assert (integer.width, integer.size, integer.numeric) == (1, 4, True)
    assert integer.span == (0.0, 6.0)
    assert integer.describe() == {
        "kind": "integer",
        "low": 0,
        "high": 6,
        "log": False,
        "step": 2,
    }
    assert integer.decode(integer.nearest(np.array([4.9]))) == [4]
    assert integer.decode(integer.nearest(np.array([99.0]))) == [6]
    np.testing.assert_array_equal(integer.numbers(integer.levels()), [0, 2, 4, 6])


@pytest.mark.parametrize("parameter", [Real(1, 2, log=True), Integer(1, 5, step=2)])
def test_numeric_parameters_pickle_and_do_not_change(parameter):
    assert pickle.loads(pickle.dumps(parameter)) == parameter
    with pytest.raises(AttributeError):
        parameter.low = 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "at least one parameter"),
        ([("x", Real(0, 1))], r"Space.*got \[\('x'"),
        ({"": Real(0, 1)}, r"parameter.*got ''"),
        ({3: Real(0, 1)}, r"parameter.*got 3"),
        ({"x": (0, 1)}, r"'x'.*\(0, 1\).*\(0, 1\)"),
        ({"x": Real}, r"'x'.*Real, Integer"),
    ],
)
def test_parameters_of_a_space_are_checked(parameters, message):
    with pytest.raises(SpaceError, match=message):
        checked_parameters(parameters)


def test_parameters_of_a_space_are_copied():
    given = {"x": Real(0, 1), "c": Choice(["a"])}
    kept = checked_parameters(given)
    given.clear()
    assert list(kept) == ["x", "c"]
