from __future__ import annotations

import pickle

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import Choice


class Awkward:
    """Refuses to be compared, and cannot be a key."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no")


def relu(x):
    return max(x, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "at least one option, got none"),
        ("adam", r"'adam'.*\['a', 'b'\]"),
        ({"a", "b"}, "must be a list"),
        ({"a": 1}, "must be a list"),
        (7, r"got 7.*\['a', 'b'\]"),
        (["a", "b", "a"], r"0 and 2.*'a'"),
        ([[1], [2], [2]], r"Choice.*\[2\]"),
        ([1, np.int64(1)], r"0 and 1 of a Choice.* 1;"),
    ],
)
def test_choice_refuses(options, message):
    with pytest.raises(SpaceError, match=message):
        Choice(options)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("adma", "'adma' is not an option; the options are 'adam', 'sgd'. Did you mean 'adam'?"),
        ("ADAM", "Did you mean 'adam'?"),
        (3, "3 is not an option; the options are 'adam', 'sgd'.$"),
        (["adam"], "is not an option"),
        (float("nan"), r"nan.*'adam'"),
    ],
)
def test_choice_names_the_nearest_option(value, message):
    with pytest.raises(SpaceError, match=message.replace("?", r"\?")):
        Choice(["adam", "sgd"]).check(value)


def test_a_number_in_quotes_finds_its_number():
    with pytest.raises(SpaceError, match=r"'32'.*32, 64.*32"):
        Choice([32, 64]).check("32")


def test_true_one_and_one_point_zero_are_three_options():
    choice = Choice([True, 1, 1.0, "1"])
    decoded = choice.decode(choice.encode([1.0, 1, True, "1"]))
    assert [type(option) for option in decoded] == [float, int, bool, str]
    with pytest.raises(SpaceError, match=r"False.*True"):
        choice.check(False)


def test_a_number_finds_the_only_equal_number():
    assert type(Choice([0.5, 1.0]).check(1)) is float
    assert type(Choice([1, 2]).check(2.0)) is int
    with pytest.raises(SpaceError, match=r"^True"):
        Choice([1, 2]).check(True)


def test_options_come_back_as_the_very_objects():
    options = [[64, 64], {"depth": 2}, np.arange(3), relu, None, Awkward(), Awkward(), (1, [2])]
    for ordered in (False, True):
        choice = Choice(options, ordered=ordered)
        decoded = choice.decode(choice.levels())
        assert all(a is b for a, b in zip(decoded, options, strict=True))
        assert all(choice.check(option) is option for option in options)


def test_equal_objects_find_their_option():
    choice = Choice([[64, 64], np.arange(3), (1, [2])])
    assert choice.index([64, 64]) == 0
    assert choice.index(np.arange(3)) == 1
    assert choice.index((1, [2])) == 2
    with pytest.raises(SpaceError, match="is not an option"):
        choice.index(np.arange(4))


def test_numpy_options_become_python_ones():
    choice = Choice(np.array([8, 16]))
    assert [type(option) for option in choice.options] == [int, int]
    assert choice.check(np.int32(16)) == 16


def test_unordered_options_are_one_hot():
    choice = Choice(["a", "b", "c"])
    assert (choice.width, choice.size) == (3, 3)
    np.testing.assert_array_equal(choice.encode(["c", "a"]), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(choice.snap(np.array([[0.2, 0.9, 0.8]])), [[0, 1, 0]])
    assert choice.decode(np.array([[0.2, 0.9, 0.8], [0.0, 0.0, 0.0]])) == ["b", "a"]


def test_ordered_options_sit_at_the_centres_of_their_bins():
    choice = Choice(["low", "mid", "high"], ordered=True)
    assert (choice.width, choice.size) == (1, 3)
    np.testing.assert_allclose(choice.encode(["mid"]), [[0.5]])
    assert choice.decode(np.array([[-1.0], [0.34], [1.0], [2.0]])) == ["low", "mid", "high", "high"]
    np.testing.assert_allclose(choice.snap(np.array([[0.99]])), [[5 / 6]])


def test_only_ordered_numbers_are_numeric():
    assert Choice([1, 2.5], ordered=True).numeric
    assert not Choice([1, 2.5], ordered=False).numeric
    assert not Choice([1, "a"], ordered=True).numeric
    assert not Choice([1, True], ordered=True).numeric
    assert not Choice([1, float("inf")], ordered=True).numeric


def test_ordered_numbers_know_their_span_and_neighbours():
    choice = Choice([16, 64, 32], ordered=True)
    assert choice.span == (16.0, 64.0)
    assert choice.decode(choice.nearest(np.array([40.0]))) == [32]
    np.testing.assert_array_equal(choice.numbers(choice.levels()), [16, 64, 32])


def test_json_holds_scalars_and_the_place_of_everything_else():
    choice = Choice(["a", [1, 2], float("inf")])
    assert [choice.to_json(option) for option in choice.options] == [
        "a",
        {"option": 1},
        {"option": 2},
    ]
    assert choice.from_json({"option": 1}) is choice.options[1]
    assert choice.from_json("a") == "a"


@pytest.mark.parametrize("value", [{"option": 3}, {"option": -1}, {"option": "0"}, {"place": 0}])
def test_json_that_names_no_option(value):
    with pytest.raises(SpaceError, match=r'\{"option": 0\}'):
        Choice(["a", [1], [2]]).from_json(value)


def test_description_outlines_what_json_cannot_hold():
    described = Choice([1, [2], relu, {3}, object()]).describe()
    assert described["options"] == [
        1,
        {"opaque": "[2]"},
        {"opaque": "relu"},
        {"opaque": "set"},
        {"opaque": "object"},
    ]
    assert described["kind"] == "choice"
    assert described["ordered"] is False


def test_equality_looks_at_types_and_order():
    assert Choice([1, 2]) == Choice((1, 2))
    assert hash(Choice([1, 2])) == hash(Choice((1, 2)))
    assert Choice([1, 2]) != Choice([True, 2])
    assert Choice([1, 2], ordered=True) != Choice([2, 1], ordered=True)
    assert Choice([1, 2]) == Choice([2, 1])  # numbers are ordered by size unless told otherwise
    assert Choice([1, 2], ordered=False) != Choice([1, 2], ordered=True)
    assert Choice([1, 2]) != Choice([1])
    assert Choice([1]) != 1
    assert Choice([np.arange(2)]) == Choice([np.arange(2)])


def test_choice_pickles_and_does_not_change():
    choice = Choice(["a", [1], relu], ordered=True)
    again = pickle.loads(pickle.dumps(choice))
    assert again == choice
    assert again.index([1]) == 1
    with pytest.raises(AttributeError):
        choice.options = ()
