from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import Choice, Integer, Linear, Real
from covey.space.constraints import accepts, checked_where, describe_rule, enforce, title

INF = float("inf")
PARAMETERS = {
    "x": Real(0, 1),
    "far": Real(-1e6, 1e6),
    "k": Integer(0, 9),
    "width": Choice([16, 32, 64], ordered=True),
    "kind": Choice(["a", "b"]),
    "level": Choice(["low", "high"], ordered=True),
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {"x": 1}}, r"\{'x': 1, 'y': 1\}, upper=1\.0"),
        ({"weights": {"x": 1}, "lower": 2, "upper": 1}, r"lower=2\.0"),
        ({"weights": {"x": 1}, "lower": INF}, r"lower=.*upper="),
        ({"weights": {"x": 1}, "upper": -INF}, r"lower=.*upper="),
        ({"weights": {"x": 1}, "upper": float("nan")}, "the upper bound of Linear must be"),
        ({"weights": {"x": 1}, "lower": "0"}, r"Linear.*'0'"),
        ({"weights": ["x"], "upper": 1}, r"Linear.*\['x'\]"),
        ({"weights": {}, "upper": 1}, "a weight other than zero"),
        ({"weights": {"x": 0}, "upper": 1}, "a weight other than zero"),
        ({"weights": {"x": float("nan")}, "upper": 1}, r"'x'.*got "),
        ({"weights": {"x": True}, "upper": 1}, r"'x'.*got "),
    ],
)
def test_linear_refuses(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Linear(**arguments)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("widht", r"'widht'.*'width'"),
        ("kind", r"'kind'.*Choice"),
        ("level", "'level'"),
    ],
)
def test_linear_is_validated_against_the_space(name, message):
    with pytest.raises(SpaceError, match=message):
        Linear({"x": 1, name: 1}, upper=1).validate(PARAMETERS)


def test_linear_may_weigh_every_numeric_parameter():
    Linear({"x": 1, "k": 2, "width": -1}, lower=0).validate(PARAMETERS)


def test_linear_holds_between_its_bounds():
    row = Linear({"x": 2, "k": -1}, lower=-1, upper=1)
    numbers = {"x": np.array([0.0, 0.5, 1.0, 1.0]), "k": np.array([2.0, 1.0, 1.0, 0.0])}
    np.testing.assert_array_equal(row.total(numbers), [-2, 0, 1, 2])
    np.testing.assert_array_equal(row._keeps(numbers, PARAMETERS), [False, True, True, False])


def test_rounding_does_not_make_a_point_infeasible():
    """0.1 + 0.2 is 0.30000000000000004."""
    row = Linear({"x": 1, "far": 1}, upper=0.3)
    assert row._keeps({"x": np.array([0.1]), "far": np.array([0.2])}, PARAMETERS)[0]
    assert not row._keeps({"x": np.array([0.1]), "far": np.array([0.2001])}, PARAMETERS)[0]


def test_rounding_stays_small_beside_small_bounds():
    row = Linear({"x": 1}, upper=1e-9)
    assert not row._keeps({"x": np.array([1.1e-9])}, PARAMETERS)[0]


def test_linear_reads_as_mathematics():
    assert str(Linear({"x": 1, "k": -2.5}, lower=0, upper=1)) == "0 <= x - 2.5 k <= 1"
    assert str(Linear({"x": -1}, upper=3)) == "- x <= 3"
    assert str(Linear({"x": 3}, lower=3)) == "3 <= 3 x"
    assert str(Linear({"x": 1, "k": 1}, lower=2, upper=2)) == "x + k = 2"


def test_linear_is_a_value():
    weights = {"x": 1}
    row = Linear(weights, upper=np.float64(1))
    weights["y"] = 1
    assert row == Linear({"x": 1.0}, upper=1.0)
    assert hash(row) == hash(Linear({"x": 1.0}, upper=1.0))
    assert row.describe() == {"kind": "linear", "weights": {"x": 1.0}, "lower": None, "upper": 1.0}


def test_an_exception_in_a_predicate_names_the_point_and_is_chained():
    def broken(point):
        return point["y"] > 0

    with pytest.raises(SpaceError, match=r"broken'.*KeyError.*\{'x': 1\}") as caught:
        accepts(broken, {"x": 1})
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("verdict", [None, 1, "yes"])
def test_a_predicate_returns_true_or_false(verdict):
    with pytest.raises(SpaceError, match="must return True or False"):
        accepts(lambda point: verdict, {"x": 1})


def test_a_predicate_may_return_a_numpy_bool_and_cannot_change_the_point():
    point = {"x": 1}

    def greedy(point):
        point.clear()
        return np.bool_(True)

    assert accepts(greedy, point) is True
    assert point == {"x": 1}


def test_a_predicate_goes_by_its_name():
    assert title(len) == "len"
    assert title(functools.partial(len)) == "partial"
    assert describe_rule(len) == {"kind": "predicate", "name": "len"}
    assert describe_rule(Linear({"x": 1}, upper=1))["kind"] == "linear"


def test_enforce_says_which_constraint_and_its_value():
    enforce(Linear({"x": 1}, upper=1), {"x": 1.0}, PARAMETERS)
    enforce(lambda point: True, {"x": 1.0}, PARAMETERS)
    with pytest.raises(SpaceError, match=r"\{'x': 0\.5, 'k': 3\}.*x \+ k <= 1.*3\.5"):
        enforce(Linear({"x": 1, "k": 1}, upper=1), {"x": 0.5, "k": 3}, PARAMETERS)
    with pytest.raises(SpaceError, match=r"\{'x': 1\.0\}.*'callable'"):
        enforce(callable, {"x": 1.0}, PARAMETERS)


@pytest.mark.parametrize("single", [Linear({"x": 1}, upper=1), callable])
def test_a_bare_constraint_is_asked_to_be_in_a_list(single):
    with pytest.raises(SpaceError, match=r"where=\[...\]"):
        checked_where(single)
    assert checked_where([single]) == (single,)


@pytest.mark.parametrize("where", ["x + y < 1", {"x": 1}, 3, None])
def test_where_must_be_a_list(where):
    with pytest.raises(SpaceError, match=f"where .*got {re.escape(repr(where))}"):
        checked_where(where)


def test_where_holds_constraints_only():
    with pytest.raises(SpaceError, match=r"Linear, Mixture.*'x < 1'"):
        checked_where(["x < 1"])
