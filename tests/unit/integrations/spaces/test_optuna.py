"""Optuna's distributions as spaces, and back."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)

from covey import Integer, Linear, Pool, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces.optuna import (
    point_from_optuna,
    space_from_optuna,
    space_to_optuna,
    suggest,
)
from covey.integrations.spaces.optuna_trials import space_from_trials
from covey.space import Choice


def test_a_conditional_space_is_suggested_and_found_again_in_the_trials():
    space = Space(
        {
            "model": Choice(["tree", "net", "line"]),
            "depth": Integer(1, 12, when={"model": "tree"}),
            "layers": Integer(1, 4, when={"model": "net"}),
            **{f"u{i}": Real(0, 1, when={"layers": list(range(i, 5))}) for i in (2, 3, 4)},
            "lr": Real(1e-5, 1, log=True, when={"model": ["net", "line"]}),
            "pruned": Choice([True, False], ordered=False, when={"model": "tree"}),
            "alpha": Real(0, 1, step=0.25, when={"pruned": True}),
        }
    )
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    points = []

    def objective(trial):
        points.append(suggest(trial, space))
        return 0.0

    study.optimize(objective, n_trials=80)
    assert all(space.check(point) == point for point in points)
    assert len({tuple(point) for point in points}) >= 7
    found = space_from_trials(study.trials)
    assert dict(found.parameters) == dict(space.parameters)
    with pytest.raises(SpaceError, match=r"'depth'.*suggest\(trial, space\)"):
        space_to_optuna(space)


def test_without_a_completed_trial_nothing_is_known():
    with pytest.raises(SpaceError, match="no trial is complete"):
        space_from_trials([])


SAME_BOTH_WAYS = {
    "float": FloatDistribution(-1.5, 2.0),
    "log": FloatDistribution(1e-6, 1.0, log=True),
    "step": FloatDistribution(-10.2, 10.2, step=0.1),
    "one float": FloatDistribution(2.5, 2.5, step=1.0),
    "int": IntDistribution(-3, 8),
    "int step": IntDistribution(0, 12, step=3),
    "int log": IntDistribution(1, 1024, log=True),
    "one int": IntDistribution(4, 4),
    "choice": CategoricalDistribution([None, True, "a", 2.5, 7]),
    "one choice": CategoricalDistribution(["only"]),
}


@pytest.mark.parametrize("name", SAME_BOTH_WAYS)
def test_there_and_back(name):
    distribution = SAME_BOTH_WAYS[name]
    space = space_from_optuna({name: distribution})
    assert space_to_optuna(space) == {name: distribution}
    assert space_from_optuna(space_to_optuna(space)) == space


def test_every_kind_becomes_what_it_says():
    assert space_from_optuna(SAME_BOTH_WAYS).parameters["log"] == Real(1e-6, 1.0, log=True)
    parameters = space_from_optuna(SAME_BOTH_WAYS).parameters
    assert parameters["int step"] == Integer(0, 12, step=3)
    assert parameters["choice"] == Choice([None, True, "a", 2.5, 7])
    assert isinstance(parameters["step"], Real)
    assert parameters["step"].size == 205


def test_a_float_of_one_value_without_a_step():
    space = space_from_optuna({"x": FloatDistribution(1.0, 1.0)})
    assert space == Space({"x": Choice([1.0], ordered=True)})


@given(
    low=st.integers(-500, 500),
    count=st.integers(2, 60),
    step=st.sampled_from([0.1, 0.25, 0.3, 0.05, 1.0, 7.0, 1e-3]),
)
def test_the_grid_is_optunas_own(low, count, step):
    """Each of our values lies on Optuna's grid, and each of Optuna's finds its own of ours."""
    high = round(low / 10 + (count - 1) * step, 6)  # Optuna warns of a high beside the grid
    distribution = FloatDistribution(low / 10, high, step=step)
    space = space_from_optuna({"x": distribution})
    options = space.parameters["x"].examples(count + 1)
    assert all(distribution._contains(option) for option in options)
    sampler = optuna.samplers.RandomSampler(seed=count)
    for _ in range(5):
        drawn = sampler.sample_independent(None, None, "x", distribution)
        point = point_from_optuna(space, {"x": drawn})
        assert point["x"] == pytest.approx(drawn, abs=1e-8 * step)
    assert len(options) == count


class Weibull(BaseDistribution):
    """A distribution that Optuna does not have."""

    def to_external_repr(self, param_value_in_internal_repr):
        return param_value_in_internal_repr

    def to_internal_repr(self, param_value_in_external_repr):
        return param_value_in_external_repr

    def single(self):
        return False

    def _contains(self, param_value_in_internal_repr):
        return True


@pytest.mark.parametrize(
    ("distribution", "reason"),
    [
        (FloatDistribution(0.0, 1.0, step=1e-16), "parameter 'x': a Real from 0.0 to 1.0 in steps"),
        (FloatDistribution(-math.inf, 1.0), "parameter 'x': the low of a Real must be a finite"),
        (FloatDistribution(1e-310, 1.0, log=True), "parameter 'x': Real with log=True needs low"),
        (IntDistribution(0, 2**52), "parameter 'x': Integer from 0 .* more values than float64"),
        (CategoricalDistribution([True, "a", 1]), "takes the choices True and 1 for one"),
        (CategoricalDistribution([math.nan, math.nan]), "takes the choices nan and nan for one"),
        (Weibull(), "parameter 'x': it must be a FloatDistribution.*got Weibull"),
        ("0 to 1", "parameter 'x': it must be a FloatDistribution.*got '0 to 1'"),
    ],
)
def test_what_cannot_be_a_parameter_says_why(distribution, reason):
    with pytest.raises(SpaceError, match=reason):
        space_from_optuna({"x": distribution})


@pytest.mark.parametrize("given", [FloatDistribution(0, 1), None, [("x", 1)]])
def test_only_a_dict_is_a_space(given):
    with pytest.raises(SpaceError, match="distributions are a dict such as"):
        space_from_optuna(given)


def test_an_empty_space_is_none():
    with pytest.raises(SpaceError, match="at least one parameter"):
        space_from_optuna({})


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        (Integer(2, 10, log=True, step=2), "no integers in logs with a step"),
        (Choice(["low", "mid", "high"], ordered=True), "no order of options"),
        (Choice([0.1, 1.0, 10.0], ordered=True), "no order of options"),
        (Choice([1, 2, 4], ordered=True), "no order of options"),
        (Choice([3, 2, 1], ordered=True), "no order of options"),
        (Choice([1, 2.0, 3], ordered=True), "no order of options"),
        (Choice([True, False], ordered=True), "no order of options"),
        (Choice([0.0, math.inf], ordered=True), "no order of options"),
        (Choice([(1, 2), (3, 4)]), r"stores choices that are None, bool.*got \(1, 2\)"),
        (Choice([1, 1.0]), "takes the choices 1 and 1.0 for one"),
    ],
)
def test_what_optuna_cannot_express_says_why(parameter, reason):
    with pytest.raises(SpaceError, match=f"parameter 'x': .*{reason}"):
        space_to_optuna(Space({"x": parameter}))


def test_ordered_ints_in_equal_steps_are_ints():
    space = Space({"x": Choice([2, 4, 6], ordered=True), "y": Choice([5], ordered=True)})
    assert space_to_optuna(space) == {
        "x": IntDistribution(2, 6, step=2),
        "y": IntDistribution(5, 5),
    }


def test_constraints_and_pools_are_refused():
    with pytest.raises(SpaceError, match=r"cannot hold constraints \(`where`\): x <= 0\.5"):
        space_to_optuna(Space({"x": Real(0, 1)}, where=[Linear({"x": 1}, upper=0.5)]))
    with pytest.raises(SpaceError, match=r"only a covey.Space has distributions; got Pool"):
        space_to_optuna(Pool([{"x": 1}, {"x": 2}]))


def test_without_optuna_the_error_says_what_to_install():
    code = "import sys; sys.modules['optuna'] = None; import covey.integrations.spaces.optuna"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: this needs optuna: pip install 'covey[optuna]'" in done.stderr


# Where Optuna's trials are, in Covey's words


def test_values_of_every_kind_are_read():
    distributions = {
        "float": FloatDistribution(1e-3, 1.0, log=True),
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "int": IntDistribution(0, 12, step=3),
        "choice": CategoricalDistribution([None, True, "a", 2.5]),
    }
    space = space_from_optuna(distributions)
    params = {"float": 0.5, "step": 0.1 + 0.2, "int": 9, "choice": True, "other": 1}
    assert point_from_optuna(space, params) == {"float": 0.5, "step": 0.3, "int": 9, "choice": True}


def test_a_float_of_one_value_is_read():
    space = space_from_optuna({"x": FloatDistribution(1.0, 1.0)})
    assert point_from_optuna(space, {"x": 1.0}) == {"x": 1.0}


@pytest.mark.parametrize("value", [0.25, -0.1, 1.1, math.inf, math.nan, "a", None])
def test_what_is_off_the_grid_is_no_point(value):
    space = space_from_optuna({"x": FloatDistribution(0.0, 1.0, step=0.1)})
    with pytest.raises(SpaceError, match="parameter 'x'"):
        point_from_optuna(space, {"x": value})


def test_uneven_options_are_not_taken_for_a_grid():
    space = Space({"x": Choice([0.1, 1.0, 10.0], ordered=True)})
    assert point_from_optuna(space, {"x": 10.0}) == {"x": 10.0}
    with pytest.raises(SpaceError, match=r"5\.05 is not an option"):
        point_from_optuna(space, {"x": 5.05})


def test_a_stored_nan_is_the_same_choice():
    distribution = CategoricalDistribution([math.nan, 1.0])
    stored = json_to_distribution(distribution_to_json(distribution))
    space = space_from_optuna({"x": distribution})
    point = point_from_optuna(space, {"x": stored.choices[0]})
    assert space.encode([point]).tolist() == [[1.0, 0.0]]
    assert json.dumps(space.to_json(point)) == '{"x": {"option": 0}}'


def test_a_missing_parameter_is_named():
    space = space_from_optuna({"x": FloatDistribution(0, 1), "y": IntDistribution(0, 3)})
    with pytest.raises(SpaceError, match="the point has no 'y'"):
        point_from_optuna(space, {"x": 0.5, "z": 3})
