"""Polytopes: their rows, corners and centres, and points that are uniform on them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, kstest

from covey.space import Linear
from covey.space.polytope import Polytope, find_polytope


def unit(p):
    """p parameters between 0 and 1."""
    return tuple((f"x{i}", 0.0, 1.0) for i in range(p))


def sum_of(p, lower, upper):
    return Linear({f"x{i}": 1.0 for i in range(p)}, lower, upper)


def points(polytope, count, seed=0):
    """Points (count, p) drawn from it."""
    values = polytope.draw(count, np.random.default_rng(seed))
    return np.stack([values[name] for name in polytope.names], axis=1)


# Rows and corners


def test_rows_are_scaled_to_ranges_and_what_is_held_is_taken_off():
    rule = Linear({"x": 1.0, "y": 2.0, "z": 1.0}, lower=-3.0, upper=4.0)
    found = Polytope([("x", 0.0, 10.0), ("y", -1.0, 1.0), ("z", 0.5, 0.5)], [rule])
    # x = 10 s, y = 2 t - 1: 10 s + 4 t - 2 + 0.5 <= 4, and its mirror; rows have unit length.
    length = np.hypot(10.0, 4.0)
    np.testing.assert_allclose(found.normals, np.array([[10.0, 4.0], [-10.0, -4.0]]) / length)
    np.testing.assert_allclose(found.bounds, np.array([5.5, 1.5]) / length)
    assert found.matrix.shape == (0, 2)


@pytest.mark.parametrize(
    ("spans", "rules", "empty"),
    [
        (unit(1), [Linear({"x0": 1}, upper=-0.5)], True),
        (unit(2), [sum_of(2, 3, 3)], True),
        (unit(2), [sum_of(2, 1, 1), sum_of(2, 1.5, 9)], True),
        (unit(2), [sum_of(2, 1, 1), Linear({"x0": 2, "x1": 2}, 2, 2)], False),
        ((("x0", 0.5, 0.5),), [Linear({"x0": 1}, upper=1)], False),
        ((("x0", 1.5, 1.5),), [Linear({"x0": 1}, upper=1)], True),
        ((("x0", 0.5, 0.5), ("x1", 0.5, 0.5)), [sum_of(2, 1, 1)], False),
        ((("x0", 0.5, 0.5), ("x1", 0.6, 0.6)), [sum_of(2, 1, 1)], True),
    ],
)
def test_a_polytope_is_empty_just_where_nothing_satisfies_its_rows(spans, rules, empty):
    assert Polytope(spans, rules).empty == empty


def test_the_same_ranges_and_constraints_are_one_polytope():
    args = unit(3), (sum_of(3, 1, 1),)
    assert find_polytope(*args) is find_polytope(*args)
    assert find_polytope(unit(3), (sum_of(3, 1, 2),)) is not find_polytope(*args)


# Uniform points. Of a uniform point with x >= 0 and sum(x) <= 1 a coordinate is Beta(1, p), and the
# sum Beta(p, 1); of one with sum(x) = 1, or nearly, a coordinate is Beta(1, p - 1).


def distances(polytope, p, count=1000):
    """Kolmogorov-Smirnov statistics of one coordinate, and of the sum if it may vary."""
    x = points(polytope, count)
    wide = polytope.bounds.sum() > 0.1
    first = kstest(x[:, 0], beta(1, p if wide else p - 1).cdf).statistic
    return first, kstest(x.sum(axis=1), beta(p, 1).cdf).statistic if wide else first


CUTS = {
    "corner": lambda p: sum_of(p, -np.inf, 1.0),
    "slab": lambda p: sum_of(p, 0.9995, 1.0005),
    "sum": lambda p: sum_of(p, 1.0, 1.0),
}
CHANCE = 0.06  # of 1000 independent points 0.1 % are this far or farther


@pytest.mark.parametrize("parts", [3, 12, 20])
@pytest.mark.parametrize("cut", CUTS)
def test_points_are_uniform_in_many_dimensions(cut, parts):
    assert max(distances(Polytope(unit(parts), [CUTS[cut](parts)]), parts)) < CHANCE


@pytest.mark.parametrize("cut", CUTS)
def test_an_eighth_of_the_moves_is_not_enough_for_twenty_parts(cut, monkeypatch):
    """The control: the mixtures of corners that chains start from are not uniform."""
    monkeypatch.setattr("covey.space.polytope._SWEEPS", 20)
    monkeypatch.setattr("covey.space.polytope._SWEEPS_EACH", 1)
    assert max(distances(Polytope(unit(20), [CUTS[cut](20)]), 20)) > 2 * CHANCE


def test_a_needle_is_filled_along_its_length():
    """|s - t| <= 1e-6 in the unit square: uniform along the diagonal."""
    rule = Linear({"x0": 1, "x1": -1}, lower=-1e-6, upper=1e-6)
    at = points(Polytope(unit(2), [rule]), 2000)
    assert np.abs(at[:, 0] - at[:, 1]).max() <= 1.1e-6
    assert kstest(at[:, 0], "uniform").pvalue > 1e-3


def test_a_very_thin_slab_is_not_left():
    """|s + t - 1| <= 1e-13: walls count however short the difference of two chains is."""
    at = points(Polytope(unit(2), [sum_of(2, 1 - 1e-13, 1 + 1e-13)]), 50)
    assert np.abs(at.sum(axis=1) - 1.0).max() <= 1e-12
    assert at[:, 0].std() > 0.2


@pytest.mark.parametrize("parts", [3, 8])
def test_sums_do_not_drift_in_thousands_of_moves(parts, monkeypatch):
    """Few chains come close to each other often, and rounding is all that is between them."""
    monkeypatch.setattr("covey.space.polytope._SWEEPS", 2000)
    at = points(Polytope(unit(parts), [sum_of(parts, 1.0, 1.0)]), 6)
    assert np.abs(at.sum(axis=1) - 1.0).max() <= 1e-14
    assert at.min() >= 0.0


def test_rows_that_say_the_same_count_once():
    rules = [Linear({"x0": 1, "x1": 1}, 1, 1), Linear({"x0": 2, "x1": 2}, 2, 2)]
    at = points(Polytope((*unit(2), ("held", 7.0, 7.0)), rules), 300)
    np.testing.assert_allclose(at[:, :2].sum(axis=1), 1.0, atol=1e-14)
    assert kstest(at[:, 0], "uniform").pvalue > 1e-3
    assert set(at[:, 2]) == {7.0}


def test_a_single_point_is_drawn_as_it_is():
    rules = [sum_of(2, 1, 1), Linear({"x0": 1, "x1": -1}, 0.5, 0.5)]
    np.testing.assert_allclose(points(Polytope(unit(2), rules), 3), [[0.75, 0.25]] * 3, atol=1e-12)


# Centres


def centre(spans, rules, levels=None):
    values = Polytope(spans, rules).find_centre(levels or {})
    return None if values is None else {name: float(x[0]) for name, x in values.items()}


def test_the_centre_of_a_triangle_is_its_incentre():
    expected = 1 / (2 + np.sqrt(2))
    assert centre(unit(2), [sum_of(2, -np.inf, 1)]) == pytest.approx(
        {"x0": expected, "x1": expected}
    )


def test_ranges_are_scaled_before_the_ball_is_laid():
    spans = [("x", 0.0, 1000.0), ("y", -1.0, 0.0)]
    expected = 1 / (2 + np.sqrt(2))
    values = centre(spans, [Linear({"x": 1, "y": 1000}, upper=0)])
    assert values == pytest.approx({"x": 1000 * expected, "y": expected - 1})


def test_what_is_held_moves_the_bounds():
    spans = [("x", 0.0, 1.0), ("y", 0.9, 0.9)]
    rule = Linear({"x": 1, "y": 1}, upper=1)
    assert centre(spans, [rule]) == pytest.approx({"x": 0.05, "y": 0.9})
    assert centre(spans[1:], [rule]) == {"y": 0.9}
    assert centre([("y", 1.5, 1.5)], [rule]) is None


def test_an_empty_polytope_has_no_centre():
    assert centre(unit(2), [sum_of(2, 3, np.inf)]) is None


def test_what_has_levels_is_at_one_of_them():
    spans = [("a", 0.0, 1000.0), ("b", 0.0, 1000.0)]
    values = centre(spans, [Linear({"a": 7, "b": 11}, 4998.9, 4999.1)], {"a": 1001, "b": 501})
    a, b = round(values["a"]), round(values["b"])
    assert values == pytest.approx({"a": a, "b": b})
    assert 7 * a + 11 * b == 4999
    assert b % 2 == 0
