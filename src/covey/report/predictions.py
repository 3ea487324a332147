"""Forecasts in the user's units, past forecasts of each trial, and their calibration.

`past_forecasts` says what the model expected of each trial when it was asked for, from the log
alone; `calibrate` compares that with what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array
from covey.errors import several
from covey.gp import Model, Posterior, condition
from covey.history import Asked, Batch, Extended, History, Trial, models_of
from covey.learn import Recipe, observations
from covey.space.covering import covering

if TYPE_CHECKING:
    from covey.belief import Belief


# What a posterior expects at some points, in the user's units, with intervals.

HALF, MOST = 0.5, 0.9  # probability of the two intervals


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

    f is the mean of a measurement, as in `Posterior.predict`, also where outcomes were warped.

    The intervals are quantiles of the belief, mapped back through the warp of the outcome, so they
    need not be symmetric. Where hyper-parameters were sampled, they are those of one Gaussian with
    the mixture's mean and variance (our choice).
    """
    from scipy.special import ndtri

    steps = {p: ndtri((1.0 + p) / 2.0) for p in (HALF, MOST)}  # Φ⁻¹((1 + p)/2)
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
        for p, step in steps.items()
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


MOST_TOLD = 3000  # results; with more, forecasts would take minutes and are left out (our choice)


@dataclass(frozen=True, slots=True)
class PastForecast:
    """What the model expected of one measurement, noise included, before it was made.

    ``chance`` is the probability that f there is better than at any point told by then.
    """

    forecast: Forecast
    chance: float


def past_forecasts(
    history: History, recipe: Recipe, batches: Iterable[Batch]
) -> dict[int, PastForecast]:
    """Past forecasts of the trials of these batches, by id.

    Left out are batches that no model chose, and those asked for after more than 3000 results.

    For each batch the log is read up to its event, and the model with the hyper-parameters written
    there is conditioned on what had been told by then; nothing is fitted again. Trials that were
    pending at the time are left out of the covariance too: they would shrink the bands without
    known values. Cost n³/3 for each batch and model, n the results told before it.
    """
    wanted = {batch.known: batch for batch in batches if batch.modelled}
    found: dict[int, PastForecast] = {}
    then, spaces = History(), [*recipe.passed, recipe.space]
    outcome = recipe.outcomes.only
    for place, event in enumerate(history.events[: max(wanted, default=-1) + 1]):
        if isinstance(event, Extended) and event.changes:
            spaces = spaces[1:]
        counted = len(then.of_outcome(outcome).counted) if place in wanted else 0
        if isinstance(event, Asked) and 0 < counted <= MOST_TOLD and spaces[0].written is None:
            described = models_of(event.models, outcome) or ()
            models = [Model.from_description(model) for model in described]
            own = recipe
            if recipe.passed:  # in the space of its time, to whose coordinates the models belong
                own = replace(recipe, space=covering(spaces[0], [t.point for t in then.trials]))
            if not all(model.suits(recipe.gp, own.space.width) for model in models):
                then = then.then(event)  # of an older version, whose coordinates were others
                continue
            known = observations(then.of_outcome(outcome), own, view=models[0].view)
            posterior = replace(condition(models, known), sources=own.sources)
            trials = [history.trial(i) for i in wanted[place].ids]
            found |= dict(zip(wanted[place].ids, _expected(posterior, own, trials), strict=True))
        then = then.then(event)
    return found


def _expected(posterior: Posterior, recipe: Recipe, trials: list[Trial]) -> list[PastForecast]:
    belief = posterior.belief(recipe.space.encode([trial.point for trial in trials]))
    target = float(posterior.belief(posterior.data.at).mean.max())
    chances = [
        0.5 * math.erfc((target - mean) / (std * math.sqrt(2.0)))
        for mean, std in zip(belief.mean.tolist(), belief.std.tolist(), strict=True)
    ]
    noise = _noise(posterior, belief.noise, trials)
    expected = forecasts(posterior, recipe, belief, noise)
    return [PastForecast(f, chance) for f, chance in zip(expected, chances, strict=True)]


