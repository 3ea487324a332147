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
from tests.angle import Angle

import covey.integrations.spaces.ax
from covey import Integer, Linear, Mixture, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces.ax import space_from_ax, space_to_ax
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


@pytest.mark.parametrize(
    "space",
    [
        Space({"x": Real(0, 1), "r": Real(1e-3, 1, log=True)}),
        Space({"n": Integer(1, 8), "m": Integer(2, 64, log=True)}),
        Space({"c": Choice(["a", "b", "c"]), "o": Choice(["lo", "mid", "hi"], ordered=True)}),
        Space({"k": Choice([1, 2, 4], ordered=True), "w": Choice([0.1, 0.5, 0.7])}),
        Space({"x": Real(0, 1), "y": Real(0, 1)}, [Linear({"x": 1, "y": -2}, upper=0.5)]),
    ],
)
def test_there_and_back(space):
    assert space_from_ax(space_to_ax(space)) == space


def test_a_mixture_is_a_sum_there_and_no_more():
    two = {"x": Real(0, 1), "y": Real(0, 1)}
    again = space_from_ax(space_to_ax(Space(two, [Mixture(["x", "y"])])))
    assert again == Space(two, [Linear({"x": 1, "y": 1}, lower=1, upper=1)])
    for more in ({"parts": 2}, {"least": 0.1}, {"step": 0.1}):
        with pytest.raises(SpaceError, match="nothing of parts=, least= or step="):
            space_to_ax(Space(two, [Mixture(["x", "y"], **more)]))


def test_steps_are_digits_or_a_choice():
    tenths = Space({"p": Real(0.1, 0.4, step=0.1), "q": Real(-1, 1, step=1e-5)})
    assert space_from_ax(space_to_ax(tenths)) == tenths
    quarters = space_to_ax(Space({"p": Real(0, 1, step=0.25)}))
    assert space_from_ax(quarters) == Space({"p": Choice([0.0, 0.25, 0.5, 0.75, 1.0])})
    for parameter in (Real(0, 1, step=0.0005), Real(1, 9, step=0.5, log=True)):
        with pytest.raises(SpaceError, match=r"'p': Ax has floats in steps of 1, 0.1"):
            space_to_ax(Space({"p": parameter}))


def test_what_comes_back_as_something_else():
    steps = space_to_ax(Space({"n": Integer(2, 8, step=3), "one": Choice(["only"])}))
    assert steps.parameters["one"].value == "only"
    assert space_from_ax(steps) == Space({"n": Choice([2, 5, 8], ordered=True)})
    both = Space({"x": Real(0, 1), "y": Real(0, 1)}, [Linear({"x": 1, "y": 1}, 0.2, 0.9)])
    again = space_from_ax(space_to_ax(both))
    assert set(again.linear) == {
        Linear({"x": 1, "y": 1}, upper=0.9),
        Linear({"x": -1, "y": -1}, upper=-0.2),
    }


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (Space({"x": Real(0, 1)}, [lambda p: True]), "is a function"),
        (Space({"c": Choice(["a", 1])}), "'c': Ax takes options that are all str"),
        (Space({"c": Choice([(1, 2), (3, 4)])}), "all str"),
        (Space({"c": Choice([4, 1, 2], ordered=True)}), "orders numbers by size"),
        (Space({"n": Integer(2, 8, step=2, log=True)}), "in logs with a step"),
        ("x", "only a covey.Space"),
    ],
)
def test_what_ax_cannot_say_is_refused(space, reason):
    with pytest.raises(SpaceError, match=reason):
        space_to_ax(space)


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


def test_a_kind_of_ones_own_is_refused_by_name():
    with pytest.raises(SpaceError, match="'turn': Ax cannot express the kind 'angle'"):
        space_to_ax(Space({"turn": Angle()}))
