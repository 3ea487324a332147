from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from covey import Integer, Linear, Pool, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces.sklearn import space_from_sklearn, space_to_sklearn
from covey.space import Choice


def one(distribution):
    return space_from_sklearn({"p": distribution}).parameters["p"]


@pytest.mark.parametrize(
    ("distribution", "parameter"),
    [
        (stats.uniform(0, 2), Real(0, 2)),
        (stats.uniform(loc=-1, scale=0.5), Real(-1, -0.5)),
        (stats.uniform(), Real(0, 1)),
        (stats.loguniform(1e-3, 1e2), Real(1e-3, 1e2, log=True)),
        (stats.reciprocal(a=1.0, b=2.0), Real(1.0, 2.0, log=True)),
        (stats.loguniform(1.0, 2.0, scale=3.0), Real(3.0, 6.0, log=True)),
        (stats.loguniform(1.0, 2.0, 0), Real(1.0, 2.0, log=True)),
        (stats.randint(1, 10), Integer(1, 9)),
        (stats.randint(0, 3, loc=5), Integer(5, 7)),
        (range(2, 9, 2), Integer(2, 8, step=2)),
        (range(8, 1, -2), Integer(2, 8, step=2)),
        (range(4, 5, 7), Integer(4, 4)),
        (["rbf", "poly"], Choice(["rbf", "poly"])),
        ([10, 0.1, 1], Choice([0.1, 1, 10], ordered=True)),
        (np.array([3, 1, 2]), Choice([1, 2, 3], ordered=True)),
        ([None, 5, 10], Choice([None, 5, 10])),
        ([True, False], Choice([True, False])),
        ([(50,), (50, 20)], Choice([(50,), (50, 20)])),
        ([1.0, math.inf], Choice([1.0, math.inf])),
        (Real(0, 1), Real(0, 1)),
    ],
)
def test_a_distribution_becomes_a_parameter(distribution, parameter):
    assert one(distribution) == parameter


@pytest.mark.parametrize(
    ("distribution", "reason"),
    [
        (stats.norm(0, 1), "norm is not uniform"),
        (stats.expon(scale=2), "expon is not uniform"),
        (stats.poisson(3), "poisson is not uniform"),
        (stats.uniform, "uniform without its arguments"),
        (stats.randint, "randint without its arguments"),
        (stats.loguniform(1, 2, loc=3), "loc=3"),
        (stats.loguniform(1, 2, 3), "loc=3"),
        (stats.uniform([0, 1], [1, 2]), "several parameters at once"),
        (stats.randint(0.5, 3), "whole ends"),
        (stats.uniform(0, 0), "finite number, got nan"),
        ("rbf", "'rbf' cannot be expressed"),
        ({"a", "b"}, "cannot be expressed"),
        (0.1, "cannot be expressed"),
        ([], "at least one option"),
        (range(0), "at least one option"),
        (["a", "a"], "options 0 and 1 of a Choice are both 'a'"),
        ([1, 2, 1], "give each option once"),
    ],
)
def test_what_cannot_be_expressed_names_the_parameter_and_the_reason(distribution, reason):
    with pytest.raises(SpaceError, match="parameter 'p'") as caught:
        one(distribution)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("distributions", "reason"),
    [
        ([{"p": [1]}, {"q": [1]}], "a name in all of them"),
        ([{"k": ["a"]}, {"k": ["a", "b"]}], "without a common option"),
        ([{"k": ["a"], "p": [1]}, {"k": ["b"], "p": [2]}], "'p' is not the same in all dicts"),
        ([], "param_distributions is a dict"),
        ([{"k": ["a"]}, 3], "param_distributions is a dict"),
        (None, "param_distributions is a dict"),
        ({}, "at least one parameter"),
    ],
)
def test_what_is_not_one_dict_is_refused(distributions, reason):
    with pytest.raises(SpaceError, match=reason):
        space_from_sklearn(distributions)


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (Space({"n": Integer(1, 9, log=True)}), "'n': no distribution draws integers evenly"),
        (Space({"x": Real(0, 1)}, where=[Linear({"x": 1}, upper=0.5)]), "x <= 0.5"),
        (Pool([{"x": 1}, {"x": 2}]), "got Pool"),
    ],
)
def test_what_distributions_cannot_hold_is_refused(space, reason):
    with pytest.raises(SpaceError, match=reason):
        space_to_sklearn(space)


