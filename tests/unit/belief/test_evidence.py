"""What observations weigh."""

from __future__ import annotations

import numpy as np

from covey.gp import Model, condition, observe
from covey.kernels import Matern52

KERNEL, NOISE, MEAN = Matern52((0.4, 0.5), 1.3), 0.05, 0.2


def test_evidence_explains_the_mean_and_factors_the_covariance():
    rng = np.random.default_rng(0)
    at, new = rng.random((8, 2)), rng.random((5, 2))
    data = observe(at, np.sin(5.0 * at).sum(axis=1), np.full(8, np.nan))
    belief = condition([Model(KERNEL, NOISE, MEAN)], data).belief(new)
    seen = belief.parts[0].evidence
    np.testing.assert_allclose(MEAN + KERNEL(new, seen.at) @ seen.weights, belief.mean)
    gram = KERNEL(seen.at, seen.at) + np.diag(seen.noise)
    np.testing.assert_allclose(seen.factor @ seen.factor.T, gram, atol=1e-12)
