"""What a strategy returns: k distinct candidates, checked."""

import numpy as np
import pytest

from covey.errors import StrategyError
from covey.selection import Selection, checked_selection, distinct_maxima


def test_maxima_of_equal_draws_are_distinct():
    draws = np.tile([1.0, 3.0, 2.0], (3, 1))
    assert distinct_maxima(draws) == (1, 2, 0)
    assert draws[2].tolist() == [1.0, 3.0, 2.0]  # the draws themselves are left alone


def test_plain_indices_will_do():
    assert checked_selection(np.array([2, 0]), 2, 3).indices == (2, 0)
    given = Selection((1,), width=2.0)
    assert checked_selection(given, 1, 3) is given


@pytest.mark.parametrize("wrong", [(0, 0), (0,), (0, 1, 2), (-1, 0), (0, 3)])
def test_what_is_not_k_distinct_candidates_is_refused(wrong):
    with pytest.raises(StrategyError, match="2 distinct indices from 0 to 2"):
        checked_selection(wrong, 2, 3)


def test_a_strategy_that_returns_floats_is_told_so_in_a_line():
    scores = np.linspace(0.0, 1.0, 3235)
    with pytest.raises(StrategyError, match="whole numbers") as error:
        checked_selection(scores, 3, 3235)
    assert len(str(error.value)) < 300
    with pytest.raises(StrategyError, match=r"whole numbers.*0\.25"):
        checked_selection([0.25, 0.5], 2, 9)  # as many as were wanted, and cut off they would fit
    with pytest.raises(StrategyError, match="it returned nan"):
        checked_selection([np.nan, 1.0], 2, 9)
    with pytest.raises(StrategyError, match="it chose 3235") as error:
        checked_selection(range(3235), 3, 9999)
    assert len(str(error.value)) < 300
    assert checked_selection(np.array([2.0, 0.0]), 2, 3).indices == (2, 0)
