"""Few of very many items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.arrays import largest, spread

values = st.lists(st.integers(0, 5), min_size=1, max_size=20).map(lambda v: np.array(v, float))


@given(values, st.integers(1, 20))
def test_the_largest_are_the_largest_and_the_first_of_equals(values, count):
    order = np.lexsort([np.arange(len(values)), -values])
    assert sorted(largest(values, count).tolist()) == sorted(order[:count].tolist())


def test_rounding_does_not_decide_who_is_on_the_list():
    assert largest(np.array([1.0, 1.0, 1.0 + 1e-12]), 1).tolist() == [0]


def test_what_is_out_of_the_race_is_not_on_the_list():
    assert largest(np.array([-np.inf, 2.0, -np.inf]), 2).tolist() == [1]


@pytest.mark.parametrize("count", [1, 4, 10, 100])
def test_a_spread_list_holds_the_largest_and_reaches_everywhere(count):
    values = np.zeros(50)
    values[[7, 23]] = 1.0
    found = spread(values, count)
    assert found.tolist() == sorted(set(found.tolist()))
    assert 7 in found
    assert len(found) <= max(count, 1)
    if count >= 4:
        assert {0, 23, 49} <= set(found.tolist())
