from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from covey.space import Linear
from covey.space.inside import half_spaces, scatter


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
