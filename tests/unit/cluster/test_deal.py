from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.conftest import Plain, uniform

from covey.cluster.deal import Deal, dealt
from covey.errors import StrategyError


@given(st.integers(1, 60), st.integers(1, 9))
def test_every_row_is_dealt_once(n, parts):
    made = dealt(n, parts)
    assert sorted(np.concatenate(made).tolist()) == list(range(n))
    assert len(made) == min(n, parts)
    sizes = [len(part) for part in made]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(part) > 0).all() for part in made)


def test_a_sorted_pool_is_shared_evenly():
    """A tenth of the rows, those that matter, must not lie with one worker."""
    for part in dealt(4000, 4):
        assert 60 < np.sum(part < 400) < 140


def test_rows_are_sent_once_and_in_turn():
    plain, rows = Plain(workers=2), uniform(30)
    deal = Deal(plain, rows, 3)
    assert plain.sent == []
    futures = deal.futures()
    assert [options["workers"] for options in plain.sent] == [
        ["worker-0"],
        ["worker-1"],
        ["worker-0"],
    ]
    for future, places in zip(futures, deal.places, strict=True):
        np.testing.assert_array_equal(future.value, rows[places])
    assert deal.futures() == futures
    assert len(plain.sent) == 3


def test_what_is_lost_is_sent_again_and_nothing_else():
    plain = Plain()
    deal = Deal(plain, uniform(30), 3)
    first = deal.futures()
    first[1].status = "cancelled"
    again = deal.futures()
    assert (again[0], again[2]) == (first[0], first[2])
    assert again[1] is not first[1]
    np.testing.assert_array_equal(again[1].value, first[1].value)


def test_what_was_forgotten_is_sent_anew():
    plain = Plain()
    deal = Deal(plain, uniform(30), 3)
    deal.futures()
    deal.forget()
    deal.futures()
    assert len(plain.sent) == 6


def test_without_workers_there_is_nobody_to_send_to():
    with pytest.raises(StrategyError, match="no workers"):
        Deal(Plain(workers=0), uniform(30), 3).futures()
