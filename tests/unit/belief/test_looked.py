"""Rows that imagined looks add, made when asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.large import lowrank as looked
from covey.large.lowrank import HeldRows, ImaginedRows

RNG = np.random.default_rng(0)
AT, ROWS = RNG.random((20, 2)), RNG.random((300, 2))
LOOKS = [3, 250, 17, 40]
COLS = np.array([5, 17, 299])


def belief(memory, members=1):
    data = observe(AT, np.sin(5.0 * AT).sum(axis=1), np.full(20, np.nan))
    models = [Model(Matern52((0.3 + 0.1 * i,) * 2, 1.0 + i), 0.01) for i in range(members)]
    return condition(models, data).belief(ROWS, memory=memory)


def last(made):
    return made.parts[0].explained.layers[-1]


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("on", [None, np.arange(10, 290)])
def test_held_or_not_it_is_the_same_belief(members, on, monkeypatch):
    monkeypatch.setattr(looked, "_ENTRIES", 4 * 1024)
    held = belief(2**30, members).after_looking_at(LOOKS, on)
    made = belief(64, members).after_looking_at(LOOKS, on)
    assert isinstance(last(held), HeldRows)
    assert isinstance(last(made), ImaginedRows)
    np.testing.assert_allclose(made.std, held.std, atol=1e-12)
    cols = COLS - (0 if on is None else 10)
    np.testing.assert_allclose(made.columns(cols[:2]), held.columns(cols[:2]), atol=1e-12)
    some = np.array([7, 200, 100])
    np.testing.assert_allclose(made.on(some).columns([1]), held.on(some).columns([1]), atol=1e-12)
    again = [one.after_looking_at([9, 30]) for one in (made, held)]
    np.testing.assert_allclose(again[0].std, again[1].std, atol=1e-12)


def test_products_are_made_a_slab_at_a_time(monkeypatch):
    made = belief(64).after_looking_at(LOOKS)
    weights = RNG.random((4, 2))
    whole = last(made).product(slice(None), weights)
    sizes, of = [], ImaginedRows.of
    monkeypatch.setattr(looked, "_ENTRIES", 1)
    monkeypatch.setattr(looked, "_ROWS", 43)
    monkeypatch.setattr(
        ImaginedRows, "of", lambda self, cols: sizes.append(len(cols)) or of(self, cols)
    )
    np.testing.assert_allclose(last(made).product(slice(None), weights), whole, atol=1e-12)
    assert sizes == [43] * 6 + [42]


def test_a_few_are_held_where_the_memory_allows_it():
    before = belief(64)
    roomy = replace(before.parts[0].explained, memory=4 * 8 * 4 * 10)
    before = replace(before, parts=(replace(before.parts[0], explained=roomy),))
    made = before.after_looking_at(LOOKS)
    assert isinstance(last(made.on(np.arange(10))), HeldRows)
    assert isinstance(last(made.on(np.arange(11))), ImaginedRows)


def test_no_candidates_are_no_trouble():
    made = belief(64).after_looking_at(LOOKS)
    assert last(made).product(np.arange(0), np.ones((4, 2))).shape == (0, 2)
    assert last(made).of(np.arange(0)).shape == (4, 0)
