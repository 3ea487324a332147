"""The down-up walk; its law is checked in tests/laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey.dpp import greedy, walk
from covey.dpp.greedy import Start
from covey.dpp.kernel import adapt


def smooth(n, noise=0.01):
    at = np.random.default_rng(0).random((n, 2))
    gap = ((at[:, None] - at) ** 2).sum(axis=2)
    return np.eye(n) + np.exp(-0.5 * gap / 0.2**2) / noise


class Counting:
    def __init__(self, matrix):
        self.matrix, self.diagonal, self.asked = matrix, matrix.diagonal(), 0

    def columns(self, indices):
        self.asked += len(indices)
        return self.matrix[:, indices]

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]


@pytest.mark.parametrize(("k", "steps"), [(4, 48), (9, 116)])
def test_the_number_of_steps_of_the_specification(k, steps):
    """N = k [log log 1/μ + log 1/(2ε²)], with μ the greedy guarantee at n = 1000."""
    log_inverse_mass = math.log(math.comb(1000, k)) + 2 * math.lgamma(k + 1)
    start = Start(np.arange(k), log_inverse_mass)
    assert walk.walk_steps(start, k, 0.01) == pytest.approx(steps, abs=1)


def test_enough_steps_are_enough_by_the_bound():
    for k in (2, 5, 30):
        for epsilon in (0.2, 0.01, 1e-6):
            start = Start(np.arange(k), 40.0)
            assert (
                walk.walk_error(start.log_inverse_mass, k, walk.walk_steps(start, k, epsilon))
                <= epsilon
            )


def test_a_cap_is_reported():
    kernel = adapt(smooth(30))
    free = walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=None)
    assert free.error == 0.01
    assert walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=free.steps).error == 0.01
    errors = [walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=s).error for s in (1, 10, 30)]
    assert 1.0 >= errors[0] > errors[1] > errors[2] > 0.01
    assert walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=10).steps == 10


def test_the_bound_does_not_exceed_one():
    assert walk.walk_error(50.0, 3, 1) == 1.0


@pytest.mark.parametrize("k", [2, 5, 29])
def test_a_draw_is_k_distinct_items(k):
    sampler = walk.prepare_walk(adapt(smooth(30)), k, epsilon=0.01, max_steps=200)
    drawn = sampler.draw(np.random.default_rng(0))
    assert drawn == sorted(set(drawn))
    assert len(drawn) == k


def test_a_draw_does_not_read_whole_columns():
    source = Counting(smooth(300, noise=1.0))
    sampler = walk.prepare_walk(adapt(source), 5, epsilon=0.01, max_steps=None)
    assert source.asked == 4  # greedy
    sampler.draw(np.random.default_rng(0))
    assert source.asked == 4


def test_large_sets_are_renewed_in_rounds():
    sampler = walk.prepare_walk(adapt(smooth(300)), 130, epsilon=0.01, max_steps=20)
    assert len(set(sampler.draw(np.random.default_rng(0)))) == 130


def test_a_pass_without_variance_keeps_the_old_item():
    kernel = adapt(np.ones((3, 3)))
    sampler = walk.Walk(kernel, np.cumsum(kernel.diagonal), np.array([0, 2]), 5, 1.0, ())
    assert sampler.draw(np.random.default_rng(0)) == [0, 2]


def test_proposals_grow_with_n_but_stay_below_it():
    assert sum(walk.blocks(10, 2)) == 64
    for n in (1000, 20_000, 1_000_000):
        assert 64 <= sum(walk.blocks(n, 9)) <= n / 2
        assert max(walk.blocks(n, 9)) <= 8192
        assert max(walk.blocks(n, 1000)) <= 2**24 // 8000


def test_a_smooth_kernel_without_noise_is_walked_by_passes():
    at = np.linspace(0.0, 1.0, 120)
    L = 1e-9 * np.eye(120) + np.exp(-0.5 * (np.subtract.outer(at, at) / 0.3) ** 2)
    sampler = walk.prepare_walk(adapt(L), 9, epsilon=0.01, max_steps=60)
    drawn = sampler.draw(np.random.default_rng(0))
    assert len(set(drawn)) == 9
    assert drawn != sorted(sampler.start.tolist())


def test_the_start_of_a_large_kernel_is_sought_among_few(monkeypatch):
    monkeypatch.setattr(greedy, "LARGE", 100)
    source = Counting(smooth(300, noise=1.0))
    sampler = walk.prepare_walk(adapt(source), 5, epsilon=0.01, max_steps=None)
    assert source.asked == 0  # greedy read blocks
    assert len(sampler.draw(np.random.default_rng(0))) == 5
    assert source.asked == 0
