"""Hindsight: what the model expected of each trial when it was asked for, from the log alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from covey.arrays import Array
from covey.gp import Model, Posterior, Warp, condition
from covey.header import Recipe
from covey.history import Asked, History, Trial
from covey.propose import observations
from covey.report.forecast import Forecast, forecasts
from covey.report.lots import Lot

MOST_TOLD = 3000  # results; a report does no work on more, which takes minutes (our choice)


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What was expected of one measurement, noise included, before it was made.

    ``chance`` is the probability that f there is better than at any point told by then.
    """

    forecast: Forecast
    chance: float


def look_back(history: History, recipe: Recipe, lots: Iterable[Lot]) -> dict[int, Hindsight]:
    """Hindsight on the trials of these lots, by their ids; those without a model are left out.

    So are lots asked for after more than 3000 results.

    For each lot the log is read up to its event, and the hyper-parameters written there are
    conditioned on what had been told by then, not fitted again. Trials that were open at the time
    are left out of the covariance too: a band shrunk by values not known is none. Cost n³/3 for
    each lot and model, n the results told before it.
    """
    wanted = {lot.place: lot for lot in lots if lot.modelled}
    found: dict[int, Hindsight] = {}
    then = History()
    for place, event in enumerate(history.events[: max(wanted, default=-1) + 1]):
        known = len(then.told) if place in wanted else 0
        if isinstance(event, Asked) and 0 < known <= MOST_TOLD:
            models = [Model.from_description(model) for model in event.models or ()]
            bent = models[0].bent
            posterior = condition(models, observations(then, recipe, bent=bent))
            trials = [history.trial(i) for i in wanted[place].ids]
            found |= dict(zip(wanted[place].ids, _expected(posterior, recipe, trials), strict=True))
        then = then.then(event)
    return found


def _expected(posterior: Posterior, recipe: Recipe, trials: list[Trial]) -> list[Hindsight]:
    belief = posterior.belief(recipe.space.encode([trial.point for trial in trials]))
    target = float(posterior.belief(posterior.data.at).mean.max())
    chances = [
        0.5 * math.erfc((target - mean) / (std * math.sqrt(2.0)))
        for mean, std in zip(belief.mean.tolist(), belief.std.tolist(), strict=True)
    ]
    noise = _noise(posterior, belief.noise, trials)
    expected = forecasts(posterior, recipe, belief, noise)
    return [Hindsight(f, chance) for f, chance in zip(expected, chances, strict=True)]


def _noise(posterior: Posterior, learnt: float, trials: list[Trial]) -> Array:
    """Variance (n,) of each measurement: its own standard error where known, else the model's."""
    straight = posterior.data.warp == Warp()  # a standard error cannot be bent along
    scale = posterior.data.scale
    return np.array(
        [
            learnt if trial.sem is None or not straight else (trial.sem / scale) ** 2
            for trial in trials
        ]
    )
