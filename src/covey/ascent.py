"""Moves through the unit cube: gradient ascent in the columns that are free, and nearby steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Mask

if TYPE_CHECKING:
    from covey.gp import Posterior
    from covey.space.flat import Flat

Objective = Callable[[Array], tuple[Array, Array]]  # points (s, d) -> values, gradients


def ascend(
    posterior: Posterior,
    starts: Array,
    width: float,
    free: Mask,
    lowest: float = 0.0,
    flat: Flat | None = None,
) -> Array:
    """Maximise μ + width·σ from each start (m, d), in the free columns (d,) or (m, d) only.

    Where trials may fail, what is maximised is what it is above ``lowest`` times the probability of
    success, as strategies weigh it.
    """

    def bound(at: Array) -> tuple[Array, Array]:
        value, gradient = posterior.upper(at, width)
        if posterior.success is None:
            return value, gradient
        return posterior.success.climbed(value - lowest, gradient, at)

    return climb(bound, starts, free, flat)


def climb(objective: Objective, starts: Array, free: Mask, flat: Flat | None = None) -> Array:
    """Maximise an objective from each start (m, d) by L-BFGS-B, in the free columns only.

    These are (d,), or (m, d) if each start has its own. The starts are independent, so one run
    maximises the sum over them. Returns (m, d).
    """
    from scipy.optimize import minimize

    if not free.any() or len(starts) == 0:
        return starts
    if flat is not None:
        return flat.climb(objective, starts, free)
    free = np.broadcast_to(free, starts.shape)

    def loss(moved: Array) -> tuple[float, Array]:
        at = starts.copy()
        at[free] = moved
        value, gradient = objective(at)
        return -float(value.sum()), -gradient[free]

    first = starts[free]
    result = minimize(
        loss,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(first),
        options={"maxiter": 40},
    )
    climbed = starts.copy()
    climbed[free] = result.x
    return climbed


_LITTLE = 0.03  # of a step, in the columns that hardly move


def nearby_steps(count: int, width: int, rng: np.random.Generator) -> Array:
    """Gaussian steps (count, width): scales 10^-3 to 10^-0.5, in a random few of the columns.

    The other columns move a little too: if they stayed, a batch would repeat the very value that
    the best point has there.
    """
    scale = 10.0 ** rng.uniform(-3.0, -0.5, size=(count, 1))
    moved = rng.random((count, width)) < max(0.3, min(1.0, 3.0 / width))
    return np.where(moved, scale, _LITTLE * scale) * rng.standard_normal((count, width))