def _noise(posterior: Posterior, learnt: float, trials: list[Trial]) -> Array:
    """Variance (n,) of each measurement: its own standard error where known, else the model's."""
    straight = posterior.data.view == "straight"  # a standard error cannot be warped
    scale = posterior.data.scale
    return np.array(
        [
            learnt if trial.sem is None or not straight else (trial.sem / scale) ** 2
            for trial in trials
        ]
    )


# Calibration: forecast against measurement, and how many fell inside the bands.

_FEW = 10
_UNLIKELY = 0.025  # in either tail


@dataclass(frozen=True, slots=True)
class Pair:
    """One measurement beside what was expected of it; ``error`` in standard deviations."""

    id: int
    batch: int
    expected: Forecast
    measured: float
    error: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many measurements fell inside the band of this probability."""

    band: float
    inside: int
    of: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Every pair, the coverage of the two bands, and a sentence about it.

    ``stopped`` are the trials that are left out, since their evaluations were stopped early.
    """

    pairs: tuple[Pair, ...]
    coverage: tuple[Coverage, ...]
    note: str
    stopped: tuple[int, ...] = ()


def calibrate(
    batches: Sequence[Batch],
    trials: Sequence[Trial],
    past: Mapping[int, PastForecast],
    stopped: Collection[int] = (),
) -> Calibration:
    """Compare what these batches were expected to give with what they gave.

    Excluded results are left out: they say nothing about the model. So are those of trials that
    were ``stopped`` early: the model expected their value at the end.
    """
    known = [
        (batch, i)
        for batch in batches
        for i in batch.ids
        if i in past and not trials[i].excluded and trials[i].value is not None
    ]
    pairs = tuple(
        Pair(i, batch.round, past[i].forecast, value, error_of(past[i].forecast, value))
        for batch, i in known
        if i not in stopped and batch.round is not None
        if (value := trials[i].value) is not None
    )
    coverage = tuple(
        Coverage(band, sum(_inside(pair, band) for pair in pairs), len(pairs))
        for band in (HALF, MOST)
    )
    early = tuple(i for _, i in known if i in stopped)
    return Calibration(pairs, coverage, _note(coverage) + _left_out(len(early)), early)


def _left_out(stopped: int) -> str:
    if not stopped:
        return ""
    results = several(stopped, "result")
    return f" Left out: {results} of trials stopped early, of which the end was predicted."


def error_of(expected: Forecast, measured: float) -> float:
    """Measured less expected, in standard deviations of the forecast.

    >>> error_of(Forecast(1.0, 0.5, (0.7, 1.3), (0.2, 1.8)), 2.0)
    2.0
    """
    return (measured - expected.mean) / max(expected.std, 1e-300)


def _inside(pair: Pair, band: float) -> bool:
    low, high = pair.expected.half if band == HALF else pair.expected.most
    return low <= pair.measured <= high


def _note(coverage: tuple[Coverage, ...]) -> str:
    from scipy.special import bdtr  # P(X <= k) for a binomial of n tries

    n = coverage[0].of
    if n == 0:
        return "No result has come in yet that a model had predicted."
    if n < _FEW:
        return (
            f"Only {several(n, 'result')} so far: fewer than {_FEW} say little about the bands, "
            "whichever way they fall."
        )
    few = [c for c in coverage if bdtr(c.inside, c.of, c.band) < _UNLIKELY]
    many = [c for c in coverage if bdtr(c.of - c.inside, c.of, 1.0 - c.band) < _UNLIKELY]
    if few:
        return "Fewer than chance allows fell inside: the model was too sure of itself."
    if many:
        return "More than chance allows fell inside: the model was less sure than it could be."
    return "That is what chance allows: the bands can be believed as far as these results tell."
