"""Advice: what the model expects, and which point it would use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from covey.arrays import Array
from covey.candidates import Taken, field_of
from covey.gp import Posterior, Recall
from covey.history import History, Trial
from covey.log.header import Recipe
from covey.propose import understand
from covey.space import Pool


class Prediction(NamedTuple):
    """Mean and standard deviation of f at some points, in the user's units.

    f(x) is the mean of a measurement at x, so that ``mean`` is what measurements will average to,
    and ``std`` how well that average is known; a single measurement scatters more. This holds where
    outcomes were bent, too: there noise is taken to be even after the bend, so skewed before it,
    and the mean is not the median.
    """

    mean: Array
    std: Array


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A point to use, with what the model expects there; ``trial`` if it was told."""

    point: Mapping[str, Any]
    mean: float
    std: float
    trial: Trial | None = None


class LastModel:
    """The model of a log, kept until the log grows: the same log gives the same model.

    Those who ask may use its ``recall``, which spares both what the other has done.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe, self.recall = recipe, Recall()
        self._kept: tuple[int, Posterior] | None = None

    def forget(self) -> None:
        """Hold nothing: the factor of many results is large, and the log is about to grow."""
        self._kept = None

    def of(self, history: History) -> Posterior:
        """The posterior after all that was told; what is open plays no part."""
        length = len(history.events)
        if self._kept is None or self._kept[0] != length:
            self._kept = None  # the factor of many results is not held twice
            rng = np.random.default_rng([self._recipe.seed, history.asked_count])
            posterior = understand(history, self._recipe, rng, waiting=False, recall=self.recall)
            self._kept = (length, posterior)
        return self._kept[1]


def predict(
    posterior: Posterior, recipe: Recipe, points: tuple[Mapping[str, Any], ...]
) -> Prediction:
    """What is expected of f at the points."""
    mean, std = posterior.predict(recipe.space.encode(points))
    return Prediction(recipe.sign * mean, std)


def recommend_told(posterior: Posterior, recipe: Recipe, history: History) -> Recommendation:
    """The told trial of best posterior mean; of a pool, one of its rows if any was told."""
    told = history.counted
    if isinstance(recipe.space, Pool):
        places = recipe.space.locate([trial.point for trial in told])
        told = tuple(t for t, place in zip(told, places, strict=True) if place >= 0) or told
    mean, std = posterior.predict(recipe.space.encode([trial.point for trial in told]))
    i = int(np.argmax(mean))
    return Recommendation(told[i].point, recipe.sign * float(mean[i]), float(std[i]), told[i])


def recommend_anywhere(posterior: Posterior, recipe: Recipe) -> Recommendation:
    """The point of best posterior mean in the whole space, seen before or not."""
    nothing = Taken((), recipe.seed, 0)
    where = field_of(recipe.space, {}, nothing)
    candidates = where.promising(1, posterior, np.random.default_rng(recipe.seed))
    mean, std = posterior.predict(candidates.at)
    i = int(np.argmax(mean))
    point = candidates.points([i])[0]
    return Recommendation(point, recipe.sign * float(mean[i]), float(std[i]))
