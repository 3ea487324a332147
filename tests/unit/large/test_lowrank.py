"""Covariances as a prior less rows: held, streamed, selected, and those of imagined looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from covey.gp import Model, condition, observe
from covey.kernels import Matern52, SquaredExponential
from covey.large import lowrank
from covey.large.lowrank import (
    ExplainedCovariance,
    HeldRows,
    ImaginedRows,
    SelectedRows,
    StreamedRows,
    held_rows,
)

SMALL = 1  # bytes: nothing may be held


def posterior(kind=Matern52, members=1, noise=1e-3):
    rng = np.random.default_rng(0)
    at = rng.random((30, 3))
    data = observe(at, np.sin(5.0 * at).sum(axis=1), np.full(30, np.nan))
    models = [Model(kind((0.4 + 0.1 * i,) * 3, 1.0 + i), noise, 0.1 * i) for i in range(members)]
    return condition(models, data)


def rows(n=700):
    return np.random.default_rng(1).random((n, 3))


def layers(belief):
    return [type(layer) for layer in belief.parts[0].explained.layers]


@pytest.mark.parametrize("kind", [Matern52, SquaredExponential])
@pytest.mark.parametrize("members", [1, 3])
def test_made_on_demand_or_held_it_is_the_same_covariance(kind, members):
    model, at = posterior(kind, members), rows()
    whole, streamed = model.belief(at), model.belief(at, memory=SMALL)
    assert layers(whole) == [HeldRows]
    assert layers(streamed) == [StreamedRows]
    np.testing.assert_array_equal(streamed.mean, whole.mean)
    np.testing.assert_array_equal(streamed.std, whole.std)
    cols = np.array([3, 500, 17])
    np.testing.assert_allclose(streamed.columns(cols), whole.columns(cols), atol=1e-12)
    some = np.arange(10, 600, 7)
    for make in (
        lambda b: b.after_looking_at([5, 80]),
        lambda b: b.after_looking_at([5, 80], on=some),
        lambda b: b.on(some),
        lambda b: b.after_looking_at([5]).on(some).after_looking_at([2]),
    ):
        ours, theirs = make(streamed), make(whole)
        np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-9)
        for a, b in ((some[:4] % len(ours), some[:40] % len(ours)), (np.arange(9), np.arange(3))):
            ours_block = ours.information().block(a, b)
            np.testing.assert_allclose(ours_block, theirs.information().block(a, b), rtol=1e-7)


def test_looking_on_a_subset_is_looking_and_then_taking_the_subset():
    belief, some = posterior(members=2).belief(rows()), np.arange(0, 700, 3)
    ours, theirs = (
        belief.after_looking_at([1, 2], on=some),
        belief.after_looking_at([1, 2]).on(some),
    )
    np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-10)
    np.testing.assert_array_equal(ours.at, theirs.at)


def test_a_subset_that_fits_is_held():
    belief = posterior().belief(rows(), memory=2 * 8 * 30 * 100)
    assert layers(belief) == [StreamedRows]
    assert layers(belief.on(np.arange(100))) == [HeldRows]
    assert layers(belief.on(np.arange(101))) == [StreamedRows]


def test_of_most_candidates_only_their_places_are_kept():
    model, at = posterior(), rows()
    most, few = np.arange(700)[::-1][:351], np.arange(350)
    belief = model.belief(at)
    assert layers(belief.on(most)) == [SelectedRows]
    assert layers(belief.on(few)) == [HeldRows]
    assert layers(belief.on(most).on(np.arange(350))) == [HeldRows]
    assert layers(belief.on(most).on(np.arange(351))) == [SelectedRows]
    sifted = belief.on(most)
    plain = model.belief(at[most])
    cols = np.array([3, 300, 17])
    np.testing.assert_allclose(sifted.columns(cols), plain.columns(cols), atol=1e-12)
    for part in (np.arange(5, 340), np.arange(20)):
        rows_ = sifted.parts[0].block(part, cols)
        np.testing.assert_allclose(rows_, plain.parts[0].block(part, cols), atol=1e-12)
    looked = [belief.after_looking_at([697], on=most), plain.after_looking_at([2])]
    np.testing.assert_allclose(looked[0].columns(cols), looked[1].columns(cols), atol=1e-12)


def test_rows_added_one_by_one_are_copied_few_times():
    rng = np.random.default_rng(0)
    added = rng.standard_normal((64, 20))
    explained = held_rows(np.zeros((0, 20)))
    for i in range(64):
        explained = explained.also(added[i : i + 1])
        assert len(explained.layers) <= 8
    np.testing.assert_array_equal(explained.of(np.arange(20)), added)
    np.testing.assert_allclose(explained.squares, np.square(added).sum(axis=0))
    weights = rng.standard_normal((64, 2))
    product = explained.product(np.array([4, 2]), weights)
    np.testing.assert_allclose(product, added[:, [4, 2]].T @ weights)


def test_growing_one_leaves_the_other_as_it_was():
    first = held_rows(np.ones((1, 3)))
    first.also(np.ones((1, 3)))
    again = first.also(2.0 * np.ones((1, 3)))
    np.testing.assert_array_equal(first.squares, 1.0)
    np.testing.assert_array_equal(again.squares, 5.0)
    assert isinstance(again, ExplainedCovariance)


@pytest.mark.parametrize("kind", [Matern52, SquaredExponential])
def test_numpy_and_torch_agree_to_eight_digits(kind):
    torch = pytest.importorskip("torch")
    model, at = posterior(kind, members=2, noise=1e-4), rows()
    ours = model.belief(at)
    for memory in (SMALL, 2**30):
        theirs = model.belief(torch.as_tensor(at), memory=memory)
        np.testing.assert_allclose(theirs.mean, ours.mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(theirs.std, ours.std, rtol=0, atol=1e-8)
        later = theirs.after_looking_at([3, 9], on=np.arange(50, 400))
        same = ours.after_looking_at([3, 9], on=np.arange(50, 400))
        np.testing.assert_allclose(later.std, same.std, rtol=0, atol=1e-8)


def test_single_precision_is_good_to_three_digits_and_not_to_eight():
    torch = pytest.importorskip("torch")
    model, at = posterior(noise=1e-4), rows()
    ours, theirs = model.belief(at), model.belief(torch.as_tensor(at, dtype=torch.float32))
    worst = np.abs(theirs.std - ours.std).max()
    assert 1e-8 < worst < 2e-2
    np.testing.assert_allclose(theirs.mean, ours.mean, atol=1e-2)


# Rows that imagined looks add, made when asked for


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
    monkeypatch.setattr(lowrank, "_ENTRIES", 4 * 1024)
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
    monkeypatch.setattr(lowrank, "_ENTRIES", 1)
    monkeypatch.setattr(lowrank, "_ROWS", 43)
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


# Candidates that are imagined observed


DRAWS = np.random.default_rng(0)
SEEN, NEW = DRAWS.random((8, 2)), DRAWS.random((60, 2))
KERNEL, NOISE = Matern52((0.4, 0.5), 1.3), 0.05


def imagined(memory=2**30):
    data = observe(SEEN, np.sin(5.0 * SEEN).sum(axis=1), np.full(8, np.nan))
    return condition([Model(KERNEL, NOISE)], data).belief(NEW, memory=memory)


def looks(made):
    return made.parts[0].looks


def test_what_is_imagined_makes_the_factor_of_all_looks():
    seen = looks(imagined().after_looking_at([1, 3]).after_looking_at([0])).evidence
    at = np.vstack([SEEN, NEW[[1, 3]], NEW[[0]]])
    np.testing.assert_array_equal(seen.at, at)
    gram = KERNEL(at, at) + np.diag(seen.noise)
    np.testing.assert_allclose(seen.factor @ seen.factor.T, gram, atol=1e-12)
    np.testing.assert_array_equal(np.triu(seen.factor, 1), 0.0)


def test_imagined_looks_carry_no_weight():
    before = imagined()
    seen = looks(before.after_looking_at([1, 3])).evidence
    np.testing.assert_array_equal(seen.weights[:8], before.parts[0].evidence.weights)
    np.testing.assert_array_equal(seen.weights[8:], 0.0)
    np.testing.assert_array_equal(seen.noise[8:], NOISE)


def test_looks_are_named_as_before_whatever_is_left():
    made = imagined().after_looking_at([7], on=np.arange(10, 50)).on(np.arange(5, 30))
    made = made.after_looking_at([2])
    assert looks(made).names.tolist() == [7, 17]
    np.testing.assert_array_equal(looks(made).evidence.at[-1], NEW[17])
    again = imagined().after_looking_at([7, 17]).on(np.arange(15, 40))
    np.testing.assert_allclose(made.std, again.std, atol=1e-12)


@pytest.mark.parametrize("memory", [1, 4 * 8 * 60 * 3, 2**30])
def test_looks_one_by_one_are_those_taken_at_once(memory):
    """HeldRows, held at first, and never held."""
    one_by_one = imagined(memory)
    for i in range(12):
        one_by_one = one_by_one.after_looking_at([i])
    together = imagined().after_looking_at(list(range(12)))
    np.testing.assert_allclose(one_by_one.std, together.std, atol=1e-11)
    np.testing.assert_allclose(one_by_one.columns([20]), together.columns([20]), atol=1e-11)
    layers = one_by_one.parts[0].explained.layers
    held = sum(len(layer) for layer in layers[1:] if not isinstance(layer, ImaginedRows))
    assert 4 * 8 * 60 * held <= memory
    assert len(layers) <= 6  # one for all looks, or as many as a counter has digits
