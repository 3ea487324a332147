from __future__ import annotations

import enum

import numpy as np
import pytest

from covey.errors import SpaceError, did_you_mean
from covey.space.names import (
    check_distinct,
    check_name,
    digest,
    is_finite,
    is_number,
    is_scalar,
    listed,
    missing,
    number,
    plain,
    unknown,
)


def test_many_names_are_cut_short():
    assert listed(range(12)).endswith("10, 11")
    assert listed(range(15)).endswith("11, ... (3 more)")


def test_the_nearest_name_is_suggested_whatever_its_case():
    assert did_you_mean("ADAM", ["sgd", "adam"]) == " Did you mean 'adam'?"
    assert did_you_mean("1", [1, 2]) == " Did you mean 1?"
    assert did_you_mean("zebra", ["sgd", "adam"]) == ""


def test_an_unknown_name_lists_the_known_ones():
    error = unknown("q", ["x", "yy"], "column", "the table")
    assert str(error) == "unknown column 'q'; the table has x, yy."


def test_a_missing_name_lists_what_is_needed():
    assert str(missing(["y"], ["x", "y"], "this pool")) == (
        "the point has no 'y'; a point of this pool needs x, y"
    )


@pytest.mark.parametrize("name", ["", 3, None])
def test_names_are_non_empty_strings(name):
    with pytest.raises(SpaceError, match=f"column.*got {name!r}"):
        check_name(name, "column")


def test_two_columns_of_one_name():
    check_distinct(["a", "b"], "the frame")
    with pytest.raises(SpaceError, match="'a'"):
        check_distinct(["a", "b", "a"], "the frame")


# Scalars: numbers, texts and their digests


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "python"),
    [(np.float64(0.5), 0.5), (np.int8(3), 3), (np.bool_(True), True), (np.str_("a"), "a")],
)
def test_numpy_scalars_become_python_ones(value, python):
    assert plain(value) == python
    assert type(plain(value)) is type(python)


def test_other_values_stay_what_they_are():
    day, items = np.datetime64("2024-01-01"), [1]
    assert plain(day) is day
    assert plain(items) is items


def test_booleans_are_no_numbers():
    assert is_number(1)
    assert is_number(1.0)
    assert not is_number(True)
    assert not is_number("1")


def test_a_finite_number_fits_a_float():
    assert is_finite(10**308)
    assert not is_finite(10**309)
    assert not is_finite(float("nan"))
    assert not is_finite(float("-inf"))


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "a"])
def test_json_scalars(value):
    assert is_scalar(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1], {}, Colour.RED, 1j])
def test_what_json_would_not_give_back_is_no_scalar(value):
    assert not is_scalar(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1", None, 10**309])
def test_number_says_what_it_wanted(value):
    with pytest.raises(SpaceError, match=r"low of a Real.*got "):
        number(value, "the low of a Real")


def test_number_has_one_zero():
    assert str(number(-0.0, "zero")) == "0.0"


def test_digest_ignores_the_order_of_keys_and_nothing_else():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 1.0})
    assert len(digest({})) == 64
