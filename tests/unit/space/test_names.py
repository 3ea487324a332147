from __future__ import annotations

import pytest

from covey.errors import SpaceError, did_you_mean
from covey.space.names import check_distinct, check_name, listed, missing, unknown


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
    with pytest.raises(SpaceError, match="column names must be non-empty strings, got"):
        check_name(name, "column")


def test_two_columns_of_one_name():
    check_distinct(["a", "b"], "the frame")
    with pytest.raises(SpaceError, match="the frame has two columns called 'a'; rename one"):
        check_distinct(["a", "b", "a"], "the frame")
