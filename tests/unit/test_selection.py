import numpy as np
import pytest

from covey.errors import StrategyError
from covey.selection import Selection, checked_selection, distinct_maxima


def test_maxima_of_equal_draws_are_distinct():
    draws = np.tile([1.0, 3.0, 2.0], (3, 1))
    assert distinct_maxima(draws) == (1, 2, 0)
    assert draws[2].tolist() == [1.0, 3.0, 2.0]  # the draws themselves are left alone


def test_a_selection_says_nothing_it_does_not_know():
    bare = Selection((1, 2))
    assert (bare.width, bare.region, bare.sampler, bare.error) == (None, None, "", 0.0)


def test_plain_indices_will_do():
    assert checked_selection(np.array([2, 0]), 2, 3).indices == (2, 0)
    given = Selection((1,), width=2.0)
    assert checked_selection(given, 1, 3) is given


@pytest.mark.parametrize("wrong", [(0, 0), (0,), (0, 1, 2), (-1, 0), (0, 3)])
def test_what_is_not_k_distinct_candidates_is_refused(wrong):
    with pytest.raises(StrategyError, match="2 distinct indices from 0 to 2"):
        checked_selection(wrong, 2, 3)
