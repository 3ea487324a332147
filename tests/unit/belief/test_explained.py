import numpy as np
import pytest

from covey.gp import Model, condition, observe
from covey.kernels import Matern52, SquaredExponential
from covey.large.lowrank import ExplainedCovariance, HeldRows, SelectedRows, StreamedRows, held_rows

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
