"""Chains that are cut short."""

from __future__ import annotations

import time

import numpy as np
import pytest

from covey import dpp
from covey.dpp import sampler as cut
from covey.dpp import walk

AT = np.random.default_rng(0).random((900, 2))
L = 1e-3 * np.eye(900) + np.exp(-20.0 * np.square(AT[:, None] - AT).sum(axis=-1))


class Clock:
    """Each step of a chain takes a hundredth of a second."""

    def __init__(self, monkeypatch, cls):
        self.now = 0.0
        self.steps = []
        monkeypatch.setattr(cut.time, "perf_counter", lambda: self.now)
        draw = cls.draw

        def slow(sampler, rng):
            self.steps.append(sampler.steps)
            self.now += 0.01 * sampler.steps
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


def test_the_pace_of_quick_chains_is_found_by_longer_rehearsals():
    full = dpp.prepare(L, 20, "swap")
    used = dpp.hurried(full, 0.2)
    assert 64 < used.steps < full.steps
    began = time.perf_counter()
    assert len(set(used.draw(np.random.default_rng(0)))) == 20
    assert time.perf_counter() - began < 20.0  # it would take minutes


def test_what_is_drawn_does_not_depend_on_the_rehearsal(monkeypatch):
    full = dpp.prepare(L, 20, "walk")
    monkeypatch.setattr(cut, "_REHEARSAL", 32)
    used = dpp.hurried(full, -1.0)
    drawn = used.draw(np.random.default_rng(5))
    assert drawn == dpp.prepare(L, 20, "walk", max_steps=32).draw(np.random.default_rng(5))
