from __future__ import annotations

import numpy as np
import pytest

from covey.space import Choice, Integer, Linear, Real, Space
from covey.space.inside import many_inside, one_inside

MIXED = Space({"lr": Real(1e-4, 1.0, log=True), "k": Integer(0, 4)})


def even(point):
    return point["k"] % 2 == 0


def test_one_finds_a_needle():
    """A thin corner that random points miss: its volume is 1e-6 / 2 of the square."""
    space = Space(
        {"x": Real(0, 1), "y": Real(0, 1), "c": Choice(["a", "b"])},
        where=[Linear({"x": 1, "y": 1}, upper=1e-3)],
    )
    u = one_inside(space, {})
    assert u.shape == (4,)
    assert space.feasible(u[None])[0]
    np.testing.assert_array_equal(space.snap(u[None])[0], u)
    held = one_inside(space, {"c": "b", "x": 5e-4})
    assert space.decode(held[None])[0]["c"] == "b"
    assert space.decode(held[None])[0]["x"] == pytest.approx(5e-4)
    assert one_inside(space, {"x": 0.5}) is None


def test_one_solves_for_integers_when_rounding_fails():
    space = Space(
        {"a": Integer(0, 1000), "b": Integer(0, 1000)},
        where=[Linear({"a": 7, "b": 11}, lower=4998.9, upper=4999.1)],
    )
    point = space.decode(one_inside(space, {})[None])[0]
    assert 7 * point["a"] + 11 * point["b"] == 4999


def test_one_places_ordered_numbers_and_logs():
    space = Space(
        {"w": Choice([1, 8, 64], ordered=True), "lr": Real(1e-6, 1, log=True)},
        where=[Linear({"w": 1}, lower=40), Linear({"lr": 1}, upper=1e-5)],
    )
    point = space.decode(one_inside(space, {})[None])[0]
    assert point["w"] == 64
    assert 1e-6 < point["lr"] < 1e-5


def test_one_is_none_without_linear_constraints_or_when_predicates_refuse():
    assert one_inside(MIXED, {}) is None
    assert one_inside(Space({"k": Integer(0, 3)}, where=[even]), {}) is None
    never = Space({"x": Real(0, 1)}, where=[Linear({"x": 1}, upper=1), lambda point: False])
    assert one_inside(never, {}) is None


def test_many_spread_over_a_thin_slab():
    """Mixtures: shares that sum to one within a thousandth, over the whole simplex."""
    names = [f"x{i}" for i in range(6)]
    space = Space(
        {name: Real(0, 1) for name in names},
        where=[Linear(dict.fromkeys(names, 1.0), lower=0.999, upper=1.001)],
    )
    at = many_inside(space, {}, 1000, np.random.default_rng(0))
    assert space.feasible(at).mean() > 0.99
    # A uniform point of the simplex has mean 1/6 and standard deviation sqrt(5/252) = 0.141.
    np.testing.assert_allclose(at.mean(axis=0), 1 / 6, atol=0.02)
    np.testing.assert_allclose(at.std(axis=0), 0.141, atol=0.02)


def test_many_respect_what_is_fixed_and_leave_the_rest_uniform():
    space = Space(
        {"x": Real(0, 1), "y": Real(0, 10), "n": Integer(0, 9), "c": Choice(["a", "b"])},
        where=[Linear({"x": 1, "y": 1}, upper=0.5)],
    )
    points = space.decode(many_inside(space, {"x": 0.2}, 400, np.random.default_rng(0)))
    assert {p["x"] for p in points} == {0.2}
    assert max(p["y"] for p in points) <= 0.3 + 1e-9
    assert {p["n"] for p in points} == set(range(10))
    assert {p["c"] for p in points} == {"a", "b"}


def test_many_of_nothing():
    rng = np.random.default_rng(0)
    assert many_inside(MIXED, {}, 3, rng) is None
    impossible = Space(
        {"x": Real(0, 1)}, where=[Linear({"x": 1}, lower=0.9), Linear({"x": 1}, upper=0.1)]
    )
    assert many_inside(impossible, {}, 3, rng) is None
