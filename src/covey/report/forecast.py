"""Forecast: what a posterior expects at some points, in the user's units, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array

if TYPE_CHECKING:
    from covey.belief import Belief
    from covey.gp import Posterior
    from covey.header import Recipe

HALF, MOST = 0.5, 0.9  # probability of the two intervals
_STEPS = {HALF: 0.6744897501960817, MOST: 1.6448536269514722}  # Φ⁻¹((1 + p)/2)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Mean and standard deviation, and the central intervals of 50 % and 90 %."""

    mean: float
    std: float
    half: tuple[float, float]
    most: tuple[float, float]


def forecasts(
    posterior: Posterior, recipe: Recipe, belief: Belief, noise: Array | float | None = None
) -> list[Forecast]:
    """What is expected of f, or of a measurement with variance ``noise`` in the belief's units.

    f is the mean of a measurement, as `Posterior.predict` has it, where outcomes were bent too.

    The intervals are quantiles of the belief carried through the bend of the outcome, so they need
    not be symmetric. Where hyper-parameters were sampled they are those of one Gaussian with the
    mixture's mean and variance (our choice).
    """
    std = belief.std if noise is None else np.sqrt(belief.var + noise)
    outcome = posterior.expected if noise is None else posterior.outcome
    mean, deviation = posterior.moments(belief.mean, std, of_f=noise is None)
    mean = recipe.sign * mean
    ends = {
        p: np.sort(
            recipe.sign
            * np.stack([outcome(belief.mean + side * step * std) for side in (-1.0, 1.0)]),
            axis=0,
        )
        for p, step in _STEPS.items()
    }
    return [
        Forecast(
            float(mean[i]),
            float(deviation[i]),
            _pair(ends[HALF], i),
            _pair(ends[MOST], i),
        )
        for i in range(len(mean))
    ]


def _pair(ends: Array, i: int) -> tuple[float, float]:
    return float(ends[0, i]), float(ends[1, i])
