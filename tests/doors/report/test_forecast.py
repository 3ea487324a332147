import numpy as np
import pytest

from covey.gp import GP, Model, condition, observe
from covey.kernels import Matern52
from covey.learn import Recipe
from covey.report.predictions import forecasts
from covey.space import Real, Space

SPACE = Space({"x": Real(0.0, 1.0)})


def posterior_of(values, warped):
    at = np.linspace(0.0, 1.0, len(values))[:, None]
    data = observe(at, np.asarray(values), np.full(len(values), np.nan), warped=warped)
    return condition([Model(Matern52((0.3,), 1.0), 0.01)], data)


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("warped", [False, True])
def test_a_forecast_of_f_is_what_predict_says(goal, warped):
    posterior = posterior_of([1.0, 1.1, 1.3, 2.0, 9.0, 30.0], warped)
    at = np.array([[0.1], [0.93]])
    recipe = Recipe(SPACE, goal, GP(), 0)
    mean, std = posterior.predict(at)
    found = forecasts(posterior, recipe, posterior.belief(at))
    assert [f.mean for f in found] == pytest.approx(recipe.sign * mean)
    assert [f.std for f in found] == pytest.approx(std)


@pytest.mark.parametrize("warped", [False, True])
def test_the_bands_hold_their_share(warped):
    """Draws of a measurement fall inside as often as the band says; a wrong share would show."""
    posterior = posterior_of([1.0, 1.1, 1.3, 2.0, 9.0, 30.0], warped)
    belief = posterior.belief(np.array([[0.5]]))
    (found,) = forecasts(posterior, Recipe(SPACE, "min", GP(), 0), belief, 0.3)
    rng = np.random.default_rng(0)
    n = 20_000
    w = belief.mean + np.sqrt(belief.var + 0.3) * rng.standard_normal(n)
    draws = -posterior.outcome(w)
    for (low, high), band in ((found.half, 0.5), (found.most, 0.9)):
        inside = np.count_nonzero((low <= draws) & (draws <= high))
        assert _off(inside, n, band) < 4.0
        assert (
            _off(np.count_nonzero((low <= draws) & (draws <= high + 0.2 * found.std)), n, band)
            > 4.0
        )
    assert found.most[0] <= found.half[0] <= found.half[1] <= found.most[1]
    assert found.mean == pytest.approx(draws.mean(), rel=0.05)
    assert found.std == pytest.approx(draws.std(), rel=0.05)


def _off(count, n, p):
    """Distance from what is expected, in standard deviations of a binomial."""
    return abs(count - p * n) / np.sqrt(n * p * (1.0 - p))


def test_noise_widens():
    posterior = posterior_of([1.0, 2.0, 0.5], False)
    belief = posterior.belief(np.array([[0.25]]))
    recipe = Recipe(SPACE, "max", GP(), 0)
    (without,) = forecasts(posterior, recipe, belief)
    (with_noise,) = forecasts(posterior, recipe, belief, np.array([1.0]))
    assert with_noise.mean == without.mean
    scale = posterior.data.scale
    assert with_noise.std**2 == pytest.approx(without.std**2 + scale**2)
