from __future__ import annotations

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space.table import OneHot, Scaled, as_column, fit_feature


def fit(name, column):
    return fit_feature(name, column, lambda row: f"row {row} (the first is row 0)")


def test_numbers_are_scaled_by_their_ends():
    feature = fit("t", as_column([20, 40, 30]))
    assert feature == Scaled(20.0, 40.0)
    np.testing.assert_array_equal(feature.encode([20, 30, 40, 60]), [[0], [0.5], [1], [2]])


def test_a_constant_is_in_the_middle_and_other_values_are_not():
    feature = fit("t", as_column([7, 7]))
    np.testing.assert_array_equal(feature.encode([7, 8]), [[0.5], [1.5]])


def test_text_and_booleans_are_one_hot_in_sorted_order():
    text = fit("s", as_column(["b", "a", "b"]))
    assert text == OneHot(("a", "b"))
    np.testing.assert_array_equal(text.encode(["b", "a"]), [[0, 1], [1, 0]])
    assert fit("b", as_column([True, False])) == OneHot((False, True))
    assert fit("b", as_column([True])).width == 1


def test_integers_beyond_int64_are_numbers():
    assert fit("n", as_column([2**70, 0])) == Scaled(0.0, 2.0**70)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("nan")], r"row 1 \(the first is row 0\) has nan in the input 't'.*fill it in"),
        ([float("-inf"), 1.0], r"row 0 .* has -inf in the input 't'"),
        ([1, 2, None], r"row 2 .* has nothing \(None\) in the input 't'.*labels=\['t'\]"),
        (["a", float("nan")], "row 1 .* has nan in the input 't'"),
        (["a", 1], "the input 't' holds int and str; .* all numbers, all text or all booleans"),
        ([1, 2, 3, "n/a", 3.5], "holds float and int and str; row 3 .* has 'n/a'"),
        (["a", None], "row 1 .* has nothing"),
        ([True, 1], "the input 't' holds bool and int"),
        ([[1], [2]], "the input 't' holds list"),
        ([10**400, 1], "the input 't' must be a finite number"),
        ([-1.7e308, 1.7e308], "the input 't' is too wide for float64"),
    ],
)
def test_an_input_that_cannot_be_seen(values, message):
    with pytest.raises(SpaceError, match=message):
        fit("t", as_column(values))


def test_one_word_among_numbers_is_a_mistake():
    numbers = [str(i) for i in range(9)]
    for odd in ("n/a", "20 C", "1_0"):
        with pytest.raises(SpaceError, match=rf"row 4 .* has {odd!r} in the input 't', where 9 of"):
            fit("t", as_column([*numbers[:4], odd, *numbers[4:]]))
    assert fit("t", as_column([*numbers[:8], "20 C"])).width == 9  # 8 of 9 is less than 9 in 10
    assert fit("t", as_column(numbers)).width == 9  # text, and meant so


def test_a_sign_for_missing_is_a_mistake_among_any_numbers():
    with pytest.raises(SpaceError, match=r"row 1 .* has 'N/A' .* where 1 of 3 cells are numbers"):
        fit("t", as_column(["1", "N/A", " - "]))
    assert fit("t", as_column(["a", "N/A", "-"])).width == 3


def test_text_of_too_many_values_is_not_an_input():
    names = [f"C{i}" for i in range(1001)]
    assert fit("id", as_column(names[1:])).width == 1000
    with pytest.raises(SpaceError, match=r"'id' has 1001 different texts, .* labels=\['id'\]"):
        fit("id", as_column(names))


def test_values_are_checked():
    number = Scaled(0.0, 1.0)
    assert [type(number.check(v)) for v in (3, 0.5, np.int8(1), np.float32(1))] == [
        int,
        float,
        int,
        float,
    ]
    for value in ("a", None, True, float("nan")):
        with pytest.raises(SpaceError, match="a numeric value must be a finite number"):
            number.check(value)


def test_an_unknown_category_is_an_error_with_the_nearest():
    text = OneHot(("acetone", "water"))
    assert text.check(np.str_("water")) == "water"
    with pytest.raises(SpaceError, match=r"'watre' is not in the pool; .* Did you mean 'water'\?"):
        text.check("watre")
    flags = OneHot((False, True))
    assert flags.check(np.bool_(True)) is True
    with pytest.raises(SpaceError, match="1 is not in the pool"):
        flags.check(1)
