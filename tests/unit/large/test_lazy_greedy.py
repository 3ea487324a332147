"""Greedy on very many items; that it is greedy is a law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import arrays
from covey.arrays import first_largest
from covey.dpp import greedy
from covey.dpp.kernel import adapt
from covey.errors import NumericsError
from covey.large import lazy_greedy
from covey.large.lazy_greedy import EMPTY, RunningArgmax, check_guess, contenders


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


def lazily(kernel, k):
    """Lazy greedy with a short list of 4 k items."""
    return lazy_greedy.lazy_picks(kernel, k, short=100, memory=1)


@pytest.mark.parametrize("length", [0.03, 0.2, 1.0])
def test_a_few_passes_find_what_plain_greedy_finds(length):
    kernel = Counting(smooth(2000, length))
    found = lazily(adapt(kernel), 20)
    assert found.picks.tolist() == greedy.plain_picks(adapt(kernel.matrix), 20).picks.tolist()
    assert found.passes <= 10


def test_where_few_items_stand_out_no_pass_is_needed():
    matrix = np.eye(2000)
    matrix[np.arange(0, 2000, 50), np.arange(0, 2000, 50)] = 2.0
    kernel = Counting(matrix)
    found = lazily(adapt(kernel), 30)
    assert found.picks.tolist() == list(range(0, 1500, 50))
    assert found.passes == 0
    assert kernel.counts["entries"] < 2000 * 3


def test_a_short_list_of_all_items_needs_no_pass():
    assert lazy_greedy.lazy_picks(adapt(smooth(300, 0.1)), 12).passes == 0


def test_a_rank_below_k_is_named():
    root = np.random.default_rng(0).normal(size=(400, 5))
    with pytest.raises(NumericsError, match="kernel of rank 5; use k <= 5"):
        lazily(adapt(root @ root.T), 8)
    with pytest.raises(NumericsError, match="zero everywhere"):
        lazily(adapt(np.zeros((400, 400))), 1)


def test_all_items_can_be_chosen():
    found = lazily(adapt(smooth(150, 0.3)), 150)
    assert sorted(found.picks.tolist()) == list(range(150))


# A guess of greedy picks on few items


AT = np.random.default_rng(0).random((30, 2))
L = np.eye(30) + 50.0 * np.exp(-0.5 * ((AT[:, None] - AT) ** 2).sum(axis=2) / 0.3**2)
KERNEL = adapt(L)
EVERY = np.arange(30)


def factored(found):
    return np.linalg.cholesky(L[np.ix_(found.picks, found.picks)])


def test_on_all_items_a_draft_is_greedy_and_sure():
    found = lazy_greedy.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=7, ahead=1)
    plain = greedy.plain_picks(KERNEL, 7)
    assert found.picks.tolist() == plain.picks.tolist()
    np.testing.assert_allclose(found.gains, plain.gains)
    assert found.sure == 7
    np.testing.assert_allclose(found.factor, factored(found), atol=1e-10)


def test_a_draft_goes_on_from_what_is_known():
    whole = lazy_greedy.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=9, ahead=1)
    again = lazy_greedy.guess_ahead(KERNEL, whole.head(4), EVERY, -np.inf, count=9, ahead=1)
    assert again.picks.tolist() == whole.picks.tolist()
    np.testing.assert_allclose(again.factor, whole.factor, atol=1e-10)


def test_picks_are_sure_only_above_the_bound_of_the_others():
    whole = lazy_greedy.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=9, ahead=1)
    bound = float(whole.gains[2:4].mean())
    found = lazy_greedy.guess_ahead(KERNEL, EMPTY, EVERY, bound, count=9, ahead=2)
    assert (found.sure, len(found.picks)) == (3, 5)


def test_a_draft_ends_where_its_items_have_no_variance_left():
    short = np.array([0, 3])
    found = lazy_greedy.guess_ahead(adapt(np.ones((5, 5))), EMPTY, short, np.inf, count=4, ahead=4)
    assert found.picks.tolist() == [0]


def test_one_more_pick_extends_the_factor():
    known = lazy_greedy.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=3, ahead=1)
    rest = L - L[:, known.picks] @ np.linalg.solve(
        factored(known) @ factored(known).T, L[known.picks]
    )
    found = known.plus(KERNEL, 11, rest[11, 11], rest[11, 11])
    assert found.picks.tolist() == [*known.picks, 11]
    assert found.sure == 4
    np.testing.assert_allclose(found.factor, factored(found), atol=1e-10)


# One pass over the items


MANY_AT = np.random.default_rng(1).random((200, 2))
MANY_L = np.eye(200) + 50.0 * np.exp(
    -0.5 * ((MANY_AT[:, None] - MANY_AT) ** 2).sum(axis=2) / 0.2**2
)
MANY_KERNEL = adapt(MANY_L)
MANY = np.arange(200)


def left_after(picks):
    if len(picks) == 0:
        return MANY_L.diagonal().copy()
    return (
        (MANY_L - MANY_L[:, picks] @ np.linalg.solve(MANY_L[np.ix_(picks, picks)], MANY_L[picks]))
        .diagonal()
        .copy()
    )


@pytest.fixture(params=[1, 2**19], ids=["chunks", "whole"])
def guess(request, monkeypatch):
    """Five known picks and a guess of three more, made on every tenth item."""
    monkeypatch.setattr(arrays, "CACHE", request.param)
    known = lazy_greedy.guess_ahead(MANY_KERNEL, EMPTY, MANY, -np.inf, count=5, ahead=1)
    short = np.union1d(MANY[::10], known.picks)
    return lazy_greedy.guess_ahead(MANY_KERNEL, known, short, np.inf, count=8, ahead=3)


def test_a_pass_finds_what_greedy_takes_after_every_prefix(guess):
    found = check_guess(MANY_KERNEL, guess.picks, guess.factor, guess.gains[5:], MANY)
    for t in range(4):
        left = left_after(guess.picks[: 5 + t])
        left[guess.picks[: 5 + t]] = 0.0
        assert found.winners[t] == np.argmax(left)
        assert found.gains[t] == pytest.approx(left.max())
        assert found.own[t] == pytest.approx(left.max())
    assert found.winners[0] == greedy.plain_picks(MANY_KERNEL, 6).picks[5]


def test_a_pass_tells_variances_and_how_near_each_item_came(guess):
    found = check_guess(MANY_KERNEL, guess.picks, guess.factor, guess.gains[5:], MANY)
    np.testing.assert_allclose(found.before, left_after(guess.picks[:5]), atol=1e-9)
    np.testing.assert_allclose(
        np.delete(found.after, guess.picks),
        np.delete(left_after(guess.picks), guess.picks),
        atol=1e-9,
    )
    assert (found.after[guess.picks] == -np.inf).all()
    shares = [left_after(guess.picks[: 5 + t]) / guess.gains[5 + t] for t in range(3)]
    others = np.delete(MANY, guess.picks)
    np.testing.assert_allclose(found.scores[others], np.max(shares, axis=0)[others], atol=1e-9)


def test_only_the_items_asked_for_are_looked_at(guess):
    some = np.setdiff1d(MANY, [int(np.argmax(left_after(guess.picks[:5])))])
    found = check_guess(MANY_KERNEL, guess.picks, guess.factor, guess.gains[5:], some)
    assert found.winners[0] in some
    assert found.before.shape == (199,)


def test_where_nothing_is_left_nobody_wins():
    kernel = adapt(np.ones((70, 70)))
    found = check_guess(kernel, np.array([4]), np.array([[1.0]]), np.array([1.0]), np.arange(70))
    assert found.winners.tolist() == [0, -1]
    assert found.gains.tolist() == [1.0, -np.inf]


def test_an_indefinite_kernel_is_refused():
    matrix = np.eye(80)
    matrix[3, 77] = matrix[77, 3] = 2.0
    with pytest.raises(NumericsError, match="item 77"):
        check_guess(adapt(matrix), np.array([3]), np.eye(1), np.array([1.0]), np.arange(10, 80))


# The largest of rows that are seen in parts


# Steps of 4e-10: some neighbours are equal to a billionth, others are not.
rows = st.lists(st.lists(st.integers(0, 6), min_size=9, max_size=9), min_size=1, max_size=4).map(
    lambda r: 1.0 + 4e-10 * np.array(r)
)


@given(rows, st.integers(1, 9))
def test_seen_in_parts_the_first_of_the_largest_is_the_same(table, width):
    race = RunningArgmax(len(table))
    for low in range(0, 9, width):
        race.see(contenders(table[:, low : low + width]), low)
    for row, entries in enumerate(table):
        first = first_largest(entries)
        assert race.winner(row) == (first, entries[first])
        assert race.most[row] == entries.max()


def test_a_row_without_entries_has_no_winner():
    race = RunningArgmax(2)
    race.see(contenders(np.array([[-np.inf, -np.inf], [0.0, -1.0]])), 5)
    assert race.winner(0) == (-1, -np.inf)
    assert race.winner(1) == (5, 0.0)


def test_only_records_are_kept():
    race = RunningArgmax(1)
    for low in range(0, 1000, 100):
        race.see(contenders(np.ones((1, 100))), low)
    assert len(race._records[0][0]) == 1
    race.see(contenders(np.array([[3.0, 3.0 + 1e-10, 3.0 + 2e-10]])), 1000)
    assert race._records[0][0].tolist() == [1000, 1001, 1002]
    assert race.winner(0) == (1000, 3.0)
