"""Advice: predictions of f at given points, and the point to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from covey.arrays import Array
from covey.candidates import Exclusions, candidate_set
from covey.gp import Posterior
from covey.history import History, Trial
from covey.learn import Recipe
from covey.policies import weighed
from covey.space import Pool


class _Moments(NamedTuple):
    mean: Array  # (n,)
    std: Array  # (n,)


class Prediction(_Moments):
    """Mean and standard deviation of f at some points, in the user's units: a pair of arrays (n,).

    f(x) is the mean of a measurement at x, so ``mean`` is what measurements will average to, and
    ``std`` how well that average is known; a single measurement scatters more. This holds where
    outcomes were warped, too: there noise is symmetric in warped units, so skewed in the user's,
    and the mean is not the median.

    Attributes:
        success: the probability (n,) that a trial there does not fail; None while fewer than three
            have failed. It is no part of the pair, so that ``mean, std = study.predict(...)``.
    """

    success: Array | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A point to use, with the mean and standard deviation of f there; ``trial`` if it was told."""

    point: Mapping[str, Any]
    mean: float
    std: float
    trial: Trial | None = None


def predict(
    posterior: Posterior, recipe: Recipe, points: tuple[Mapping[str, Any], ...]
) -> Prediction:
    """Mean and standard deviation of f at the points, and the probability of success there."""
    belief = posterior.belief(recipe.space.encode(points))
    mean, std = posterior.moments(belief.mean, belief.std)
    made = Prediction(recipe.sign * mean, std)
    made.success = belief.weight
    return made


def recommend_told(posterior: Posterior, recipe: Recipe, history: History) -> Recommendation:
    """The told trial of best posterior mean; in a pool, one of its rows if any was told."""
    told = history.counted
    if isinstance(recipe.space, Pool):
        places = recipe.space.locate([trial.point for trial in told])
        told = tuple(t for t, place in zip(told, places, strict=True) if place >= 0) or told
    mean, std = posterior.predict(recipe.space.encode([trial.point for trial in told]))
    i = int(np.argmax(mean))
    return Recommendation(told[i].point, recipe.sign * float(mean[i]), float(std[i]), told[i])


def recommend_anywhere(posterior: Posterior, recipe: Recipe) -> Recommendation:
    """The point of best posterior mean in the whole space, observed or not.

    Where trials may fail, of best mean above the lowest times the probability of success.
    """
    nothing = Exclusions((), recipe.seed, 0)
    where = candidate_set(recipe.space, {}, nothing)
    candidates = where.promising(1, posterior, np.random.default_rng(recipe.seed))
    belief = posterior.belief(candidates.at)
    mean, std = posterior.moments(belief.mean, belief.std)
    i = int(np.argmax(weighed(mean, belief)))
    point = candidates.points([i])[0]
    return Recommendation(point, recipe.sign * float(mean[i]), float(std[i]))
