from dataclasses import replace

import numpy as np
import pytest

from covey.belief import Belief
from covey.errors import NumericsError
from covey.gp import Model, condition, observe
from covey.kernels import Matern52


@pytest.fixture
def mixed(make_belief):
    """A belief with two members."""
    rng = np.random.default_rng(0)
    data = observe(rng.random((6, 2)), rng.standard_normal(6), np.full(6, np.nan))
    models = [Model(Matern52((0.3, 0.3)), 0.05), Model(Matern52((0.9, 0.4), 2.0), 0.2)]
    return condition(models, data).belief(rng.random((30, 2)))


def test_a_plain_belief_has_one_member_itself(make_belief):
    belief = make_belief(0)
    assert belief.members == (belief,)
    assert len(belief) == 40


def test_moments_of_several_members(mixed):
    first, second = mixed.members
    np.testing.assert_allclose(mixed.mean, (first.mean + second.mean) / 2)
    draws = (first.var + second.var) / 2 + (first.mean - second.mean) ** 2 / 4
    np.testing.assert_allclose(mixed.var, draws)
    np.testing.assert_allclose(np.diagonal(mixed.columns(np.arange(30))), mixed.var, atol=1e-9)
    assert mixed.noise == pytest.approx(0.125)


def test_information_averages_members_in_units_of_their_noise(mixed):
    every = np.arange(30)
    expected = np.eye(30) + np.mean([m.columns(every) / m.noise for m in mixed.members], axis=0)
    kernel = mixed.information()
    np.testing.assert_allclose(kernel.columns(every), expected, atol=1e-9)
    np.testing.assert_allclose(kernel.diagonal, np.diagonal(expected), atol=1e-9)
    rows, cols = np.array([4, 1, 9]), np.array([1, 2])
    np.testing.assert_allclose(kernel.block(rows, cols), expected[np.ix_(rows, cols)], atol=1e-9)
    assert np.linalg.eigvalsh(kernel.columns(every)).min() >= 1.0 - 1e-9


def test_a_subset_keeps_its_belief(make_belief):
    belief = make_belief(1)
    keep = [3, 8, 21]
    part = belief.on(keep)
    np.testing.assert_array_equal(part.at, belief.at[keep])
    np.testing.assert_allclose(part.columns([1]), belief.columns([8])[keep], atol=1e-12)
    looked = belief.after_looking_at([8]).on(keep)
    np.testing.assert_allclose(looked.var, part.after_looking_at([1]).var, atol=1e-12)


def test_draws_are_shared_among_members(mixed):
    rng = np.random.default_rng(0)
    draws = mixed.draw(rng, 4001)
    assert draws.shape == (4001, 30)
    np.testing.assert_allclose(draws.var(axis=0), mixed.var, rtol=0.25)


def test_a_dense_belief(make_belief):
    source = make_belief(3, n=8)
    every = np.arange(8)
    dense = Belief.dense(source.at, source.mean, source.columns(every), source.noise, source.best)
    look = [2, 5]
    np.testing.assert_allclose(
        dense.after_looking_at(look).columns(every), source.after_looking_at(look).columns(every)
    )
    np.testing.assert_allclose(dense.on([1, 4]).var, source.var[[1, 4]])
    assert dense.draw(np.random.default_rng(0), 3).shape == (3, 8)
    with pytest.raises(NumericsError, match="has no gradient"):
        _ = dense.slope


def test_few_draws_come_from_any_member(mixed):
    """With fewer draws than members no member is favoured, nor a place in the order."""
    far = replace(mixed.parts[1], mean=mixed.parts[1].mean + 100.0)
    belief = replace(mixed, parts=(mixed.parts[0], far))
    rng = np.random.default_rng(0)
    high = sum(belief.draw(rng, 1)[0, 0] > 50.0 for _ in range(200))
    assert 70 <= high <= 130
    first = sum(belief.draw(rng, 2)[0, 0] > 50.0 for _ in range(200))
    assert 70 <= first <= 130


@pytest.mark.parametrize("seed", range(20))
def test_a_block_of_the_kernel_has_ones_where_items_meet_however_often(seed):
    rng = np.random.default_rng(seed)
    rows, cols = (rng.integers(0, 6, rng.integers(0, 9)) for _ in range(2))
    belief = Belief.dense(np.zeros((6, 1)), np.zeros(6), np.zeros((6, 6)), noise=1.0)
    np.testing.assert_array_equal(belief.information().block(rows, cols), rows[:, None] == cols)
