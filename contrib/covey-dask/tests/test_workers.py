from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import Plain, posterior_of, uniform
from covey_dask.coreset import Chosen, check, core_set, stripped
from covey_dask.scatter import Scattered
from covey_dask.workers import Shard, Workers, packed, unpacked, work


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_masks_travel_and_arrive(mask):
    given = np.array(mask)
    assert unpacked(packed(given), len(given)).tolist() == mask


def test_a_share_is_about_the_rows_that_are_left(posterior):
    rows, left = uniform(40), np.arange(40) % 3 == 0
    share = Shard.of(rows, packed(left), posterior, 2**30)
    belief = posterior.belief(rows[left])
    np.testing.assert_array_equal(share.belief.at, rows[left])
    for (mean, squares), part in zip(share.summary().moments, belief.parts, strict=True):
        np.testing.assert_allclose(mean, part.mean, rtol=1e-12)
        np.testing.assert_allclose(squares, part.explained.squares, rtol=1e-12)


def test_products_and_columns_are_those_of_v(posterior):
    rows = uniform(40)
    share = Shard.of(rows, packed(np.ones(40, dtype=bool)), posterior, 2**30)
    explained = posterior.belief(rows).parts[-1].explained
    member, weights = len(posterior.models) - 1, np.random.default_rng(0).random((13, 3))
    whole = explained.of(np.arange(40)).T @ weights
    few, many = np.array([3, 30]), np.arange(35)[::-1]
    np.testing.assert_allclose(share.product(member, None, weights), whole)
    np.testing.assert_allclose(share.product(member, few, weights), whole[few])
    np.testing.assert_allclose(share.product(member, many, weights), whole[many])
    np.testing.assert_allclose(share.columns(member, few), explained.of(few))


def test_a_region_is_what_is_inside_after_the_look(posterior):
    rows = uniform(41)
    share = Shard.of(rows[:40], packed(np.ones(40, dtype=bool)), posterior, 2**30)
    head = stripped(posterior.belief(rows[40:]))
    for inside in (np.arange(40) < 40, np.arange(40) % 2 == 0):
        seen = posterior.belief(rows).after_looking_at([40], on=np.flatnonzero(inside))
        region = share.region(packed(inside), head)
        np.testing.assert_allclose(region.belief.var, seen.var, atol=1e-12)
        assert region.core_set(6).tolist() == core_set(seen, 6).tolist()


def test_a_share_can_be_moved(posterior):
    share = Shard.of(uniform(20), packed(np.ones(20, dtype=bool)), posterior, 2**30)
    again = pickle.loads(pickle.dumps(share))
    np.testing.assert_array_equal(again.belief.var, share.belief.var)


def test_a_worker_calculates_on_one_thread():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    assert set(work(threads)) == {1}


@pytest.fixture
def case(posterior, plain):
    """Sixty rows in four parts, some of them gone, and the team of the rest."""
    rows = uniform(60)
    left = np.setdiff1d(np.arange(60), [3, 17, 40])
    team = Workers.of(plain, Scattered(plain, rows, 4), left, posterior, 2**30)
    return team, posterior.belief(rows[left]), plain


def test_together_they_know_every_row_in_its_place(case):
    team, belief, _ = case
    assert (len(team), team.size) == (4, 57)
    for (mean, squares), part in zip(team.summary().moments, belief.parts, strict=True):
        np.testing.assert_allclose(mean, part.mean, rtol=1e-12)
        np.testing.assert_allclose(squares, part.explained.squares, rtol=1e-12)


def test_v_is_one_matrix_whoever_has_its_columns(case):
    team, belief, plain = case
    explained = belief.parts[0].explained
    weights = np.random.default_rng(0).random((13, 2))
    some = np.array([50, 2, 2, 31])
    whole = explained.product(slice(None), weights)
    np.testing.assert_allclose(team.product(0, None, weights), whole, atol=1e-12)
    np.testing.assert_allclose(team.product(0, some, weights), whole[some], atol=1e-12)
    np.testing.assert_allclose(team.columns(0, some), explained.of(some), atol=1e-12)
    plain.tasks.clear()
    team.columns(0, np.array([5]))
    assert plain.tasks == ["columns"]  # only who has it is asked


def test_a_region_is_a_team_of_its_own(case):
    team, belief, _ = case
    inside = np.arange(20, 50)
    region = team.region(inside, belief.on([7]))
    seen = belief.after_looking_at([7], on=inside)
    assert region.size == 30
    for (_, squares), part in zip(region.summary().moments, seen.parts, strict=True):
        np.testing.assert_allclose(squares, part.explained.squares, rtol=1e-9)


def test_parts_without_a_row_of_it_are_left_out(posterior, plain):
    rows = uniform(60)
    deal = Scattered(plain, rows, 4)
    left = np.concatenate([deal.places[0], deal.places[2][:5]])
    team = Workers.of(plain, deal, np.sort(left), posterior, 2**30)
    assert (len(team), team.size) == (2, 20)
    one = np.flatnonzero(np.isin(np.sort(left), deal.places[2]))
    assert len(team.region(one, posterior.belief(rows[:1]))) == 1


def test_core_sets_and_checks_name_rows_of_the_whole(case):
    team, belief, _ = case
    core = team.core_sets(3)
    assert len(core) == 12
    assert core.tolist() == sorted(set(core.tolist()))
    whole = Workers.of(
        Plain(), Scattered(Plain(), belief.at, 1), np.arange(57), posterior_of(), 2**30
    )
    assert whole.core_sets(3).tolist() == core_set(posterior_of().belief(belief.at), 3).tolist()
    picks = np.array([5, 11, 30])
    every = np.arange(3)
    some = belief.on(picks)
    chosen = Chosen(some, np.linalg.cholesky(some.information().block(every, every)))
    kernels = [part.prior.kernel for part in belief.parts]
    expected = check(kernels, belief, chosen, picks)
    found = team.check(picks, chosen)
    best = np.array([one.gains for one in found]).argmax(axis=0)
    assert [int(found[i].where[step]) for step, i in enumerate(best)] == expected.where.tolist()
    assert not set(picks) & {int(i) for one in found for i in one.where}


def test_what_all_need_is_sent_to_all_and_the_memory_is_shared(posterior):
    plain = Plain(workers=2)
    Workers.of(plain, Scattered(plain, uniform(60), 4), np.arange(60), posterior, 2**30)
    assert sum(bool(options.get("broadcast")) for options in plain.sent) == 1
    assert plain.tasks == ["of"] * 4
