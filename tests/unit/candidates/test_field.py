import numpy as np

import covey
from covey.candidates import Taken, field_of
from covey.candidates.field import among

SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def taken(points=(), seed=0, asked=0):
    return Taken(points, seed, asked)


def test_the_sobol_sequence_goes_on_where_it_stood():
    whole = field_of(SQUARE, {}, taken()).in_order(6).at
    rest = field_of(SQUARE, {}, taken(asked=2)).in_order(4).at
    np.testing.assert_allclose(rest, whole[2:])
    other = field_of(SQUARE, {}, taken(seed=1)).in_order(6).at
    assert not np.allclose(other, whole)


def test_what_is_taken_is_left_out():
    whole = field_of(SQUARE, {}, taken()).in_order(4).at
    rest = field_of(SQUARE, {}, taken(SQUARE.decode(whole[:2]))).in_order(4).at
    np.testing.assert_allclose(rest[:2], whole[2:4])


def test_rows_are_compared_up_to_rounding():
    at = np.array([[0.1, 0.2], [0.3, -0.0]])
    assert among(at, np.array([[0.3 + 1e-15, 0.0]])).tolist() == [False, True]
    assert among(at, at[:0]).tolist() == [False, False]
    assert among(at[:0], at).tolist() == []
