from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import clumped, posterior_of, split, uniform
from covey import dpp
from covey.arrays import cholesky
from covey_dask.coreset import (
    Check,
    Chosen,
    after_looking_elsewhere,
    check,
    core_set,
    covariance,
    information,
    merge,
    stripped,
)


def kernels_of(posterior):
    return tuple(model.kernel for model in posterior.models)


def test_covariances_of_candidates_kept_apart_are_those_of_candidates_together(posterior):
    at = uniform(30)
    both, here, there = (posterior.belief(some) for some in (at, at[:20], at[20:]))
    for member, kernel in enumerate(kernels_of(posterior)):
        whole = both.parts[member].block(np.arange(5, 15), np.arange(20, 30))
        found = covariance(kernel, here, there, member, slice(5, 15))
        np.testing.assert_allclose(found, whole, atol=1e-12)


def test_so_are_entries_of_the_kernel(posterior):
    at = uniform(30)
    whole = posterior.belief(at).information().block(np.arange(20), np.arange(20, 30))
    here, there = posterior.belief(at[:20]), posterior.belief(at[20:])
    found = information(kernels_of(posterior), here, there, slice(0, 20))
    np.testing.assert_allclose(found, whole, atol=1e-10)


def test_a_look_elsewhere_is_a_look(posterior):
    at = uniform(30)
    seen = posterior.belief(at).after_looking_at([28, 29], on=np.arange(28))
    here, there = posterior.belief(at[:28]), posterior.belief(at[28:])
    found = after_looking_elsewhere(kernels_of(posterior), here, there)
    np.testing.assert_allclose(found.var, seen.var, atol=1e-12)
    columns = np.array([3, 9])
    np.testing.assert_allclose(
        found.information().columns(columns), seen.information().columns(columns), atol=1e-9
    )
    assert not np.allclose(here.var, seen.var, atol=1e-3)  # it makes a difference


def test_after_a_look_elsewhere_both_still_go_together(posterior):
    """Their rows of V are in one order: those of the data, then those of the look."""
    at, kernels = uniform(30), kernels_of(posterior)
    seen = posterior.belief(at).after_looking_at([0])
    here = after_looking_elsewhere(kernels, posterior.belief(at[10:]), posterior.belief(at[:1]))
    there = seen.on(np.arange(1, 10))
    whole = seen.information().block(np.arange(10, 30), np.arange(1, 10))
    np.testing.assert_allclose(information(kernels, here, there, slice(0, 20)), whole, atol=1e-9)


def test_what_travels_is_light(posterior):
    point = posterior.belief(uniform(1))
    assert len(pickle.dumps(stripped(point))) < len(pickle.dumps(point)) / 2
    np.testing.assert_array_equal(stripped(point).var, point.var)


K = 12
FACTOR = 0.98  # of greedy's log det on all rows, that its core-sets keep


def log_determinant_of_union(belief, parts, pick):
    union = np.sort(np.concatenate([part[pick(belief.on(part))] for part in parts]))
    return dpp.log_determinant(
        belief.information(), union[dpp.maximize(belief.on(union).information(), K)]
    )


def kept(at, parts, how, pick):
    """What share of greedy's log det the union of some rows of each part allows."""
    belief = posterior_of().belief(at)
    best = dpp.log_determinant(belief.information(), dpp.maximize(belief.information(), K))
    return log_determinant_of_union(belief, split(at, parts, how), pick) / best


def test_a_core_set_is_what_greedy_takes():
    belief = posterior_of().belief(uniform(100))
    assert core_set(belief, K).tolist() == sorted(dpp.maximize(belief.information(), K))
    assert core_set(belief, 100).tolist() == core_set(belief, 200).tolist() == list(range(100))


def test_of_one_part_the_core_set_gives_greedys_own_answer():
    assert kept(uniform(400), 1, "random", lambda part: core_set(part, K)) == pytest.approx(1.0)


@pytest.mark.parametrize("how", ["random", "sorted"])
@pytest.mark.parametrize("parts", [2, 4, 8])
@pytest.mark.parametrize("rows", [uniform, clumped])
def test_core_sets_keep_nearly_all(rows, parts, how):
    assert kept(rows(800), parts, how, lambda part: core_set(part, K)) > FACTOR


@pytest.mark.parametrize("how", ["random", "sorted"])
def test_as_many_random_rows_do_not(how):
    """The same check fails where a core-set is none: in a clump, few rows are not in the clump."""
    rng = np.random.default_rng(0)

    def pick(part):
        return rng.choice(len(part), K, replace=False)

    assert kept(clumped(800), 2, how, pick) < FACTOR


def compared(at, picks, rows):
    """A batch checked against some rows, and the same worked out from the whole kernel."""
    posterior = posterior_of(members=2)
    belief = posterior.belief(at)
    kernel = belief.information()
    every = np.arange(len(at))
    whole = kernel.block(every, every)
    chosen = Chosen(belief.on(picks), cholesky(whole[np.ix_(picks, picks)]))
    mine = np.flatnonzero(np.isin(rows, picks))
    kernels = tuple(model.kernel for model in posterior.models)
    found = check(kernels, posterior.belief(at[rows]), chosen, mine)
    left = np.empty((len(picks), len(rows)))
    for step in range(len(picks)):
        before = picks[:step]
        inner = np.linalg.solve(whole[np.ix_(before, before)], whole[np.ix_(before, rows)])
        left[step] = np.diag(whole)[rows] - np.einsum(
            "ij,ij->j", whole[np.ix_(before, rows)], inner
        )
    left[:, mine] = -np.inf
    return found, left


