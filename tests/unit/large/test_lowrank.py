"""Covariances as a prior less rows, held or streamed; candidates that are imagined observed."""

from __future__ import annotations

import numpy as np
import pytest

from covey.gp import Model, condition, observe
from covey.kernels import Matern52, SquaredExponential
from covey.large.lowrank import ExplainedCovariance, HeldRows, StreamedRows, held_rows

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
    belief = posterior().belief(rows(), memory=3 * 8 * 30 * 100)
    assert layers(belief) == [StreamedRows]
    assert layers(belief.on(np.arange(100))) == [HeldRows]
    assert layers(belief.on(np.arange(101))) == [StreamedRows]


@pytest.mark.parametrize("count", [20, 349, 351, 690])
def test_a_subset_is_that_of_the_whole_however_large(count):
    model, at = posterior(), rows()
    some = np.random.default_rng(2).permutation(700)[:count]
    ours, plain = model.belief(at).on(some), model.belief(at[some])
    cols = np.array([3, 17, 5])
    np.testing.assert_allclose(ours.columns(cols), plain.columns(cols), atol=1e-12)
    for part in (np.arange(count // 2 + 2), np.arange(2, 9)):
        block = ours.parts[0].block(part, cols)
        np.testing.assert_allclose(block, plain.parts[0].block(part, cols), atol=1e-12)


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


# Candidates that are imagined observed


RNG = np.random.default_rng(3)
AT, ROWS = RNG.random((20, 2)), RNG.random((300, 2))
LOOKS = [3, 250, 17, 40]
NOISE = 0.01


def belief(memory=2**30, members=1):
    data = observe(AT, np.sin(5.0 * AT).sum(axis=1), np.full(20, np.nan))
    models = [Model(Matern52((0.3 + 0.1 * i,) * 2, 1.0 + i), NOISE) for i in range(members)]
    return condition(models, data).belief(ROWS, memory=memory)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("on", [None, np.arange(10, 290)])
@pytest.mark.parametrize("slab", [1, 7, 2**20])
def test_held_or_not_it_is_the_same_belief(members, on, slab, monkeypatch):
    monkeypatch.setattr("covey.belief._SLAB", slab)
    held, made = (belief(m, members).after_looking_at(LOOKS, on) for m in (2**30, 64))
    assert layers(held) == [HeldRows, HeldRows]
    assert layers(made) == [StreamedRows]
    np.testing.assert_allclose(made.std, held.std, atol=1e-12)
    cols = np.array([5, 17])
    np.testing.assert_allclose(made.columns(cols), held.columns(cols), atol=1e-12)
    some = np.array([7, 200, 100])
    np.testing.assert_allclose(made.on(some).columns([1]), held.on(some).columns([1]), atol=1e-12)
    again = [one.after_looking_at([9, 30]) for one in (made, held)]
    np.testing.assert_allclose(again[0].std, again[1].std, atol=1e-12)


def test_what_is_streamed_is_held_for_a_few():
    """Room for 24 rows, four of them imagined, of ten candidates."""
    made = belief(3 * 8 * 24 * 10).after_looking_at(LOOKS)
    assert layers(made) == [StreamedRows]
    assert layers(made.on(np.arange(10))) == [HeldRows]
    assert layers(made.on(np.arange(11))) == [StreamedRows]
    assert layers(made.on(np.arange(10)).after_looking_at([2])) == [HeldRows, HeldRows]


def test_no_candidates_are_no_trouble():
    for memory in (64, 2**30):
        none = belief(memory).after_looking_at(LOOKS).on(np.arange(0))
        assert none.columns(np.arange(0)).shape == (0, 0)


def evidence(made):
    part = made.parts[0]
    return part.evidence.with_imagined(part.imagined, part.noise)


def test_what_is_imagined_makes_the_factor_of_all_observations():
    seen = evidence(belief().after_looking_at([1, 3]).after_looking_at([0]))
    at = np.vstack([AT, ROWS[[1, 3]], ROWS[[0]]])
    np.testing.assert_array_equal(seen.at, at)
    gram = Matern52((0.3, 0.3), 1.0)(at, at) + np.diag(seen.noise)
    np.testing.assert_allclose(seen.factor @ seen.factor.T, gram, atol=1e-12)
    np.testing.assert_array_equal(np.triu(seen.factor, 1), 0.0)


def test_imagined_observations_carry_no_weight():
    before = belief()
    seen = evidence(before.after_looking_at([1, 3]))
    np.testing.assert_array_equal(seen.weights[:20], before.parts[0].evidence.weights)
    np.testing.assert_array_equal(seen.weights[20:], 0.0)
    np.testing.assert_array_equal(seen.noise[20:], NOISE)


@pytest.mark.parametrize("memory", [64, 2**30])
def test_what_was_imagined_stays_whatever_is_left(memory):
    made = belief(memory).after_looking_at([7], on=np.arange(10, 50)).on(np.arange(5, 30))
    made = made.after_looking_at([2])
    np.testing.assert_array_equal(evidence(made).at[20:], ROWS[[7, 17]])
    again = belief().after_looking_at([7, 17]).on(np.arange(15, 40))
    np.testing.assert_allclose(made.std, again.std, atol=1e-12)


@pytest.mark.parametrize("memory", [1, 4 * 8 * 300 * 3, 2**30])
def test_observations_one_by_one_are_those_made_at_once(memory):
    """Never held, held at first, and held."""
    one_by_one = belief(memory)
    for i in range(12):
        one_by_one = one_by_one.after_looking_at([i])
    together = belief().after_looking_at(list(range(12)))
    np.testing.assert_allclose(one_by_one.std, together.std, atol=1e-11)
    np.testing.assert_allclose(one_by_one.columns([20]), together.columns([20]), atol=1e-11)
    explained = one_by_one.parts[0].explained.layers
    held = sum(len(layer) for layer in explained if isinstance(layer, HeldRows))
    assert 4 * 8 * 300 * (held - 20) <= memory
    assert len(explained) <= 6  # one, or as many as a counter has digits
