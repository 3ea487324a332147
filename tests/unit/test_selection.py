import numpy as np

from covey.selection import Selection, distinct_maxima


def test_maxima_of_equal_draws_are_distinct():
    draws = np.tile([1.0, 3.0, 2.0], (3, 1))
    assert distinct_maxima(draws) == (1, 2, 0)
    assert draws[2].tolist() == [1.0, 3.0, 2.0]  # the draws themselves are left alone


def test_a_selection_says_nothing_it_does_not_know():
    bare = Selection((1, 2))
    assert (bare.width, bare.region, bare.sampler, bare.error) == (None, None, "", 0.0)
