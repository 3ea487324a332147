"""Gradient ascent on the model's upper bound."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, Mask
from covey.gp import Posterior


def ascend(posterior: Posterior, starts: Array, width: float, free: Mask) -> Array:
    """Climb μ + width·σ from each start (m, d) by L-BFGS-B, moving the free columns only.

    The starts are independent, so their sum is climbed at once.
    """
    from scipy.optimize import minimize

    if not free.any() or len(starts) == 0:
        return starts

    def loss(flat: Array) -> tuple[float, Array]:
        at = starts.copy()
        at[:, free] = flat.reshape(len(starts), -1)
        value, gradient = posterior.upper(at, width)
        return -float(value.sum()), -gradient[:, free].reshape(-1)

    first = starts[:, free].reshape(-1)
    result = minimize(
        loss,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(first),
        options={"maxiter": 40},
    )
    climbed = starts.copy()
    climbed[:, free] = np.reshape(result.x, (len(starts), -1))
    return climbed
