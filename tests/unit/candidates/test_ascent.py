import numpy as np
import pytest

import covey
from covey.candidates import Exclusions, ascend
from covey.gp import Model, condition, observe
from covey.kernels import Matern52

SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def excluded(points=(), seed=0, asked=0):
    return Exclusions(points, seed, asked)


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    x = rng.random((10, 2))
    data = observe(x, -np.square(x - 0.4).sum(axis=1), np.full(10, np.nan))
    return condition([Model(Matern52((0.5, 0.5)), 1e-4)], data)


def test_ascent_moves_only_what_is_free(posterior):
    starts = np.array([[0.9, 0.9], [0.1, 0.2]])
    climbed = ascend(posterior, starts, 0.0, np.array([True, False]))
    np.testing.assert_array_equal(climbed[:, 1], starts[:, 1])
    assert np.all(posterior.upper(climbed, 0.0)[0] >= posterior.upper(starts, 0.0)[0])
    assert ascend(posterior, starts, 0.0, np.array([False, False])) is starts
