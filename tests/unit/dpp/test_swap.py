"""The lazy swap chain; its law is checked in tests/laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from covey.dpp import swap
from covey.dpp.greedy import Start
from covey.dpp.kernel import adapt


def kernel(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return np.eye(n) + root @ root.T


@pytest.mark.parametrize(
    ("n", "k", "steps"),
    [(1000, 4, 2.8e5), (1000, 9, 1.4e6), (10_000, 4, 3.6e6), (10_000, 9, 1.8e7)],
)
def test_the_number_of_steps_of_the_specification(n, k, steps):
    log_inverse_mass = math.log(math.comb(n, k)) + 2 * math.lgamma(k + 1)
    found = swap.swap_steps(Start(np.arange(k), log_inverse_mass), n, k, 0.01)
    assert found == pytest.approx(steps, rel=0.03)


def test_enough_steps_are_enough_by_the_bound():
    start = Start(np.arange(3), 12.0)
    assert (
        swap.swap_error(start.log_inverse_mass, 20, 3, swap.swap_steps(start, 20, 3, 0.01)) <= 0.01
    )
    assert swap.swap_error(start.log_inverse_mass, 20, 3, 1) == 1.0


def test_a_cap_is_reported():
    free = swap.prepare_swap(adapt(kernel(8)), 3, epsilon=0.01, max_steps=None)
    capped = swap.prepare_swap(adapt(kernel(8)), 3, epsilon=0.01, max_steps=200)
    assert (free.error, capped.steps) == (0.01, 200)
    assert 0.01 < capped.error < 1.0


def test_ratios_are_ratios_of_determinants():
    L = kernel(9)
    state = swap._State(adapt(L), np.array([1, 4, 6]))
    positions, outside = np.array([0, 1, 2, 1]), np.array([0, 2, 8, 7])
    for ratio, position, new in zip(
        state.ratios(positions, outside), positions, outside, strict=True
    ):
        other = state.items.copy()
        other[position] = new
        dets = [np.linalg.det(L[np.ix_(s, s)]) for s in (other, state.items)]
        assert ratio == pytest.approx(dets[0] / dets[1])


def test_the_factor_survives_many_exchanges():
    L, rng = kernel(12), np.random.default_rng(0)
    state = swap._State(adapt(L), np.array([0, 3, 5, 8]))
    for _ in range(50):
        state.advance(rng.integers(4, size=1), rng.integers(8, size=1), np.zeros(1))
        block = L[np.ix_(state.items, state.items)]
        np.testing.assert_allclose(state._factor @ state._factor.T, block, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state._precisions, np.linalg.inv(block).diagonal(), rtol=1e-9)
    assert len(set(state.items.tolist())) == 4


def test_ratios_keep_their_digits_beside_nearly_equal_items():
    """Items 0 and 1 agree to 1e-10; the explicit inverse would be off by a millionth and more."""
    L = np.eye(4)
    L[0, 1] = L[1, 0] = 1.0 - 1e-10
    L[2, 3] = L[3, 2] = 0.5
    state = swap._State(adapt(L), np.array([0, 1]))
    given = 1.0 / (1.0 - L[0, 1] ** 2)  # det L_S is what 1 leaves of 0
    assert state.ratios(np.array([1]), np.array([2]))[0] == pytest.approx(given, rel=1e-6)
    state.advance(np.array([1]), np.array([0]), np.array([-1.0]))
    assert sorted(state.items.tolist()) == [0, 2]
    assert state.ratios(np.array([1]), np.array([3]))[0] == pytest.approx(1.0, rel=1e-12)


def test_the_outside_items_are_numbered_without_gaps():
    state = swap._State(adapt(np.eye(6)), np.array([4, 0, 3]))
    found = [int(i + np.searchsorted(state._gaps, i, side="right")) for i in range(3)]
    assert found == [1, 2, 5]


def test_the_lookahead_does_not_change_the_draw():
    sampler = swap.prepare_swap(adapt(kernel(10)), 3, epsilon=0.01, max_steps=400)
    first = [sampler.draw(np.random.default_rng(s)) for s in range(10)]
    sampler = replace(sampler, lookahead=1)
    assert [sampler.draw(np.random.default_rng(s)) for s in range(10)] == first
