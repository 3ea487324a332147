"""Who is first in rows that are seen in parts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from covey.arrays import first_largest
from covey.large.lazy_greedy import RunningArgmax, contenders

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
