from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from covey import Integer, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces.sklearn import space_from_sklearn
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


def test_a_list_of_dicts_is_a_space_with_branches():
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
    assert space_from_sklearn([{"C": [1, 2]}]) == space_from_sklearn({"C": [1, 2]})
