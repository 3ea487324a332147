from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.conftest import clumped, posterior_of, split, uniform

from covey import dpp
from covey.arrays import cholesky
from covey.cluster.coreset import Chosen, check, core_set

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
    monkeypatch.setattr("covey.cluster.coreset._ENTRIES", 5 * 64)
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
