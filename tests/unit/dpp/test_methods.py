"""The choice of a sampler."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from covey import dpp
from covey.dpp import sampler as methods
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
        (np.eye(800) + smooth(800, 1, 0.1, 0.01), 9, "mixture"),
        (np.eye(800) + smooth(800, 6, 0.3, 0.01), 9, "walk"),
        (np.eye(800) + smooth(800, 6, 0.3, 0.01), 200, "spectral"),
        (np.eye(800) * 1e-8 + smooth(800, 6, 0.3, 1.0), 9, "walk"),
        (smooth(800, 2, 0.05, 1.0), 5, "walk"),
        (np.eye(800), 9, "mixture"),
    ],
    ids=["small", "low rank", "high rank", "crowded", "jitter", "correlation", "identity"],
)
def test_auto_looks_at_the_kernel(L, k, method):
    sampler = dpp.prepare(L, k)
    assert sampler.method == method
    assert len(set(sampler.draw(np.random.default_rng(0)))) == k


def test_auto_says_why_not_the_mixture(caplog):
    with caplog.at_level(logging.DEBUG, logger="covey"):
        dpp.prepare(smooth(600, 2, 0.05, 1.0), 5)
    assert "L - I" in caplog.text


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


def test_the_rank_tried_by_auto_shrinks_with_n(monkeypatch):
    seen = []

    def refuse(_kernel, _k, *, rank, hurry):
        seen.append((rank, hurry))
        raise NumericsError("no")

    monkeypatch.setattr(methods.mixture, "truncate", refuse)

    class Identity:
        def __init__(self, n):
            self.diagonal = np.ones(n)

        def columns(self, indices):
            out = np.zeros((len(self.diagonal), len(indices)))
            out[indices, np.arange(len(indices))] = 1.0
            return out

    for n in (1000, 200_000):
        assert dpp.prepare(Identity(n), 2).method == "walk"
    assert seen == [(256, True), (100, True)]