ends = st.integers(-1000, 1000)
parameters = st.one_of(
    st.tuples(ends, st.integers(1, 1000)).map(lambda p: Real(p[0], p[0] + p[1])),
    st.tuples(st.floats(1e-6, 1.0), st.floats(1.5, 1e6)).map(lambda p: Real(*p, log=True)),
    st.tuples(ends, st.integers(0, 50), st.integers(1, 9)).map(
        lambda p: Integer(p[0], p[0] + p[1] * p[2], step=p[2] if p[1] else 1)
    ),
    st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True).map(Choice),
    st.lists(ends, min_size=1, max_size=4, unique=True).map(lambda v: Choice(sorted(v), True)),
)


@given(st.dictionaries(st.text("ab_", min_size=1, max_size=5), parameters, min_size=1, max_size=4))
def test_there_and_back_is_the_same_space(named):
    space = Space(named)
    back = space_from_sklearn(space_to_sklearn(space))
    assert back.names == space.names
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Real):
            assert back.parameters[name].span == pytest.approx(parameter.span, rel=1e-15)
            assert back.parameters[name].log == parameter.log
        else:
            assert back.parameters[name] == parameter


@pytest.mark.parametrize(
    "parameter",
    [Real(-1, 2), Real(0.01, 100, log=True), Integer(1, 5), Integer(2, 10, step=4)],
)
def test_what_is_drawn_is_uniform_in_the_encoding(parameter):
    drawn = space_to_sklearn(Space({"p": parameter}))["p"]
    rng = np.random.default_rng(0)
    if isinstance(drawn, range):
        values = [drawn[i] for i in rng.integers(len(drawn), size=3000)]
    else:
        values = list(drawn.rvs(3000, random_state=rng))
    bins = parameter.size or 10
    places = parameter.encode(values)[:, 0]
    counts = np.bincount(np.minimum(places * bins, bins - 1).astype(int), minlength=bins)
    assert stats.chisquare(counts).pvalue > 1e-3
    skewed = np.bincount(np.minimum(np.square(places) * bins, bins - 1).astype(int), minlength=bins)
    assert stats.chisquare(skewed).pvalue < 1e-3  # the check can fail


def test_random_search_takes_what_is_returned():
    selection = pytest.importorskip(
        "sklearn.model_selection", reason="pip install 'covey[sklearn]'"
    )
    space = Space({"x": Real(0, 1), "n": Integer(2, 8, step=2), "kind": Choice(["a", "b"])})
    drawn = selection.ParameterSampler(space_to_sklearn(space), 20, random_state=0)
    assert all(space.check(point) for point in drawn)


def test_a_list_of_dicts_is_a_space_with_branches_and_goes_back():
    rate = stats.loguniform(0.1, 10)
    space = space_from_sklearn(
        [
            {"kernel": ["linear"], "C": rate},
            {"kernel": ["rbf", "sigmoid"], "C": rate, "gamma": rate},
            {"kernel": ["poly"], "C": rate, "gamma": rate, "degree": [2, 3]},
        ]
    )
    assert space == Space(
        {
            "kernel": Choice(["linear", "rbf", "sigmoid", "poly"]),
            "C": Real(0.1, 10, log=True),
            "gamma": Real(0.1, 10, log=True, when={"kernel": ["rbf", "sigmoid", "poly"]}),
            "degree": Choice([2, 3], when={"kernel": "poly"}),
        }
    )
    back = space_to_sklearn(space)
    assert [branch["kernel"] for branch in back] == [["linear"], ["rbf", "sigmoid"], ["poly"]]
    assert list(back[0]) == ["kernel", "C"]
    assert space_from_sklearn(back) == space
    assert space_from_sklearn([{"C": [1, 2]}]) == space_from_sklearn({"C": [1, 2]})
