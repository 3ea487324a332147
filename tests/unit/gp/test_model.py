import json

import numpy as np
import pytest
from scipy.stats import gamma, lognorm

from covey.errors import StrategyError
from covey.gp import GP, PRIORS, Model
from covey.gp.model import Gamma, LogNormal, LogUniform
from covey.kernels import Matern52, SquaredExponential


@pytest.mark.parametrize("kernel", [Matern52((0.1, 0.7), 1.3), SquaredExponential((1 / 3,), 0.1)])
def test_a_model_survives_a_log_exactly(kernel):
    model = Model(kernel, noise=1e-6 / 3, mean=-0.1)
    assert Model.from_description(json.loads(json.dumps(model.describe()))) == model


@pytest.mark.parametrize(
    ("view", "told"),
    [("straight", (False, None)), ("warped", (True, None)), ("framed", (True, True))],
)
def test_a_log_says_which_view_was_taken(view, told):
    """``bent`` as always, so that logs of before are read, and others by the versions before."""
    model = Model(Matern52((0.4,), 1.0), 0.01, view=view)
    described = json.loads(json.dumps(model.describe()))
    assert (described["bent"], described.get("framed")) == told
    assert Model.from_description(described) == model


def test_a_gp_survives_a_log():
    gp = GP(kernel="squared-exponential", mean="zero", noise=0.1, samples=3, priors="paper")
    assert GP(**json.loads(json.dumps(gp.describe()))) == gp


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "rbf"}, r"GP.*squared-exponential.*'rbf'"),
        ({"mean": "linear"}, "got 'linear'"),
        ({"priors": "flat"}, "got 'flat'"),
        ({"noise": -1.0}, "standard deviation >= 0"),
        ({"noise": float("nan")}, "got nan"),
        ({"samples": -1}, "got -1"),
        ({"samples": 1.5}, "whole number"),
        ({"samples": True}, "got True"),
        ({"samples": 2**31}, "1000; got 2147483648"),
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


# Priors of the hyperparameters


T = np.array([-2.0, 0.1, 1.5])


@pytest.mark.parametrize("prior", [LogNormal(0.3, 1.2), Gamma(2.5, 5.0), LogUniform(0.0)])
def test_slope_is_the_derivative(prior):
    numeric = (prior.log_density(T + 1e-6)[0] - prior.log_density(T - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(prior.log_density(T)[1], numeric, rtol=1e-6)


def test_densities_are_those_of_scipy_up_to_a_constant():
    for prior, referee in (
        (LogNormal(0.3, 1.2), lognorm(s=1.2, scale=np.exp(0.3))),
        (Gamma(2.5, 5.0), gamma(2.5, scale=0.2)),
    ):
        difference = prior.log_density(T)[0] - (referee.logpdf(np.exp(T)) + T)  # dθ = θ dt
        np.testing.assert_allclose(difference, difference[0])


def test_length_scales_grow_with_dimension():
    starts = [np.exp(PRIORS["scaled"](d).length.start) for d in (1, 4, 16)]
    assert starts[1] / starts[0] == pytest.approx(2.0)
    assert starts[2] / starts[1] == pytest.approx(2.0)


def test_the_papers_priors():
    paper = PRIORS["paper"](6)
    assert paper.length == Gamma(2.5, 5.0)
    assert np.exp(paper.length.start) == pytest.approx(0.5)
