"""One pass over the items."""

from __future__ import annotations

import numpy as np
import pytest

from covey import arrays as chunks
from covey.dpp import greedy
from covey.dpp.kernel import adapt
from covey.errors import NumericsError
from covey.large import lazy_greedy as draft
from covey.large.lazy_greedy import EMPTY, check_guess

AT = np.random.default_rng(1).random((200, 2))
L = np.eye(200) + 50.0 * np.exp(-0.5 * ((AT[:, None] - AT) ** 2).sum(axis=2) / 0.2**2)
KERNEL = adapt(L)
EVERY = np.arange(200)


def given(picks):
    if len(picks) == 0:
        return L.diagonal().copy()
    return (L - L[:, picks] @ np.linalg.solve(L[np.ix_(picks, picks)], L[picks])).diagonal().copy()


@pytest.fixture(params=[1, 2**19], ids=["chunks", "whole"])
def guess(request, monkeypatch):
    """Five known picks and a guess of three more, made on every tenth item."""
    monkeypatch.setattr(chunks, "CACHE", request.param)
    known = draft.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=5, ahead=1)
    short = np.union1d(EVERY[::10], known.picks)
    return draft.guess_ahead(KERNEL, known, short, np.inf, count=8, ahead=3)


def test_a_pass_finds_what_greedy_takes_after_every_prefix(guess):
    found = check_guess(KERNEL, guess.picks, guess.factor, guess.gains[5:], EVERY)
    for t in range(4):
        left = given(guess.picks[: 5 + t])
        left[guess.picks[: 5 + t]] = 0.0
        assert found.winners[t] == np.argmax(left)
        assert found.gains[t] == pytest.approx(left.max())
        assert found.own[t] == pytest.approx(left.max())
    assert found.winners[0] == greedy.plain_picks(KERNEL, 6).picks[5]


def test_a_pass_tells_variances_and_how_near_each_item_came(guess):
    found = check_guess(KERNEL, guess.picks, guess.factor, guess.gains[5:], EVERY)
    np.testing.assert_allclose(found.before, given(guess.picks[:5]), atol=1e-9)
    np.testing.assert_allclose(
        np.delete(found.after, guess.picks), np.delete(given(guess.picks), guess.picks), atol=1e-9
    )
    assert (found.after[guess.picks] == -np.inf).all()
    shares = [given(guess.picks[: 5 + t]) / guess.gains[5 + t] for t in range(3)]
    others = np.delete(EVERY, guess.picks)
    np.testing.assert_allclose(found.scores[others], np.max(shares, axis=0)[others], atol=1e-9)


def test_only_the_items_asked_for_are_looked_at(guess):
    some = np.setdiff1d(EVERY, [int(np.argmax(given(guess.picks[:5])))])
    found = check_guess(KERNEL, guess.picks, guess.factor, guess.gains[5:], some)
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
