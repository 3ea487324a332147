from __future__ import annotations

import enum

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space.names import digest, is_finite, is_number, is_scalar, number, plain


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
    with pytest.raises(SpaceError, match="the low of a Real must be a finite number, got"):
        number(value, "the low of a Real")


def test_number_has_one_zero():
    assert str(number(-0.0, "zero")) == "0.0"


def test_digest_ignores_the_order_of_keys_and_nothing_else():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 1.0})
    assert len(digest({})) == 64
