"""ConfigSpace and Covey mean the same points, or say why they cannot."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from covey import Integer, Real, Study
from covey.errors import SpaceError
from covey.space import Choice

ConfigSpace = pytest.importorskip("ConfigSpace", reason="pip install 'covey[configspace]'")
from covey.integrations.spaces.configspace import space_from_configspace


def test_a_configspace_becomes_the_space_it_means():
    given = ConfigSpace.ConfigurationSpace(
        space=[
            ConfigSpace.UniformFloatHyperparameter("lr", 1e-4, 0.1, log=True),
            ConfigSpace.UniformIntegerHyperparameter("depth", 1, 8),
            ConfigSpace.CategoricalHyperparameter("kind", ["a", "b"], weights=[2.0, 2.0]),
            ConfigSpace.OrdinalHyperparameter("size", ["s", "m", "l"]),
            ConfigSpace.Constant("epochs", 10),
        ]
    )
    assert dict(space_from_configspace(given).parameters) == {
        "lr": Real(1e-4, 0.1, log=True),
        "depth": Integer(1, 8),
        "kind": Choice(["a", "b"]),
        "size": Choice(["s", "m", "l"], ordered=True),
        "epochs": Choice([10], ordered=False),
    }


def test_a_batch_is_made_of_configurations():
    given = ConfigSpace.ConfigurationSpace(
        {"lr": (0.1, 1.0), "depth": (1, 8), "kind": ["a", "b"], "epochs": 10}
    )
    for trial in Study(space_from_configspace(given), seed=0).ask(8):
        ConfigSpace.Configuration(given, values=dict(trial.point)).check_valid_configuration()


def forbidding() -> object:
    given = ConfigSpace.ConfigurationSpace({"n": (1, 6), "m": (1, 6), "kind": ["a", "b"]})
    given.add(
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenEqualsClause(given["kind"], "b"),
            ConfigSpace.ForbiddenInClause(given["n"], [1, 2, 3, 4]),
        ),
        ConfigSpace.ForbiddenGreaterThanRelation(given["n"], given["m"]),
    )
    return given


def test_forbidden_clauses_become_constraints():
    given = forbidding()
    space = space_from_configspace(given)
    allowed = {
        (n, m, kind)
        for n in range(1, 7)
        for m in range(1, 7)
        for kind in "ab"
        if not (kind == "b" and n <= 4) and not n > m
    }
    points = space.decode(space.grid(limit=100))
    assert {(p["n"], p["m"], p["kind"]) for p in points} == allowed
    for trial in Study(space, seed=0).ask(10):
        ConfigSpace.Configuration(given, values=dict(trial.point)).check_valid_configuration()
    with pytest.raises(SpaceError, match=r"breaks the constraint '.*n > m'"):
        space.check({"n": 5, "m": 2, "kind": "a"})


def test_constraints_are_told_apart_and_pickle():
    space = space_from_configspace(forbidding())
    assert pickle.loads(pickle.dumps(space)) == space
    other = forbidding()
    other.add(ConfigSpace.ForbiddenEqualsClause(other["n"], 6))
    assert space_from_configspace(other) != space
    assert space_from_configspace(other).fingerprint != space.fingerprint


def disjunction() -> object:
    given = ConfigSpace.ConfigurationSpace({"kind": ["svm", "tree"], "n": (1, 3), "C": (0.1, 1.0)})
    svm = ConfigSpace.EqualsCondition(given["C"], given["kind"], "svm")
    given.add(
        ConfigSpace.OrConjunction(svm, ConfigSpace.EqualsCondition(given["C"], given["n"], 2))
    )
    return given


def test_comparisons_become_the_values_that_they_allow():
    given = ConfigSpace.ConfigurationSpace({"n": (1, 4), "x": (0.0, 1.0), "y": (0.0, 1.0)})
    given.add(ConfigSpace.GreaterThanCondition(given["x"], given["n"], 2))
    given.add(ConfigSpace.NotEqualsCondition(given["y"], given["n"], 2))
    parameters = space_from_configspace(given).parameters
    assert parameters["x"] == Real(0, 1, when={"n": [3, 4]})
    assert parameters["y"] == Real(0, 1, when={"n": [1, 3, 4]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (disjunction(), "'C': its condition .* cannot be expressed"),
        ([ConfigSpace.NormalFloatHyperparameter("x", 0, 1, lower=-3, upper=3)], "'x': a NormalF"),
        ([ConfigSpace.NormalIntegerHyperparameter("x", 0, 1, lower=-3, upper=3)], "NormalInteger"),
        ([ConfigSpace.BetaFloatHyperparameter("x", 2, 2, lower=0, upper=1)], "BetaFloat"),
        ([ConfigSpace.BetaIntegerHyperparameter("x", 2, 2, lower=0, upper=9)], "BetaInteger"),
        ([ConfigSpace.CategoricalHyperparameter("x", [1, 2], weights=[1, 3])], "'x': its weights"),
        ([], "at least one parameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_covey_cannot_say_is_refused(given, said):
    if isinstance(given, list):
        given = ConfigSpace.ConfigurationSpace(space=given)
    with pytest.raises(SpaceError, match=said):
        space_from_configspace(given)


def test_a_dict_is_no_configspace():
    with pytest.raises(SpaceError, match="got dict"):
        space_from_configspace({"x": (0.0, 1.0)})


def test_without_configspace_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['ConfigSpace'] = None\n"
        "import covey.integrations.spaces.configspace"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "this needs ConfigSpace: pip install 'covey[configspace]'" in done.stderr


def test_conditions_are_those_of_configspace():
    """Its own check takes every point of the space, and the space every configuration."""
    there = ConfigSpace.ConfigurationSpace(
        {"model": ["tree", "net", "line"], "n": (1, 3), "depth": (1, 12), "rate": (1e-5, 1.0)},
        seed=0,
    )
    there.add(ConfigSpace.InCondition(there["rate"], there["model"], ["net", "line"]))
    there.add(
        ConfigSpace.AndConjunction(
            ConfigSpace.EqualsCondition(there["depth"], there["model"], "tree"),
            ConfigSpace.InCondition(there["depth"], there["n"], [2, 3]),
        )
    )
    space = space_from_configspace(there)
    assert space.parameters["depth"] == Integer(1, 12, when={"model": "tree", "n": [2, 3]})
    for configuration in there.sample_configuration(50):
        assert space.check(dict(configuration)) == dict(configuration)
    for point in space.decode(np.random.default_rng(0).random((50, space.width))):
        ConfigSpace.Configuration(there, values=point).check_valid_configuration()
