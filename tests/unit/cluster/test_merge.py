from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.conftest import clumped, posterior_of, split, uniform

from covey import dpp
from covey.cluster.coreset import Check, check, core_set
from covey.cluster.merge import merge

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
