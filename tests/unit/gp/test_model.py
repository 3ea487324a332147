import json

import pytest

from covey.errors import StrategyError
from covey.gp import GP, Model
from covey.kernels import Matern52, SquaredExponential


@pytest.mark.parametrize("kernel", [Matern52((0.1, 0.7), 1.3), SquaredExponential((1 / 3,), 0.1)])
def test_a_model_survives_a_log_exactly(kernel):
    model = Model(kernel, noise=1e-6 / 3, mean=-0.1)
    assert Model.from_description(json.loads(json.dumps(model.describe()))) == model


def test_a_gp_survives_a_log():
    gp = GP(kernel="squared-exponential", mean="zero", noise=0.1, samples=3, priors="paper")
    assert GP(**json.loads(json.dumps(gp.describe()))) == gp


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "rbf"}, "kernel of a GP is one of squared-exponential, matern52; got 'rbf'"),
        ({"mean": "linear"}, "got 'linear'"),
        ({"priors": "flat"}, "got 'flat'"),
        ({"noise": -1.0}, "standard deviation >= 0"),
        ({"noise": float("nan")}, "got nan"),
        ({"samples": -1}, "got -1"),
        ({"samples": 1.5}, "whole number"),
        ({"noise": "low"}, "got 'low'"),
    ],
)
def test_bad_settings_are_named(wrong, message):
    with pytest.raises(StrategyError, match=message):
        GP(**wrong)


def test_a_model_suits_the_process_and_the_width_it_was_fitted_for():
    model = Model(Matern52((0.5, 0.5)), 0.1)
    assert model.suits(GP(), 2)
    assert not model.suits(GP(), 3)
    assert not model.suits(GP(kernel="squared-exponential"), 2)
