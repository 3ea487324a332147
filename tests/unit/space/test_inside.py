from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from covey.space import Choice, Integer, Linear, Real, Space
from covey.space.inside import (
    Equalities,
    centres,
    half_spaces,
    many_inside,
    one_inside,
    scatter,
)

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


# Centres of the constrained region


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


# Half-spaces and random points between them


def test_half_spaces_scale_ranges_and_take_held_numbers_off():
    spans = np.array([[0.0, 10.0], [-1.0, 1.0]])
    rows = [Linear({"x": 1.0, "y": 2.0, "z": 1.0}, lower=-3.0, upper=4.0)]
    normals, bounds = half_spaces(rows, ["x", "y"], spans, {"z": 0.5})
    # x = 10 s, y = 2 t - 1: 10 s + 4 t - 2 + 0.5 <= 4, and its mirror; rows have unit length.
    length = np.hypot(10.0, 4.0)
    np.testing.assert_allclose(normals, np.array([[10.0, 4.0], [-10.0, -4.0]]) / length)
    np.testing.assert_allclose(bounds, np.array([5.5, 1.5]) / length)


def test_points_are_uniform_on_a_triangle():
    """s + t <= 1: the sum of a uniform point has distribution function r²."""
    at = scatter(np.array([[1.0, 1.0]]), np.array([1.0]), 4000, np.random.default_rng(0))
    total = at.sum(axis=1)
    assert total.max() <= 1.0 + 1e-9
    assert kstest(total, lambda r: np.clip(r, 0, 1) ** 2).pvalue > 1e-3
    # The control: the mixtures of corners it starts from are not uniform.
    assert kstest(total, lambda r: np.clip(r, 0, 1)).pvalue < 1e-3


def test_a_needle_is_filled_along_its_length():
    """|s - t| <= 1e-6 in the unit square: uniform along the diagonal."""
    normals = np.array([[1.0, -1.0], [-1.0, 1.0]])
    at = scatter(normals, np.full(2, 1e-6), 2000, np.random.default_rng(0))
    assert np.abs(at[:, 0] - at[:, 1]).max() <= 1.1e-6
    assert at[:, 0].std() == pytest.approx(np.sqrt(1 / 12), rel=0.1)


def test_an_empty_polytope_gives_none():
    assert scatter(np.array([[1.0]]), np.array([-0.5]), 3, np.random.default_rng(0)) is None


# Equalities


def sums(p):
    """The simplex of p parts: a row of unit length, and what it comes to."""
    return np.full((1, p), p**-0.5), np.array([p**-0.5])


@pytest.mark.parametrize("parts", [3, 8])
def test_sums_do_not_drift_in_thousands_of_sweeps(parts, monkeypatch):
    """Chains that are close to each other are what blows rounding up; few chains are, often."""
    monkeypatch.setattr("covey.space.inside._SWEEPS", 4000)
    nothing = np.zeros((0, parts)), np.zeros(0)
    at = scatter(*nothing, 6, np.random.default_rng(0), equal=sums(parts))
    assert np.abs(at.sum(axis=1) - 1.0).max() <= 1e-12
    assert at.min() >= 0.0


def test_differences_of_chains_alone_would_drift(monkeypatch):
    """The control: without projection the same chains leave the simplex altogether."""
    monkeypatch.setattr("covey.space.inside._SWEEPS", 4000)
    monkeypatch.setattr(Equalities, "directions", lambda self, along: along)
    monkeypatch.setattr(Equalities, "restored", lambda self, at: at)
    monkeypatch.setattr(Equalities, "circuits", lambda self, n, rng: rng.standard_normal((n, 3)))
    nothing = np.zeros((0, 3)), np.zeros(0)
    at = scatter(*nothing, 6, np.random.default_rng(0), equal=sums(3))
    assert np.abs(at.sum(axis=1) - 1.0).max() > 1e-3


def test_a_very_thin_slab_is_not_left():
    """|s + t - 1| <= 1e-13: walls count however short the difference of two chains is."""
    normals = np.array([[1.0, 1.0], [-1.0, -1.0]])
    bounds = np.array([1.0 + 1e-13, -1.0 + 1e-13])
    at = scatter(normals, bounds, 50, np.random.default_rng(0))
    assert np.abs(at.sum(axis=1) - 1.0).max() <= 1e-12


def test_equalities_of_a_polytope_that_is_empty():
    rows = np.array([[1.0, 1.0]]), np.array([3.0])
    assert scatter(np.zeros((0, 2)), np.zeros(0), 3, np.random.default_rng(0), equal=rows) is None


def test_rows_that_say_the_same_count_once():
    rows = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]])
    flat = Equalities.of(rows, np.array([1.0, 2.0]))
    assert flat.basis.shape == (3, 2)
    np.testing.assert_allclose(rows @ flat.basis, 0.0, atol=1e-12)
    along = flat.directions(flat.circuits(20, np.random.default_rng(0)))
    np.testing.assert_allclose(along @ rows.T, 0.0, atol=1e-12)
