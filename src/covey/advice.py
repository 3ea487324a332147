"""Advice: predictions of f at given points, and the point to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from covey.arrays import Array
from covey.candidates import Exclusions, candidate_set
from covey.errors import HistoryError, StrategyError
from covey.gp import Posterior
from covey.history import History, Trial
from covey.hypervolume import chebyshev, nondominated
from covey.learn import Recipe, reachable_trials, understand_several
from covey.outcomes import Outcomes, complete
from covey.policies import weighed
from covey.space import Pool
from covey.space.covering import CoveringPool, without_absent


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


class Estimate(NamedTuple):
    """Mean and standard deviation of one outcome at one point, in the user's units."""

    mean: float
    std: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A point to use, with the mean and standard deviation of f there; ``trial`` if it was told.

    Where outcomes have names, ``expected`` has mean and standard deviation of each.
    """

    point: Mapping[str, Any]
    mean: float  # of the only goal; nan if there are several
    std: float
    trial: Trial | None = None
    expected: Mapping[str, Estimate] = field(default_factory=dict)  # of outcomes that have names


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
    """The told trial of best posterior mean; in a pool, one of its rows if any was told.

    One that was stopped early only if every trial was. If an extension left all of them outside,
    the point of best mean in the space as it is now.
    """
    told = history.ended
    if isinstance(recipe.space, Pool) and not isinstance(recipe.space, CoveringPool):
        places = recipe.space.locate([trial.point for trial in told])
        told = tuple(t for t, place in zip(told, places, strict=True) if place >= 0) or told
    else:
        told = tuple(reachable_trials(recipe.space, told))
    if not told:
        return recommend_anywhere(posterior, recipe)
    mean, std = posterior.predict(recipe.space.encode([trial.point for trial in told]))
    i = int(np.argmax(mean))
    point = without_absent(recipe.space, told[i].point)
    return Recommendation(point, recipe.sign * float(mean[i]), float(std[i]), told[i])


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


# Outcomes that have names.


def predict_each(
    posteriors: Mapping[str, Posterior], recipe: Recipe, points: tuple[Mapping[str, Any], ...]
) -> dict[str, Prediction]:
    """Mean and standard deviation of every outcome at the points."""
    return {name: predict(one, recipe.of(name), points) for name, one in posteriors.items()}


def checked_weights(weights: Mapping[str, float] | None, outcomes: Outcomes) -> dict[str, float]:
    """How much each goal counts, one number each; alike if none is given.

    Raises:
        StrategyError: A name is no goal, or a weight is negative, or all are zero.
    """
    if weights is None:
        return dict.fromkeys(outcomes.goals, 1.0)
    if not isinstance(weights, Mapping) or weights.keys() != outcomes.goals.keys():
        raise StrategyError(
            f"weights has a number for each goal ({', '.join(outcomes.goals)}); got {weights!r}."
        )
    numbers = [isinstance(w, int | float | np.integer | np.floating) for w in weights.values()]
    if not all(numbers) or not all(0.0 <= w < np.inf for w in weights.values()):
        raise StrategyError(f"weights are numbers of at least 0; got {dict(weights)!r}.")
    if not any(weights.values()):
        raise StrategyError("one of the weights must be above 0, or no goal counts at all.")
    return {name: float(weights[name]) for name in outcomes.goals}


def recommend_by_weights(
    posteriors: Mapping[str, Posterior],
    recipe: Recipe,
    history: History,
    weights: Mapping[str, float],
    *,
    anywhere: bool = False,
) -> Recommendation:
    """The point of best means at these weights: told and keeping the limits, or anywhere.

    If an extension left all that were told outside, it is anywhere, too.

    Raises:
        HistoryError: No told trial keeps the limits.
    """
    outcomes = recipe.outcomes
    told = complete(history, outcomes)
    trials = None if anywhere else reachable_trials(recipe.space, told)
    points: Sequence[Mapping[str, Any]]
    if trials is None or (told and not trials):
        points, trials = _likely_points(recipe, history), None
    else:
        points = [without_absent(recipe.space, trial.point) for trial in trials]
    if not points:
        limits = ", ".join(map(str, outcomes.limits))
        raise HistoryError(
            "no trial that counts has a value of every goal"
            + (f" and keeps {limits}" if limits else "")
            + "; tell more results, or ask for recommend(anywhere=True)."
        )
    found = predict_each(posteriors, recipe, tuple(points))
    ordered = outcomes.in_order
    means = ordered.signs() * np.column_stack([found[name].mean for name in ordered.goals])
    keep = nondominated(means)
    span = np.ptp(means[keep], axis=0)
    scale = np.array([weights[name] for name in ordered.goals]) / np.where(span > 0.0, span, 1.0)
    scores = chebyshev(means, scale, means.max(axis=0))
    # A goal of no weight does not count, but what is worse in it and better in none is no answer.
    i = int(np.argmax(np.where(keep, scores, -np.inf)))
    expected = {n: Estimate(float(p.mean[i]), float(p.std[i])) for n, p in found.items()}
    only = expected.get(outcomes.only, Estimate(np.nan, np.nan))
    return Recommendation(points[i], *only, None if trials is None else trials[i], expected)


def _likely_points(recipe: Recipe, history: History) -> Sequence[Mapping[str, Any]]:
    """Promising points of the whole space that are likelier than not to keep the limits."""
    rng = np.random.default_rng(recipe.seed)
    posteriors = understand_several(history, recipe, rng)
    where = candidate_set(recipe.space, {}, Exclusions((), recipe.seed, 0))
    candidates = where.promising(1, posteriors, rng)
    chance = posteriors.kept(candidates.at)
    likely = np.arange(len(candidates)) if chance is None else np.flatnonzero(chance >= 0.5)
    return candidates.points([int(i) for i in likely])
