"""Greedy maximisation; its theorems are in tests/laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey.dpp import greedy, maximize
from covey.dpp.greedy import greedy_picks, greedy_start, is_large
from covey.dpp.kernel import adapt
from covey.errors import NumericsError


def test_picks_come_in_order_of_choice_with_their_gains():
    L = np.array([[4.0, 3.0, 0.0], [3.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    picks, gains, passes = greedy_picks(adapt(L), 3)
    assert picks.tolist() == [0, 2, 1]
    assert gains == pytest.approx([4.0, 1.0, 0.75])
    assert passes == 2


def test_ties_go_to_the_lowest_index():
    assert maximize(np.eye(5), 3) == [0, 1, 2]


def test_ties_are_not_decided_by_rounding():
    L = np.eye(4)
    L[2, 2] += 4e-16
    assert maximize(L, 2) == [0, 1]
    L[2, 2] += 1e-9
    assert maximize(L, 2) == [2, 0]


def test_only_the_diagonal_and_one_column_per_further_pick_are_read():
    class Counting:
        diagonal = np.full(6, 2.0)
        asked = 0

        def columns(self, indices):
            self.asked += len(indices)
            return np.eye(6)[:, indices] + 1.0

    kernel = Counting()
    assert maximize(kernel, 3) == [0, 1, 2]
    assert kernel.asked == 2


def test_a_rank_below_k_is_named():
    factor = np.random.default_rng(0).normal(size=(12, 5))
    assert len(maximize(factor @ factor.T, 5)) == 5
    with pytest.raises(
        NumericsError, match="cannot choose 8 points from a kernel of rank 5; use k <= 5"
    ):
        maximize(factor @ factor.T, 8)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_duplicates_are_not_chosen_twice_without_noise(scale):
    at = np.array([0.0, 0.0, 1.0, 1.0])
    L = scale * np.exp(-(np.subtract.outer(at, at) ** 2))
    assert maximize(L, 2) == [0, 2]
    with pytest.raises(NumericsError, match="rank 2"):
        maximize(L, 3)


def test_duplicates_may_be_chosen_twice_with_noise():
    assert sorted(maximize(np.eye(2) + 1e6 * np.ones((2, 2)), 2)) == [0, 1]


def test_a_zero_kernel_is_refused():
    with pytest.raises(NumericsError, match="zero everywhere"):
        maximize(np.zeros((3, 3)), 1)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(NumericsError, match="not positive semidefinite: item 1"):
        maximize(np.array([[1.0, 2.0], [2.0, 1.0]]), 2)


def test_diagonal_kernels_of_any_range():
    diagonal = 10.0 ** np.array([-9.0, 3.0, -6.0, 6.0, 0.0])
    assert maximize(np.diag(diagonal), 5) == [3, 1, 4, 2, 0]


class ByBlock:
    def __init__(self, n):
        self.diagonal = np.full(n, 2.0)

    def columns(self, cols):
        return self.block(np.arange(len(self.diagonal)), cols)

    def block(self, rows, cols):
        return 1.0 + np.equal.outer(rows, cols)


def test_large_is_a_matter_of_n_and_k_and_of_blocks():
    assert not is_large(adapt(ByBlock(1000)), 10)
    assert is_large(adapt(ByBlock(60_000)), 2)
    assert is_large(adapt(ByBlock(40_000)), 1000)
    assert not is_large(adapt(np.eye(3)), 2)


def test_a_large_kernel_is_read_in_few_passes():
    plain = greedy_picks(adapt(ByBlock(2000)), 7)
    found = greedy_picks(adapt(ByBlock(2000)), 7, large=1000)
    assert found.picks.tolist() == plain.picks.tolist()
    assert (plain.passes, found.passes) == (6, 0)  # all are on the short list
    assert maximize(ByBlock(2000), 7) == list(range(7))


# The start of a Markov chain; that its bound holds is a law


def test_the_start_is_the_greedy_maximum():
    assert greedy_start(adapt(np.diag([1.0, 3.0, 2.0])), 2).items.tolist() == [1, 2]


def test_the_bound_is_exact_where_all_sets_are_alike():
    greedy = greedy_start(adapt(5.0 * np.eye(9)), 3)
    assert greedy.log_inverse_mass == pytest.approx(math.log(84.0))


def test_the_guarantee_of_greedy_takes_over_where_the_trace_says_little():
    L = np.diag([1e9] + [1.0] * 8)
    L[1:, 1:] += 1e-3
    greedy = greedy_start(adapt(L), 3)
    assert greedy.log_inverse_mass == pytest.approx(math.log(84.0) + 2 * math.log(6.0))


class Blocks:
    def __init__(self, matrix):
        self.matrix, self.diagonal = matrix, matrix.diagonal()

    def columns(self, cols):
        return self.matrix[:, cols]

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]


def test_of_a_large_kernel_only_a_few_items_are_looked_at():
    diagonal = np.ones(100)
    diagonal[[13, 60]] = 3.0
    found = greedy_start(adapt(Blocks(np.diag(diagonal))), 2, large=50, few=10)
    assert found.items.tolist() == [13, 60]
    # Maclaurin: log C(100, 2) + 2 log 1.04 - 2 log 3.
    assert found.log_inverse_mass == pytest.approx(math.log(4950 * 1.04**2 / 9.0))


def test_few_items_of_too_low_a_rank_are_not_enough():
    diagonal = np.zeros(100)
    diagonal[[5, 6, 7]] = 1.0, 2.0, 3.0
    matrix = np.diag(diagonal)
    matrix[5:8, 5:8] += 1e-3
    matrix[0, 0] = 9.0
    found = greedy_start(adapt(Blocks(matrix)), 4, large=50, few=8)
    assert sorted(found.items.tolist()) == [0, 5, 6, 7]


def test_the_guarantee_is_not_claimed_for_a_start_among_few():
    L = np.diag([1e9] + [1.0] * 8)
    L[1:, 1:] += 1e-3
    whole = greedy_start(adapt(Blocks(L)), 3).log_inverse_mass
    assert greedy_start(adapt(Blocks(L)), 3, large=1).log_inverse_mass > whole


def test_a_kernel_kept_elsewhere_maximises_by_itself():
    class Elsewhere(Blocks):
        def maximize(self, k):
            return [2, 0][:k]

    assert maximize(Elsewhere(np.diag([1.0, 3.0, 2.0])), 2) == [2, 0]
    assert maximize(Blocks(np.diag([1.0, 3.0, 2.0])), 2) == [1, 2]
    with pytest.raises(NumericsError, match="4"):
        maximize(Elsewhere(np.diag([1.0, 3.0, 2.0])), 4)


# Very many items, by short lists


class Counting:
    """A kernel by blocks, which counts the entries it was asked for."""

    def __init__(self, matrix, counts=None):
        self.matrix, self.diagonal = matrix, matrix.diagonal().copy()
        self.counts = {"entries": 0} if counts is None else counts

    def columns(self, cols):
        return self.block(np.arange(len(self.matrix)), cols)

    def block(self, rows, cols):
        self.counts["entries"] += len(rows) * len(cols)
        return self.matrix[np.ix_(rows, cols)]

    def on(self, items):
        return Counting(self.matrix[np.ix_(items, items)], self.counts)


def smooth(n, length, noise=0.01):
    at = np.random.default_rng(0).random((n, 2))
    gap = ((at[:, None] - at) ** 2).sum(axis=2)
    return np.eye(n) + np.exp(-0.5 * gap / length**2) / noise


def by_lists(kernel, k):
    """Greedy with a short list of 4 k items."""
    return greedy.listed_picks(kernel, k, short=100, memory=1)


@pytest.mark.parametrize("length", [0.03, 0.2, 1.0])
def test_a_few_passes_find_what_plain_greedy_finds(length):
    kernel = Counting(smooth(2000, length))
    found = by_lists(adapt(kernel), 20)
    assert found.picks.tolist() == greedy.plain_picks(adapt(kernel.matrix), 20).picks.tolist()
    assert found.passes <= 15


def test_where_few_items_stand_out_no_pass_is_needed():
    matrix = np.eye(2000)
    matrix[np.arange(0, 2000, 50), np.arange(0, 2000, 50)] = 2.0
    kernel = Counting(matrix)
    found = by_lists(adapt(kernel), 30)
    assert found.picks.tolist() == list(range(0, 1500, 50))
    assert found.passes == 0
    assert kernel.counts["entries"] < 2000 * 3


def test_a_short_list_of_all_items_needs_no_pass():
    assert greedy.listed_picks(adapt(smooth(300, 0.1)), 12).passes == 0


def test_a_rank_below_k_is_named_by_lists_too():
    root = np.random.default_rng(0).normal(size=(400, 5))
    with pytest.raises(NumericsError, match="rank 5; use k <= 5"):
        by_lists(adapt(root @ root.T), 8)
    with pytest.raises(NumericsError, match="zero everywhere"):
        by_lists(adapt(np.zeros((400, 400))), 1)


def test_all_items_can_be_chosen_by_lists():
    found = by_lists(adapt(smooth(150, 0.3)), 150)
    assert sorted(found.picks.tolist()) == list(range(150))


def test_an_indefinite_kernel_is_refused_in_a_pass():
    matrix = np.eye(80)
    matrix[3, 77] = matrix[77, 3] = 2.0
    with pytest.raises(NumericsError, match="item 77"):
        greedy._left(adapt(matrix), np.array([3]), np.eye(1))
