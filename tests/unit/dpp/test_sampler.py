"""The choice of a sampler, the two that need no method, and chains cut short."""

from __future__ import annotations

import numpy as np
import pytest

from covey import dpp
from covey.dpp import sampler as sampler_module
from covey.dpp import walk
from covey.dpp.sampler import Everything, Single
from covey.errors import NumericsError, StrategyError

METHODS = ["auto", "spectral", "mixture", "walk", "swap"]


def smooth(n, d, length, noise):
    at = np.random.default_rng(0).random((n, d))
    square = (at**2).sum(axis=1)
    gap = np.maximum(square[:, None] + square - 2.0 * at @ at.T, 0.0)
    return np.exp(-0.5 * gap / length**2) / noise


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_named_method_is_the_one_used(method):
    sampler = dpp.prepare(np.eye(6) + smooth(6, 1, 0.3, 0.1), 3, method)
    assert sampler.method == method
    assert (sampler.error == 0.0) == (method in ("spectral", "mixture"))
    assert (sampler.steps == 0) == (method in ("spectral", "mixture"))


@pytest.mark.parametrize(
    ("L", "k", "method"),
    [
        (np.eye(40), 3, "spectral"),
        (np.eye(800) + smooth(800, 1, 0.1, 0.01), 9, "walk"),
        (np.eye(800) + smooth(800, 6, 0.3, 0.01), 9, "walk"),
        (np.eye(800) + smooth(800, 6, 0.3, 0.01), 200, "spectral"),
        (np.eye(800) * 1e-8 + smooth(800, 6, 0.3, 1.0), 9, "walk"),
        (smooth(800, 2, 0.05, 1.0), 5, "walk"),
        (np.eye(800), 9, "walk"),
    ],
    ids=["small", "low rank", "high rank", "crowded", "jitter", "correlation", "identity"],
)
def test_auto_goes_by_the_numbers_of_items_and_picks(L, k, method):
    sampler = dpp.prepare(L, k)
    assert sampler.method == method
    assert len(set(sampler.draw(np.random.default_rng(0)))) == k
    assert sampler.error == (0.0 if method == "spectral" else 1e-6)


def test_auto_hands_on_what_the_walk_is_told():
    sampler = dpp.prepare(smooth(600, 2, 0.05, 1.0), 5, epsilon=0.1, max_steps=7)
    assert (sampler.steps, sampler.error > 0.1) == (7, True)


@pytest.mark.parametrize("method", METHODS)
def test_all_items_and_one_item_need_no_method(method):
    L = np.diag([1.0, 0.0, 2.0]) + 1e-3 * np.eye(3)
    assert dpp.prepare(L, 3, method).draw(np.random.default_rng(0)) == [0, 1, 2]
    one = dpp.prepare(L, 1, method)
    assert (one.method, one.error) == ("direct", 0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_rank_below_k_is_an_error(method, k):
    L = np.zeros((4, 4))
    L[0, 0] = 1.0
    with pytest.raises(NumericsError, match=r"rank 1; use k <= 1|L - I"):
        dpp.prepare(L, k, method)


def test_an_almost_singular_kernel_of_full_rank_has_all_its_items():
    L = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    assert dpp.sample(L, 2, np.random.default_rng(0)) == [0, 1]
    with pytest.raises(NumericsError, match="rank 1"):
        dpp.prepare(np.ones((2, 2)), 2)


def test_nothing_can_be_drawn_from_zero():
    with pytest.raises(NumericsError, match="zero everywhere"):
        dpp.prepare(np.zeros((3, 3)), 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_tiny_and_huge_kernels(method, scale):
    L = np.eye(8) + scale * smooth(8, 1, 0.3, 1.0)
    drawn = dpp.sample(L, 3, np.random.default_rng(0), method)
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 3
    if method != "mixture":  # only there L has a natural unit
        assert len(dpp.sample(scale * L, 3, np.random.default_rng(0), method)) == 3


def test_sample_is_prepare_and_draw():
    L = np.eye(9) + smooth(9, 1, 0.3, 0.1)
    for method in METHODS:
        drawn = dpp.prepare(L, 3, method).draw(np.random.default_rng(5))
        assert dpp.sample(L, 3, np.random.default_rng(5), method) == drawn
        assert all(type(i) is int for i in drawn)


def test_an_unknown_method_is_refused():
    with pytest.raises(StrategyError, match=r"unknown method 'spectrum'.*Did you mean 'spectral'"):
        dpp.prepare(np.eye(3), 2, "spectrum")
    with pytest.raises(StrategyError, match=r"there are auto, spectral, mixture, walk, swap\.$"):
        dpp.prepare(np.eye(3), 2, "xyz")


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, float("nan")])
def test_epsilon_is_a_probability(epsilon):
    with pytest.raises(NumericsError, match="0 < epsilon < 1"):
        dpp.prepare(np.eye(3), 2, "walk", epsilon=epsilon)


