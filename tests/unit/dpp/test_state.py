"""The present set of a walk; that its steps are those of the walk is a law."""

from __future__ import annotations

import numpy as np
import pytest

from covey.dpp import walk as state
from covey.dpp.kernel import adapt
from covey.dpp.walk import Proposals, RoundResult, State


def kernel(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return np.eye(n) + root @ root.T


def variance(L, item, rest):
    rest = list(rest)
    return L[item, item] - L[item, rest] @ np.linalg.solve(L[np.ix_(rest, rest)], L[rest, item])


def one_by_one(L, items, positions, stream):
    """The same round from its definition."""
    items, used, steps = list(items), 0, 0
    for position in positions:
        while used < len(stream.items):
            new, bar = int(stream.items[used]), stream.bars[used]
            used += 1
            rest = [j for i, j in enumerate(items) if i != position]
            if new not in rest and bar < variance(L, new, rest):
                items[position] = new
                steps += 1
                break
        else:
            break
    return items, RoundResult(steps, used)


def stream(L, rng, size):
    items = rng.integers(len(L), size=size)
    return Proposals(items, rng.random(size) * L.diagonal()[items])


@pytest.mark.parametrize("size", [1, 10, 60])
@pytest.mark.parametrize("count", [1, 4, 12])
def test_a_round_is_its_steps_one_after_the_other(size, count):
    L, rng = kernel(40), np.random.default_rng(1)
    for _ in range(10):
        first = rng.permutation(40)[:8]
        positions, some = rng.integers(8, size=count), stream(L, rng, size)
        here = State(adapt(L), first)
        progress = here.renew(positions, some)
        assert (here.items.tolist(), progress) == one_by_one(L, first, positions, some)


def test_a_proposal_twice_in_the_stream_enters_once():
    here = State(adapt(np.eye(4)), np.array([0, 1]))
    progress = here.renew(np.array([0, 1]), Proposals(np.array([3, 3, 2]), np.zeros(3)))
    assert (here.items.tolist(), progress) == ([3, 2], RoundResult(2, 3))


def test_what_stays_is_never_proposed_into_the_set():
    here = State(adapt(np.eye(4)), np.array([0, 1, 2]))
    assert here.renew(np.array([0]), Proposals(np.array([1, 2]), np.full(2, -1.0))).steps == 0
    assert here.renew(np.array([0]), Proposals(np.array([0]), np.zeros(1))) == RoundResult(1, 1)
    assert here.items.tolist() == [0, 1, 2]


def test_a_round_may_see_only_the_first_of_its_proposals(monkeypatch):
    monkeypatch.setattr(state, "_MOST", 2)
    L, rng = kernel(30), np.random.default_rng(2)
    positions, some = np.array([0, 1, 2, 3, 1]), Proposals(np.arange(10, 25), np.zeros(15))
    here = State(adapt(L), np.arange(5))
    assert here.renew(positions, some) == RoundResult(2, 2)
    assert here.items.tolist() == [10, 11, 2, 3, 4]
    assert rng is not None


def test_the_kernel_of_the_set_does_not_drift():
    """From-scratch accuracy after many rounds: entries are read, never updated."""
    L, rng = kernel(60), np.random.default_rng(3)
    here = State(adapt(L), np.arange(20))
    for _ in range(60):
        here.renew(rng.integers(20, size=9), stream(L, rng, 25))
    assert len(set(here.items.tolist())) == 20
    assert (here._square == L[np.ix_(here.items, here.items)]).all()


def test_given_all_but_some_positions():
    L = kernel(9)
    found = State(adapt(L), np.array([4, 2, 7])).without(np.array([1]))
    assert found.items.tolist() == [4, 7]
    assert found.variances(np.array([5]))[0] == pytest.approx(variance(L, 5, [4, 7]))


def test_a_set_of_one_may_be_renewed_by_anything():
    here = State(adapt(np.diag([1.0, 2.0, 3.0])), np.array([0]))
    assert here.renew(np.array([0]), Proposals(np.array([2]), np.array([2.9]))) == RoundResult(1, 1)
    assert here.items.tolist() == [2]
