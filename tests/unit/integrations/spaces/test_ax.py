"""Spaces to Ax and back."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

pytest.importorskip("ax", reason="pip install 'covey[ax]'")
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    ParameterType,
    RangeParameter,
)
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace

import covey.integrations.spaces.ax
from covey import Integer, Linear, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces.ax import space_from_ax
from covey.space import Choice

FLOAT, INT, STRING, BOOL = (
    ParameterType.FLOAT,
    ParameterType.INT,
    ParameterType.STRING,
    ParameterType.BOOL,
)


def one(parameter):
    return space_from_ax(SearchSpace([parameter])).parameters["p"]


def choice(values, kind, **more):
    return ChoiceParameter("p", kind, values, sort_values=kind.is_numeric, log_scale=False, **more)


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (RangeParameter("p", FLOAT, -1.0, 2.0), Real(-1, 2)),
        (RangeParameter("p", FLOAT, 1e-4, 1.0, log_scale=True), Real(1e-4, 1, log=True)),
        (RangeParameter("p", INT, 1, 9), Integer(1, 9)),
        (RangeParameter("p", INT, 1, 9, log_scale=True), Integer(1, 9, log=True)),
        (RangeParameter("p", FLOAT, 0.1, 0.4, digits=1), Real(0.1, 0.4, step=0.1)),
        (RangeParameter("p", FLOAT, 0.0, 1.0, digits=6), Real(0, 1, step=1e-6)),
        (RangeParameter("p", FLOAT, 0.1, 1.0, digits=1, log_scale=True), Real(0.1, 1, log=True)),
        (choice(["a", "b", "c"], STRING, is_ordered=False), Choice(["a", "b", "c"])),
        (
            choice(["low", "mid", "high"], STRING, is_ordered=True),
            Choice(["low", "mid", "high"], True),
        ),
        (choice([8, 2, 4], INT, is_ordered=True), Choice([2, 4, 8], ordered=True)),
        (choice([0.5, 0.1, 0.9], FLOAT, is_ordered=False), Choice([0.1, 0.5, 0.9], False)),
        (choice([False, True], BOOL, is_ordered=True), Choice([False, True], ordered=True)),
    ],
)
def test_what_ax_says_in_coveys_words(there, here):
    assert one(there) == here


def test_what_follows_from_the_rest_is_left_out():
    x = RangeParameter("x", FLOAT, 0.0, 1.0)
    held = FixedParameter("held", STRING, "yes")
    twice = DerivedParameter("twice", FLOAT, expression_str="2.0 * x")
    assert space_from_ax(SearchSpace([x, held, twice])) == Space({"x": Real(0, 1)})


def test_constraints_are_linear():
    names = [RangeParameter(n, FLOAT, 0.0, 1.0) for n in ("x", "y")]
    rows = [ParameterConstraint(inequality="x + 2*y <= 1.5"), ParameterConstraint("x >= y")]
    space = space_from_ax(SearchSpace(names, rows))
    assert space.linear == (
        Linear({"x": 1, "y": 2}, upper=1.5),
        Linear({"x": -1, "y": 1}, upper=0.0),
    )


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (RangeParameter("p", FLOAT, 0.1, 0.9, logit_scale=True), "'p': it is on a logit scale"),
        (RangeParameter("p", FLOAT, 0.0, 1.0, is_fidelity=True, target_value=1.0), "a fidelity"),
        (
            choice(["a", "b", "c"], STRING, is_ordered=False, is_task=True, target_value="a"),
            "a task",
        ),
    ],
)
def test_what_has_no_word_here_is_refused(there, reason):
    with pytest.raises(SpaceError, match=reason):
        one(there)


def test_conditions_are_refused_and_equalities_kept():
    x = RangeParameter("x", FLOAT, 0.0, 1.0)
    root = choice(["a", "b", "c"], STRING, is_ordered=False, dependents={"a": ["x"]})
    with pytest.raises(SpaceError, match="'p': other parameters depend on it"):
        space_from_ax(SearchSpace([root, x]))
    y = RangeParameter("y", FLOAT, 0.0, 1.0)
    row = ParameterConstraint(equality="x + y == 1")
    found = space_from_ax(SearchSpace([x, y], [row]))
    assert found.linear == (Linear({"x": 1, "y": 1}, lower=1, upper=1),)
    with pytest.raises(SpaceError, match="got list"):
        space_from_ax([x])
    with pytest.raises(SpaceError, match="every parameter is fixed"):
        space_from_ax(SearchSpace([FixedParameter("p", STRING, "a")]))


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(covey.integrations.spaces.ax).failed == 0


def test_without_ax_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['ax'] = None\n"
        "try: import covey.integrations.spaces.ax\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("this needs ax-platform: pip install 'covey[ax]'")
