"""Where Optuna's trials are, in Covey's words."""

from __future__ import annotations

import json
import math

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)

from covey import Space
from covey.errors import SpaceError
from covey.integrations.optuna_batches import point_from_optuna
from covey.integrations.spaces.optuna import space_from_optuna
from covey.space import Choice


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
