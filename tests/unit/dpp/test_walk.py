"""The down-up walk; its law is checked in tests/laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey.dpp import walk
from covey.dpp.greedy import Start, greedy_start
from covey.dpp.kernel import adapt
from covey.dpp.walk import Pace, Proposals, RoundResult, State


def smooth(n, noise=0.01):
    at = np.random.default_rng(0).random((n, 2))
    gap = ((at[:, None] - at) ** 2).sum(axis=2)
    return np.eye(n) + np.exp(-0.5 * gap / 0.2**2) / noise


class Counting:
    def __init__(self, matrix):
        self.matrix, self.diagonal, self.asked = matrix, matrix.diagonal(), 0

    def columns(self, indices):
        self.asked += len(indices)
        return self.matrix[:, indices]

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]


@pytest.mark.parametrize(("k", "steps"), [(4, 48), (9, 116)])
def test_the_number_of_steps_of_the_specification(k, steps):
    """N = k [log log 1/μ + log 1/(2ε²)], with μ the greedy guarantee at n = 1000."""
    log_inverse_mass = math.log(math.comb(1000, k)) + 2 * math.lgamma(k + 1)
    start = Start(np.arange(k), log_inverse_mass)
    assert walk.walk_steps(start, k, 0.01) == pytest.approx(steps, abs=1)


def test_enough_steps_are_enough_by_the_bound():
    for k in (2, 5, 30):
        for epsilon in (0.2, 0.01, 1e-6):
            start = Start(np.arange(k), 40.0)
            assert (
                walk.walk_error(start.log_inverse_mass, k, walk.walk_steps(start, k, epsilon))
                <= epsilon
            )


def test_a_cap_is_reported():
    kernel = adapt(smooth(30))
    free = walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=None)
    assert free.error == 0.01
    assert walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=free.steps).error == 0.01
    errors = [walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=s).error for s in (1, 10, 30)]
    assert 1.0 >= errors[0] > errors[1] > errors[2] > 0.01
    assert walk.prepare_walk(kernel, 4, epsilon=0.01, max_steps=10).steps == 10


def test_the_bound_does_not_exceed_one():
    assert walk.walk_error(50.0, 3, 1) == 1.0


@pytest.mark.parametrize("k", [2, 5, 29])
def test_a_draw_is_k_distinct_items(k):
    sampler = walk.prepare_walk(adapt(smooth(30)), k, epsilon=0.01, max_steps=200)
    drawn = sampler.draw(np.random.default_rng(0))
    assert drawn == sorted(set(drawn))
    assert len(drawn) == k


def test_a_draw_does_not_read_whole_columns():
    source = Counting(smooth(300, noise=1.0))
    sampler = walk.prepare_walk(adapt(source), 5, epsilon=0.01, max_steps=None)
    assert source.asked == 4  # greedy
    sampler.draw(np.random.default_rng(0))
    assert source.asked == 4


def test_large_sets_are_renewed_in_rounds():
    sampler = walk.prepare_walk(adapt(smooth(300)), 130, epsilon=0.01, max_steps=20)
    assert len(set(sampler.draw(np.random.default_rng(0)))) == 130


def test_a_pass_without_variance_keeps_the_old_item():
    kernel = adapt(np.ones((3, 3)))
    sampler = walk.Walk(kernel, np.cumsum(kernel.diagonal), np.array([0, 2]), 5, 1.0, ())
    assert sampler.draw(np.random.default_rng(0)) == [0, 2]


def test_proposals_grow_with_n_but_stay_below_it():
    assert sum(walk.blocks(10, 2)) == 64
    for n in (1000, 20_000, 1_000_000):
        assert 64 <= sum(walk.blocks(n, 9)) <= n / 2
        assert max(walk.blocks(n, 9)) <= 8192
        assert max(walk.blocks(n, 1000)) <= 2**24 // 8000


def test_a_smooth_kernel_without_noise_is_walked_by_passes():
    at = np.linspace(0.0, 1.0, 120)
    L = 1e-9 * np.eye(120) + np.exp(-0.5 * (np.subtract.outer(at, at) / 0.3) ** 2)
    sampler = walk.prepare_walk(adapt(L), 9, epsilon=0.01, max_steps=60)
    drawn = sampler.draw(np.random.default_rng(0))
    assert len(set(drawn)) == 9
    assert drawn != sorted(sampler.start.tolist())


def test_the_start_of_a_large_kernel_is_sought_among_few():
    source = Counting(smooth(300, noise=1.0))
    start = greedy_start(adapt(source), 5, large=100)
    sampler = walk.prepare_walk(adapt(source), 5, epsilon=0.01, max_steps=None, start=start)
    assert source.asked == 0  # greedy read blocks
    assert len(sampler.draw(np.random.default_rng(0))) == 5
    assert source.asked == 0


# The present set of a walk; that its steps are those of the walk is a law


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


def test_a_round_may_see_only_the_first_of_its_proposals():
    L = kernel(30)
    positions, some = np.array([0, 1, 2, 3, 1]), Proposals(np.arange(10, 25), np.zeros(15))
    here = State(adapt(L), np.arange(5), most=2)
    assert here.renew(positions, some) == RoundResult(2, 2)
    assert here.items.tolist() == [10, 11, 2, 3, 4]


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


# The size of the rounds of a walk


def test_a_round_has_proposals_for_all_its_positions():
    pace = Pace((4, 12, 48), most=32, k=9, n=1000)
    assert (pace.positions, pace.proposals, pace.anchored) == (32, 36, False)


def test_few_acceptances_make_fewer_positions_and_more_proposals():
    pace = Pace((4, 12, 48, 192), most=32, k=9, n=1000)
    pace.adjust(RoundResult(2, 36), 32, 1.0)
    assert (pace.positions, pace.proposals) == (5, 81)
    pace.adjust(RoundResult(0, 81), 5, 1.0)
    assert (pace.positions, pace.proposals) == (1, 88)


def test_proposals_stay_within_the_sizes_of_the_blocks():
    pace = Pace((4, 12), most=32, k=9, n=1000)
    assert pace.proposals == 12
    pace.adjust(RoundResult(1, 1), 32, 1.0)
    assert pace.proposals == 4


def test_a_pass_is_due_when_all_blocks_were_refused_in_a_row():
    pace = Pace((4, 12), most=1, k=9, n=1000)
    pace.adjust(RoundResult(0, 12), 1, 1.0)
    assert not pace.anchored
    pace.adjust(RoundResult(1, 12), 1, 1.0)
    pace.adjust(RoundResult(0, 12), 1, 1.0)
    assert not pace.anchored
    pace.adjust(RoundResult(0, 12), 1, 1.0)
    assert pace.anchored
    assert (pace.positions, pace.proposals) == (2, 8)


def test_without_blocks_every_round_is_a_pass():
    pace = Pace((), most=32, k=40, n=1000)
    for _ in range(3):
        assert (pace.anchored, pace.positions) == (True, 10)
        pace.adjust(RoundResult(10, 12), 10, 0.9)


def test_a_pass_that_does_not_suffice_is_followed_by_one_for_fewer_positions():
    pace = Pace((), most=32, k=40, n=1000)
    for positions in (10, 5, 2, 1, 1):
        assert pace.positions == positions
        pace.adjust(RoundResult(0, 40), positions, 1e-9)


def test_passes_go_on_only_while_they_bring_more_than_proposals():
    for share, again in ((1e-6, True), (0.5, False)):
        pace = Pace((2,), most=8, k=8, n=1000)
        pace.adjust(RoundResult(0, 2), 8, 1.0)
        pace.adjust(RoundResult(2, 3), 2, share)
        assert pace.anchored is again
