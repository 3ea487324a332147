"""Fitting: the most probable hyper-parameters, or draws of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Indices
from covey.gp.likelihood import Likelihood
from covey.gp.observations import first_and_group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from covey.gp.model import GP, Model
    from covey.gp.observations import Observations


# Which of many results the hyper-parameters are learnt from.

MANY = 1000  # distinct points; of more, so many are picked


def informative(at: Array, rng: np.random.Generator) -> Indices:
    """At most `MANY` of the points (n, d): pairs of neighbours, wherever there are points.

    Points are taken at random, each with the nearest that is left: as dense as the data, for the
    long reach of f, and close enough together for noise and for its short reach. Chosen without a
    look at the outcomes, so that the likelihood of what is left out is not bent (decision 12).
    """
    n = len(at)
    if n <= MANY:
        return np.arange(n)
    left = np.ones(n, dtype=bool)
    picks: list[int] = []
    for centre in rng.permutation(n).tolist():
        if not left[centre]:
            continue
        left[centre] = False
        distance = np.where(left, np.square(at - at[centre]).sum(axis=1), np.inf)
        picks += [centre, int(np.argmin(distance))]
        left[picks[-1]] = False
        if len(picks) >= MANY:
            break
    return np.sort(np.array(picks[:MANY]))


_ONE_START = 300  # observations above which one start of the optimiser must do
_ITERATIONS = 60
_BURN_IN, _THIN = 3, 0.5  # updates per hyper-parameter, before the first draw and between draws


def fit(
    data: Observations, gp: GP, rng: np.random.Generator, last: Sequence[Model] = ()
) -> tuple[Model, ...]:
    """Hyper-parameters for the data: one most probable model, or ``gp.samples`` draws.

    Starts from the ``last`` models recorded in the log, so that a study's fits form one path.
    """
    likelihood = Likelihood(data, gp)
    fitting = [m for m in last if len(m.kernel.lengths) == data.at.shape[1]]
    if gp.samples:
        return sample_models(likelihood, rng, fitting[-1] if fitting else None)
    return (most_probable(likelihood, fitting[-1] if fitting else None),)


def fit_best(
    data: Sequence[Observations], gp: GP, rng: np.random.Generator, last: Sequence[Model] = ()
) -> tuple[Observations, tuple[Model, ...]]:
    """Of several views of the same outcomes, bent and straight, the one they are likelier under.

    Compared by log p(w, θ) + log |dw/dz|: the density of the outcomes as they were told. Of many
    rows both are fitted to, and compared on, the same informative few (decision 12).
    """
    few = list(data)
    if len(data[0]) > MANY:
        rows = informative(data[0].at, rng)
        few = [one.rows(rows) for one in data]
    fitted = [fit(one, gp, rng, last) for one in few]
    best = max(range(len(data)), key=lambda i: plausibility(few[i], fitted[i], gp))
    return data[best], fitted[best]


def plausibility(data: Observations, models: Sequence[Model], gp: GP) -> float:
    """log p(w, θ) + log |dw/dz|, averaged over the models."""
    likelihood = Likelihood(data, gp)
    values = [likelihood.integrated(likelihood.theta_of(model)) for model in models]
    return float(np.mean(values)) + data.log_slope


def most_probable(likelihood: Likelihood, last: Model | None = None) -> Model:
    """Maximum a posteriori by L-BFGS-B with analytic gradients. Cost about 30 · n³."""
    from scipy.optimize import minimize

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood.value_and_gradient(theta)
        return -value, -gradient

    starts = [likelihood.start] if last is None else [likelihood.theta_of(last), likelihood.start]
    if len(likelihood.data.values) > _ONE_START:
        starts = starts[:1]
    found = [
        minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=likelihood.bounds,
            options={"maxiter": _ITERATIONS, "ftol": 1e-8, "gtol": 1e-4},
        )
        for start in starts
    ]
    return likelihood.model_at(min(found, key=lambda result: float(result.fun)).x)


def sample_models(
    likelihood: Likelihood, rng: np.random.Generator, last: Model | None = None
) -> tuple[Model, ...]:
    """Draws of the hyper-parameters by slice sampling, continued from the last one recorded.

    A fresh chain starts where they are most probable. Some hundreds of likelihoods an ask.
    """
    start = most_probable(likelihood) if last is None else last
    theta, box = likelihood.theta_of(start), np.array(likelihood.bounds)
    burn_in, thin = _BURN_IN * len(theta), max(3, int(_THIN * len(theta)))
    draws: list[Model] = []
    for step in range(1, burn_in + thin * likelihood.gp.samples + 1):
        theta = slice_step(likelihood.integrated, theta, box, rng)
        if step > burn_in and (step - burn_in) % thin == 0:
            draws.append(likelihood.model_at(theta))
    return tuple(draws)


def slice_step(
    log_target: Callable[[Array], float], theta: Array, box: Array, rng: np.random.Generator
) -> Array:
    """One update along a random direction: step out by width 1, then shrink (Neal 2003).

    Outside the box (d, 2) the target is zero.
    """
    direction = rng.standard_normal(len(theta))
    direction /= np.linalg.norm(direction)

    def along(step: float) -> float:
        point = theta + step * direction
        if np.any(point < box[:, 0]) or np.any(point > box[:, 1]):
            return -math.inf
        return log_target(point)

    level = along(0.0) - rng.exponential()
    low = -rng.random()
    high = low + 1.0
    while along(low) > level:
        low -= 1.0
    while along(high) > level:
        high += 1.0
    while True:
        step = low + (high - low) * rng.random()
        if along(step) > level:
            return theta + step * direction
        low, high = (step, high) if step < 0.0 else (low, step)


# When many results have outgrown their hyper-parameters.

_GROWTH = 0.1  # more results than so much of those that were fitted
_DRIFT = 0.25  # standard deviations that the fitted values have moved, root mean square


def outgrown(now: Observations, then: Observations) -> bool:
    """Whether hyper-parameters fitted ``then`` are to be fitted anew (our choice).

    They are in standardised units. So they stand while a tenth more results has come at most, and
    while these have not moved the units: a new extreme, another bend or an amended value shows in
    the standardised values of what was known then.
    """
    if now.looks > (1.0 + _GROWTH) * then.looks:
        return True
    both = np.vstack([_keys(now), _keys(then)])
    place = first_and_group(both)[1][len(now) :]
    if np.any(place >= len(now)):  # a standard error came to be known
        return True
    moved = now.values[place] - then.values
    return bool(np.sqrt(np.mean(np.square(moved))) > _DRIFT)


def _keys(data: Observations) -> np.ndarray:
    return np.column_stack([data.at, data.learnt])
