from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.conftest import uniform

from covey.cluster.apart import light
from covey.cluster.coreset import core_set
from covey.cluster.share import Share, packed, unpacked, work


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_masks_travel_and_arrive(mask):
    given = np.array(mask)
    assert unpacked(packed(given), len(given)).tolist() == mask


def test_a_share_is_about_the_rows_that_are_left(posterior):
    rows, left = uniform(40), np.arange(40) % 3 == 0
    share = Share.of(rows, packed(left), posterior, 2**30)
    belief = posterior.belief(rows[left])
    np.testing.assert_array_equal(share.belief.at, rows[left])
    for (mean, squares), part in zip(share.summary(), belief.parts, strict=True):
        np.testing.assert_allclose(mean, part.mean, rtol=1e-12)
        np.testing.assert_allclose(squares, part.explained.squares, rtol=1e-12)


def test_products_and_columns_are_those_of_v(posterior):
    rows = uniform(40)
    share = Share.of(rows, packed(np.ones(40, dtype=bool)), posterior, 2**30)
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
    share = Share.of(rows[:40], packed(np.ones(40, dtype=bool)), posterior, 2**30)
    head = light(posterior.belief(rows[40:]))
    for inside in (np.arange(40) < 40, np.arange(40) % 2 == 0):
        seen = posterior.belief(rows).after_looking_at([40], on=np.flatnonzero(inside))
        region = share.region(packed(inside), head)
        np.testing.assert_allclose(region.belief.var, seen.var, atol=1e-12)
        assert region.core_set(6).tolist() == core_set(seen, 6).tolist()


def test_a_share_can_be_moved(posterior):
    share = Share.of(uniform(20), packed(np.ones(20, dtype=bool)), posterior, 2**30)
    again = pickle.loads(pickle.dumps(share))
    np.testing.assert_array_equal(again.belief.var, share.belief.var)


def test_a_worker_calculates_on_one_thread():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    assert set(work(threads)) == {1}
