"""What an Ax experiment tells: values, failures, and what is under way."""

from __future__ import annotations

import math

import pandas as pd
import pytest

pytest.importorskip("ax", reason="pip install 'covey[ax]'")

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    ParameterType,
    RangeParameter,
)
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace

from covey.errors import SpaceError, StrategyError
from covey.integrations.ax import PointConverter, history_of_experiment

# Ax calls methods, its own and of pandas, that are deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:add_tracking_metric is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame"),
]

FLOAT, INT = ParameterType.FLOAT, ParameterType.INT


def client(objective="-loss", **more):
    made = Client()
    made.configure_experiment(
        parameters=[RangeParameterConfig(name="x", bounds=(0.0, 1.0), parameter_type="float")]
    )
    made.configure_optimization(objective=objective, **more)
    return made


def history(made):
    experiment = made._experiment
    converter = PointConverter.of(experiment.search_space)
    return history_of_experiment(experiment, experiment.lookup_data(), converter)


def test_values_are_turned_to_be_maximised():
    made = client("-loss")
    made.complete_trial(made.attach_trial({"x": 0.25}), raw_data={"loss": (3.0, 0.5)})
    made.complete_trial(made.attach_trial({"x": 0.5}), raw_data={"loss": 4.0})
    assert [(t.point["x"], t.value, t.sem) for t in history(made).told] == [
        (0.25, -3.0, 0.5),
        (0.5, -4.0, None),
    ]


def test_a_weighted_objective_is_one_value():
    made = client("2*gain - cost")
    made.complete_trial(
        made.attach_trial({"x": 0.25}), raw_data={"gain": (1.0, 0.3), "cost": (5.0, 0.8)}
    )
    (trial,) = history(made).told
    assert trial.value == pytest.approx(-3.0)
    assert trial.sem == pytest.approx(math.hypot(0.6, 0.8))


def test_each_status_has_its_meaning():
    made = client()
    running, failed, abandoned, done, stopped, stale = (
        made.attach_trial({"x": x}) for x in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    )
    made.attach_data(running, raw_data={"loss": 9.0}, progression=1)  # not the end of it
    made.mark_trial_failed(failed)
    made.mark_trial_abandoned(abandoned)
    made.complete_trial(done, raw_data={"loss": 1.0})
    made.attach_data(stopped, raw_data={"loss": 2.0}, progression=3)
    made.mark_trial_early_stopped(stopped)
    made._experiment.trials[stale].mark_stale(unsafe=True)
    made._experiment.new_trial().add_arm(Arm({"x": 0.7}))  # a candidate
    found = {t.point["x"]: t.status for t in history(made).trials}
    assert found == {
        0.1: "pending",
        0.2: "failed",
        0.3: "failed",
        0.4: "told",
        0.5: "told",
        0.7: "pending",
    }
    assert history(made).rounds == history(made).asked_count == 6


def test_an_arm_outside_the_search_space_is_left_out():
    made = client()
    made.complete_trial(made.attach_trial({"x": 0.25}), raw_data={"loss": 3.0})
    made._experiment.new_trial().add_arm(Arm({"x": 7.0}))
    assert [t.point["x"] for t in history(made).trials] == [0.25]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_number_counts_as_failed(value):
    made = client()
    index = made.attach_trial({"x": 0.1})
    made.attach_data(index, raw_data={"loss": value})
    made._experiment.trials[index].mark_completed(unsafe=True)
    assert [t.status for t in history(made).trials] == ["failed"]


def test_arms_of_a_batch_are_trials_of_their_own():
    made = client()
    batch = made._experiment.new_batch_trial()
    batch.add_arms_and_weights([Arm({"x": 0.1}, name="a"), Arm({"x": 0.2}, name="b")])
    batch.mark_running(no_runner_required=True)
    batch.mark_arm_abandoned("b")
    batch.mark_completed()
    rows = {"trial_index": [0, 0], "arm_name": ["a", "b"], "mean": [1.0, 2.0], "sem": [0.0, 0.5]}
    names = {"metric_name": ["loss"] * 2, "metric_signature": ["loss"] * 2}
    made._experiment.attach_data(Data(df=pd.DataFrame(rows | names)))
    assert [(t.status, t.value, t.sem) for t in history(made).trials] == [
        ("told", -1.0, 0.0),
        ("failed", None, None),
    ]


@pytest.mark.parametrize(
    ("objective", "more", "reason"),
    [
        ("gain - 2 * loss, -cost", {}, "each is one metric, and here one is a sum"),
        ("gain", {"outcome_constraints": ["cost + size <= 3"]}, "a constraint is on one metric"),
    ],
)
def test_sums_of_metrics_are_refused_among_several(objective, more, reason):
    with pytest.raises(StrategyError, match=reason):
        history(client(objective, **more))


def test_an_experiment_without_an_objective_is_refused():
    made = client()
    made._experiment._optimization_config = None
    with pytest.raises(StrategyError, match="has no objective"):
        history(made)


def wide():
    x = RangeParameter("x", FLOAT, 0.0, 1.0)
    n = RangeParameter("n", INT, 1, 4)
    fine = RangeParameter("fine", FLOAT, 0.0, 1.0, digits=4)
    kind = ChoiceParameter("kind", INT, [1, 2, 4], is_ordered=True, sort_values=True)
    held = FixedParameter("held", ParameterType.STRING, "yes")
    twice = DerivedParameter("twice", FLOAT, expression_str="2.0 * x + 1.0")
    row = ParameterConstraint(inequality="x + fine <= 1")
    return PointConverter.of(SearchSpace([x, n, fine, kind, held, twice], [row]))


def test_a_point_comes_back_as_a_whole_parameterization():
    converter = wide()
    found = converter.parameters({"x": 0.25, "n": 3, "fine": 0.12345678, "kind": 4})
    assert found == {
        "x": 0.25,
        "n": 3,
        "fine": 0.1235,
        "kind": 4,
        "held": "yes",
        "twice": 1.5,
    }
    assert list(found) == list(converter.search_space.parameters)
    assert converter.point(found) == {"x": 0.25, "n": 3, "fine": 0.1235, "kind": 4}
    # Inside before the rounding to digits, outside after it.
    assert converter.parameters({"x": 0.49996, "n": 3, "fine": 0.50004, "kind": 4}) == found | {
        "x": 0.49996,
        "fine": 0.5,
        "twice": 1.99992,
    }
    assert converter.parameters({"x": 0.49994, "n": 3, "fine": 0.50006, "kind": 4}) is None


def test_parameterizations_are_read_as_ax_would():
    converter = wide()
    near = {"x": 1.0 + 1e-9, "n": 3.0, "fine": 0.0, "kind": 2, "held": "yes"}
    assert converter.point(near) == {"x": 1.0, "n": 3, "fine": 0.0, "kind": 2}
    for odd in ({"x": 1.5}, {"kind": 3}, {"n": None}):
        assert converter.point(near | odd) is None
    del near["n"]
    assert converter.point(near) is None
    converter.search_space.parameters["n"]._backfill_value = 2
    assert converter.point(near)["n"] == 2


def test_what_is_held():
    converter = wide()
    assert converter.held({"n": 2, "held": "yes"}) == {"n": 2}
    converter.search_space.disable_parameters({"kind": 4})
    assert converter.held({}) == {"kind": 4}
    with pytest.raises(SpaceError, match="fixes it to 'yes'; it cannot be 'no'"):
        converter.held({"held": "no"})
    with pytest.raises(SpaceError, match="nn"):
        converter.held({"nn": 2})
    with pytest.raises(SpaceError, match="outside"):
        converter.held({"n": 7})
