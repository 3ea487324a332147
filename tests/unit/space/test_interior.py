from __future__ import annotations

import numpy as np
import pytest

from covey.space import Choice, Integer, Linear, Real
from covey.space.inside import centres

SQUARE = {"x": Real(0, 1), "y": Real(0, 1)}


def test_the_centre_of_a_triangle_is_its_incentre():
    first, _ = centres(SQUARE, {}, [Linear({"x": 1, "y": 1}, upper=1)])
    expected = 1 / (2 + np.sqrt(2))
    assert first == {"x": pytest.approx(expected), "y": pytest.approx(expected)}


def test_ranges_are_scaled_before_the_ball_is_laid():
    wide = {"x": Real(0, 1000), "y": Real(-1, 0)}
    first, _ = centres(wide, {}, [Linear({"x": 1, "y": 1000}, upper=0)])
    expected = 1 / (2 + np.sqrt(2))
    assert first["x"] == pytest.approx(1000 * expected)
    assert first["y"] == pytest.approx(expected - 1)


def test_parameters_without_a_weight_are_left_alone():
    free = {**SQUARE, "c": Choice(["a", "b"])}
    first, _ = centres(free, {}, [Linear({"x": 1}, lower=0.8)])
    assert list(first) == ["x"]
    assert 0.8 < first["x"] < 1.0


def test_held_numbers_move_the_bounds():
    first, _ = centres({"x": Real(0, 1)}, {"y": 0.9}, [Linear({"x": 1, "y": 1}, upper=1)])
    assert first["x"] == pytest.approx(0.05)


def test_an_empty_polytope_has_no_centre():
    assert list(centres(SQUARE, {}, [Linear({"x": 1, "y": 1}, lower=3)])) == []


def test_the_second_centre_has_whole_numbers():
    free = {"a": Integer(0, 1000), "b": Integer(0, 1000, step=2)}
    _, second = centres(free, {}, [Linear({"a": 7, "b": 11}, lower=4998.9, upper=4999.1)])
    a, b = round(second["a"]), round(second["b"])
    assert second == {"a": pytest.approx(a), "b": pytest.approx(b)}
    assert 7 * a + 11 * b == 4999
    assert b % 2 == 0


def test_everything_held_leaves_nothing_to_place():
    row = Linear({"x": 1}, upper=1)
    assert list(centres({}, {"x": 0.5}, [row])) == [{}, {}]
    assert list(centres({}, {"x": 1.5}, [row])) == []
