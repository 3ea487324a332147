"""A guess of greedy picks on few items; that lazy greedy is greedy is a law."""

from __future__ import annotations

import numpy as np

from covey.dpp import greedy
from covey.dpp.kernel import adapt
from covey.large import lazy_greedy as draft
from covey.large.lazy_greedy import EMPTY

AT = np.random.default_rng(0).random((30, 2))
L = np.eye(30) + 50.0 * np.exp(-0.5 * ((AT[:, None] - AT) ** 2).sum(axis=2) / 0.3**2)
KERNEL = adapt(L)
EVERY = np.arange(30)


def factored(found):
    return np.linalg.cholesky(L[np.ix_(found.picks, found.picks)])


def test_on_all_items_a_draft_is_greedy_and_sure():
    found = draft.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=7, ahead=1)
    plain = greedy.plain_picks(KERNEL, 7)
    assert found.picks.tolist() == plain.picks.tolist()
    np.testing.assert_allclose(found.gains, plain.gains)
    assert found.sure == 7
    np.testing.assert_allclose(found.factor, factored(found), atol=1e-10)


def test_a_draft_goes_on_from_what_is_known():
    whole = draft.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=9, ahead=1)
    again = draft.guess_ahead(KERNEL, whole.head(4), EVERY, -np.inf, count=9, ahead=1)
    assert again.picks.tolist() == whole.picks.tolist()
    np.testing.assert_allclose(again.factor, whole.factor, atol=1e-10)


def test_picks_are_sure_only_above_the_bound_of_the_others():
    whole = draft.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=9, ahead=1)
    bound = float(whole.gains[2:4].mean())
    found = draft.guess_ahead(KERNEL, EMPTY, EVERY, bound, count=9, ahead=2)
    assert (found.sure, len(found.picks)) == (3, 5)


def test_a_draft_ends_where_its_items_have_no_variance_left():
    short = np.array([0, 3])
    found = draft.guess_ahead(adapt(np.ones((5, 5))), EMPTY, short, np.inf, count=4, ahead=4)
    assert found.picks.tolist() == [0]


def test_one_more_pick_extends_the_factor():
    known = draft.guess_ahead(KERNEL, EMPTY, EVERY, -np.inf, count=3, ahead=1)
    rest = L - L[:, known.picks] @ np.linalg.solve(
        factored(known) @ factored(known).T, L[known.picks]
    )
    found = known.plus(KERNEL, 11, rest[11, 11], rest[11, 11])
    assert found.picks.tolist() == [*known.picks, 11]
    assert found.sure == 4
    np.testing.assert_allclose(found.factor, factored(found), atol=1e-10)
