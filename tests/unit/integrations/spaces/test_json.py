"""A space as text is the same space again, and a damaged text says what is wrong with it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import Integer, Linear, Pool, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces.json import space_from_json, space_to_json
from covey.space import Choice

floats = st.floats(-1e6, 1e6, allow_subnormal=False)
scalars = st.none() | st.booleans() | st.integers() | floats | st.text(max_size=5)


@st.composite
def reals(draw: st.DrawFn) -> Real:
    log = draw(st.booleans())
    low = draw(st.floats(1e-9, 1e3) if log else floats)
    return Real(low, low + draw(st.floats(1e-3, 1e6)), log=log)


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    log, step = draw(st.booleans()), draw(st.integers(1, 7))
    low = draw(st.integers(step, 50) if log else st.integers(-50, 50))
    return Integer(low, low + step * draw(st.integers(0, 20)), log=log, step=step)


def options(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(values, min_size=1, max_size=5, unique_by=lambda v: (type(v), v))


choices = st.builds(Choice, options(scalars), st.booleans())


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4, unique=True))
    parameters = {name: draw(reals() | integers() | choices) for name in names}
    numeric = [name for name, parameter in parameters.items() if parameter.numeric]
    where = []
    if numeric:
        weights = {name: draw(st.sampled_from([-2.5, 1.0, 3.0])) for name in numeric}
        lower = draw(st.sampled_from([float("-inf"), -7.25, 0.1]))
        upper = draw(st.sampled_from([10.0, 1e9] + [float("inf")] * (lower > -1e9)))
        where = draw(st.sampled_from([[], [Linear(weights, lower=lower, upper=upper)]]))
    return Space(parameters, where=where)


@given(spaces())
def test_a_space_survives_its_text(space):
    again = space_from_json(space_to_json(space))
    assert again == space
    assert again.fingerprint == space.fingerprint
    assert types_of(again) == types_of(space)  # 1, 1.0 and True stay what they were


def types_of(space: Space) -> list[list[type]]:
    found = [p for p in space.parameters.values() if isinstance(p, Choice)]
    return [[type(option) for option in choice.options] for choice in found]


def test_what_is_left_out_has_its_default():
    text = """{"kind": "space", "where": [],
               "parameters": [{"name": "x", "kind": "real", "low": 0, "high": 1}]}"""
    assert space_from_json(text) == Space({"x": Real(0, 1)})


def test_a_pool_survives_with_its_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("dose,dye\n1.0,red\n2.0,blue\n")
    pool = Pool(str(path), labels=["dye"])
    text = space_to_json(pool)
    assert space_from_json(text) == pool
    path.write_text("dose,dye\n1.0,red\n3.0,blue\n")
    with pytest.raises(SpaceError, match="content has changed"):
        space_from_json(text)


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (Space({"layers": Choice([(1, 2), 3])}), r"option \(1, 2\) of parameter 'layers'"),
        (Space({"x": Choice([float("nan"), 1.0])}), "option nan of parameter 'x'"),
        (Space({"x": Real(0, 1)}, where=[lambda p: p["x"] > 0.5]), "function of the point"),
        (Pool([{"x": 1.0}, {"x": 2.0}]), "rows in memory"),
        ({"x": Real(0, 1)}, "got dict"),
    ],
)
def test_what_text_cannot_hold_is_refused(space, said):
    with pytest.raises(SpaceError, match=said):
        space_to_json(space)


GOOD = json.loads(
    space_to_json(
        Space(
            {"x": Real(0, 1), "n": Integer(1, 4), "kind": Choice(["a", "b"])},
            where=[Linear({"x": 1, "n": 2}, upper=3)],
        )
    )
)


def changed(path: list, value: object) -> str:
    """The good description with one thing replaced; None removes it."""
    description = json.loads(json.dumps(GOOD))
    *above, leaf = path
    inner = description
    for key in above:
        inner = inner[key]
    if value is None:
        del inner[leaf]
    else:
        inner[leaf] = value
    return json.dumps(description)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("{'kind': 'space'}", "no JSON"),
        (json.dumps(GOOD)[:-20], "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1, 2]", "JSON object, got list"),
        ("null", "JSON object, got NoneType"),
        ("{}", "kind 'space' or 'pool', got None"),
        (changed(["kind"], "spice"), "got 'spice'"),
        (changed(["opaque"], True), "holds what a log cannot"),
        (changed(["parameters"], None), "damaged: KeyError 'parameters'"),
        (changed(["parameters"], {"x": 1}), "damaged"),
        (changed(["parameters"], []), "at least one parameter"),
        (changed(["parameters", 0], "x"), "damaged"),
        (changed(["parameters", 0, "kind"], "reel"), "damaged: KeyError 'reel'"),
        (changed(["parameters", 0, "low"], None), "damaged"),
        (changed(["parameters", 0, "low"], "0"), "finite number, got '0'"),
        (changed(["parameters", 0, "low"], float("nan")), "finite number, got nan"),
        (changed(["parameters", 0, "low"], 2), "low < high"),
        (changed(["parameters", 0, "lag"], True), "lag"),
        (
            changed(["parameters", 1, "log"], "yes"),
            "'log' in entry 1 of 'parameters' in the desc.* 'yes'",
        ),
        (
            changed(["parameters"], [GOOD["parameters"][i] for i in (0, 1, 0)]),
            "has 3 entries, of which 2 were understood",
        ),
        (changed(["parameters", 1, "high"], 4.5), "whole number, got 4.5"),
        (changed(["parameters", 2, "options"], "ab"), "must be a list"),
        (changed(["parameters", 2, "options"], ["a", "a"]), "both 'a'"),
        (changed(["parameters", 2, "ordered"], 1), "'ordered' in entry 2 of 'parameters'"),
        (changed(["where"], None), "damaged: KeyError 'where'"),
        (changed(["where", 0], 5), "damaged"),
        (changed(["where", 0, "weights"], {"z": 1}), "unknown parameter 'z'"),
        (changed(["where", 0, "upper"], None), "damaged"),
        (changed(["were"], []), "says 'were'"),
        (b"{}", "takes a text, got bytes"),
    ],
)
def test_a_damaged_text_says_what_is_wrong(text, said):
    with pytest.raises(SpaceError, match=said):
        space_from_json(text)


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_any_json_is_a_space_or_a_space_error(value):
    """With a few real fields, so that it gets past the front door."""
    for text in (
        value,
        {**GOOD, "parameters": value},
        {**GOOD, "where": value},
        {**GOOD, "parameters": [value]},
        {**GOOD, "where": [value]},
    ):
        try:
            space_from_json(json.dumps(text))
        except SpaceError:
            continue
        assert text in ({**GOOD, "where": []},)