@given(st.integers(0, 10**6))
def test_a_check_finds_the_best_in_every_place(seed):
    rng = np.random.default_rng(seed)
    picks = rng.choice(60, 5, replace=False)
    rows = np.sort(rng.choice(60, 40, replace=False))
    found, left = compared(uniform(60, seed=seed), picks, rows)
    np.testing.assert_allclose(found.gains, left.max(axis=1), rtol=1e-8)
    assert found.where.tolist() == left.argmax(axis=1).tolist()


def test_chunks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    at, picks = uniform(300), rng.choice(300, 5, replace=False)
    whole, _ = compared(at, picks, np.arange(300))
    monkeypatch.setattr("covey_dask.coreset._ENTRIES", 5 * 64)
    parts, _ = compared(at, picks, np.arange(300))
    np.testing.assert_allclose(parts.gains, whole.gains, rtol=1e-12)
    assert parts.where.tolist() == whole.where.tolist()


def test_of_equals_the_first_is_named():
    at = uniform(80)
    at[70] = at[10]  # not a pool's rows, which are distinct; but nearly equal ones are common
    best, _ = compared(at[:70], np.array([3]), np.arange(70))
    twice = np.vstack([at[:70], at[best.where[0]]])
    found, _ = compared(twice, np.array([3]), np.arange(71))
    assert found.where.tolist() == best.where.tolist()


def test_where_all_are_in_the_batch_nothing_is_better():
    found, _ = compared(uniform(20), np.arange(4), np.arange(4))
    assert found.where.tolist() == [-1] * 4
    assert (found.gains == -np.inf).all()


K = 10


class Parts:
    """A crew whose parts are all here."""

    def __init__(self, posterior, at, parts, pick=core_set):
        self.parts, self.pick = parts, pick
        self.kernels = tuple(model.kernel for model in posterior.models)
        self.beliefs = [posterior.belief(at[part]) for part in parts]

    def core_sets(self, size):
        pairs = zip(self.parts, self.beliefs, strict=True)
        return np.sort(np.concatenate([part[self.pick(belief, size)] for part, belief in pairs]))

    def check(self, picks, chosen):
        found = []
        for part, belief in zip(self.parts, self.beliefs, strict=True):
            one = check(self.kernels, belief, chosen, np.flatnonzero(np.isin(part, picks)))
            found.append(Check(one.gains, np.where(one.where >= 0, part[one.where], -1)))
        return found


def first_rows(belief, size):
    """A poor core-set."""
    return np.arange(min(size, len(belief)))


def both(at, parts, pick=core_set, checks=16, members=1):
    posterior = posterior_of(members)
    belief = posterior.belief(at)
    greedy = dpp.maximize(belief.information(), K)
    return merge(belief, K, Parts(posterior, at, parts, pick), checks), greedy


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(["random", "sorted"]))
def test_the_merge_is_greedy_on_all_rows(seed, parts, how):
    at = uniform(120, seed=seed)
    found, greedy = both(at, split(at, parts, how), members=1 + seed % 2)
    assert found.picks.tolist() == greedy
    assert found.proven == K


@pytest.mark.parametrize("rows", [uniform, clumped])
def test_even_of_poor_core_sets_if_it_may_check_often_enough(rows):
    at = rows(400)
    parts = split(at, 3, "sorted")
    found, greedy = both(at, parts, first_rows, checks=K + 1)
    assert found.picks.tolist() == greedy
    assert 1 < found.checks <= K + 1
    poor, _ = both(at, parts, first_rows, checks=0)  # which does not come by itself
    assert poor.picks.tolist() != greedy


def test_a_check_proves_a_pick_more_at_the_least():
    at = clumped(400)
    parts = split(at, 3, "sorted")
    proven = []
    for checks in range(1, 6):
        found, greedy = both(at, parts, first_rows, checks=checks)
        assert found.picks[: found.proven].tolist() == greedy[: found.proven]
        assert found.checks <= checks
        proven.append(found.proven)
    assert all(later > earlier or later == K for earlier, later in pairwise(proven))


def test_without_a_check_nothing_is_proven():
    at = uniform(200)
    found, greedy = both(at, [np.arange(200)], checks=0)
    assert (found.proven, found.checks) == (0, 0)
    assert found.picks.tolist() == greedy  # of one part the core-set is enough


def test_one_check_tells_when_the_core_sets_were_good_enough():
    at = uniform(200)
    found, _ = both(at, [np.arange(200)])
    assert (found.proven, found.checks) == (K, 1)


def test_who_misses_what_is_better_is_found_out():
    """With a check that looks at one part only, the merge is not greedy: so the check matters."""

    class Blind(Parts):
        def check(self, picks, chosen):
            return super().check(picks, chosen)[:1]

    at = clumped(400)
    posterior = posterior_of()
    belief = posterior.belief(at)
    crew = Blind(posterior, at, split(at, 3, "sorted"), first_rows)
    found = merge(belief, K, crew, 16)
    assert found.picks.tolist() != dpp.maximize(belief.information(), K)


def test_ties_go_to_the_lowest_row_whichever_part_has_it():
    at = np.array([[x, y] for x in (0.0, 0.25, 0.5, 0.75, 1.0) for y in (0.0, 0.25, 0.75, 1.0)])
    posterior = posterior_of(d=2, m=1, pending=0)
    belief = posterior.belief(at)
    greedy = dpp.maximize(belief.information(), 6)
    for parts in ([np.arange(0, 20, 2), np.arange(1, 20, 2)], [np.arange(10, 20), np.arange(10)]):
        found = merge(belief, 6, Parts(posterior, at, parts), 16)
        assert found.picks.tolist() == greedy