def test_a_cap_allows_a_step():
    with pytest.raises(NumericsError, match="at least 1, got 0"):
        dpp.prepare(np.eye(3), 2, "walk", max_steps=0)


# The two samplers that need no method


def test_single_draws_by_weight():
    sampler = Single(np.cumsum([0.0, 2.0, 0.0]))
    assert sampler.draw(np.random.default_rng(0)) == [1]
    assert (sampler.method, sampler.steps, sampler.error) == ("direct", 0, 0.0)


def test_everything_is_everything_and_uses_no_randomness():
    rng = np.random.default_rng(0)
    assert Everything(3).draw(rng) == [0, 1, 2]
    assert rng.random() == np.random.default_rng(0).random()
    assert (Everything(3).method, Everything(3).steps, Everything(3).error) == ("direct", 0, 0.0)


# Chains that are cut short


AT = np.random.default_rng(0).random((900, 2))
L = 1e-3 * np.eye(900) + np.exp(-20.0 * np.square(AT[:, None] - AT).sum(axis=-1))


class Clock:
    """Each step of a chain takes a hundredth of a second, or as long as it is told."""

    def __init__(self, monkeypatch, cls, step=0.01):
        self.now = 0.0
        self.steps = []
        monkeypatch.setattr(sampler_module.time, "perf_counter", lambda: self.now)
        draw = cls.draw

        def slow(sampler, rng):
            self.steps.append(sampler.steps)
            self.now += step * sampler.steps
            return draw(sampler.cut(1), rng)

        monkeypatch.setattr(cls, "draw", slow)


@pytest.mark.parametrize("method", ["walk", "swap"])
def test_a_chain_is_cut_to_the_time_there_is(method, monkeypatch):
    full = dpp.prepare(L, 20, method)
    clock = Clock(monkeypatch, type(full))
    used = dpp.hurried(full, 2.0)
    assert clock.steps == [64]
    assert used.steps == 136  # two seconds, less the rehearsal
    assert used.error > full.error
    assert used.error == dpp.prepare(L, 20, method, max_steps=136).error


def test_with_time_enough_nothing_is_cut(monkeypatch):
    full = dpp.prepare(L, 20, "walk")
    Clock(monkeypatch, walk.Walk)
    assert dpp.hurried(full, 1000.0) is full


def test_with_no_time_left_a_few_steps_are_taken(monkeypatch):
    full = dpp.prepare(L, 20, "walk")
    Clock(monkeypatch, walk.Walk)
    assert dpp.hurried(full, -1.0).steps == 64


def test_what_is_exact_stays_so():
    full = dpp.prepare(L, 3, "spectral")
    assert dpp.hurried(full, 0.0) is full


def test_the_pace_of_quick_chains_is_found_by_longer_rehearsals(monkeypatch):
    full = dpp.prepare(L, 20, "swap")
    clock = Clock(monkeypatch, type(full), step=1e-4)
    used = dpp.hurried(full, 2.0)
    assert clock.steps == [64, 512]
    assert 64 < used.steps < full.steps
    assert len(set(used.draw(np.random.default_rng(0)))) == 20


def test_what_is_drawn_does_not_depend_on_the_rehearsal(monkeypatch):
    full = dpp.prepare(L, 20, "walk")
    monkeypatch.setattr(sampler_module, "_REHEARSAL", 32)
    used = dpp.hurried(full, -1.0)
    drawn = used.draw(np.random.default_rng(5))
    assert drawn == dpp.prepare(L, 20, "walk", max_steps=32).draw(np.random.default_rng(5))
