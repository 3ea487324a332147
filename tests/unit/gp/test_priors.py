import numpy as np
import pytest
from scipy.stats import gamma, lognorm

from covey.gp import PRIORS
from covey.gp.model import Gamma, LogNormal, LogUniform

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
