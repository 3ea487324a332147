"""Names with slashes and dicts in dicts are each other's inverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("ray", reason="pip install 'covey[ray]'")

from covey.errors import SpaceError
from covey.integrations.spaces.ray import nested, picked

keys = st.text("ab", min_size=1, max_size=2)
trees = st.dictionaries(
    keys,
    st.recursive(st.integers(), lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3)),
)


def flat(tree: dict, prefix: str = "") -> dict:
    """The obvious way."""
    out: dict = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {prefix + key: value}
    return out


@given(trees)
def test_nesting_undoes_flattening(tree):
    assert nested(flat(tree)) == tree
    assert picked(tree, flat(tree)) == flat(tree)


def test_a_value_that_is_a_dict_stays_one():
    assert nested({"a": {"b": 1}, "c/d": {"e": 2}}) == {"a": {"b": 1}, "c": {"d": {"e": 2}}}
    assert picked({"a": {"b": 1}}, ["a"]) == {"a": {"b": 1}}


@pytest.mark.parametrize("names", [["a", "a/b"], ["a/b", "a"], ["a/b/c", "a/b"], ["/a"], ["a/"]])
def test_a_name_that_is_no_path_is_refused(names):
    with pytest.raises(SpaceError, match="cannot become a path"):
        nested(dict.fromkeys(names, 0))


def test_a_value_is_not_entered():
    with pytest.raises(SpaceError, match="'a/b' cannot become a path"):
        nested({"a": {}, "a/b": 1})


def test_what_is_not_there_is_left_out():
    config = {"a": 1, "b": {"c": 2}, "e/f": 3, "g": None}
    assert picked(config, ["a", "b/c", "b/x", "a/y/z", "e/f", "g"]) == {
        "a": 1,
        "b/c": 2,
        "e/f": 3,
        "g": None,
    }
