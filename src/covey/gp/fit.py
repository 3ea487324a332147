"""Fitting: the most probable hyper-parameters, or slice samples of them.

Of many results a subset is fitted (`informative`), and their hyper-parameters are kept until the
data have `outgrown` them.
"""

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


# The subset of many results that the hyper-parameters are learnt from.

MANY = 1000  # distinct points; of more, this many are picked


def informative(at: Array, rng: np.random.Generator, most: int | None = None) -> Indices:
    """Indices of at most ``most`` of the points (n, d), ascending: random pairs of neighbours.

    Points are drawn at random, each with its nearest remaining neighbour: spread like the data, for
    long length-scales, and in close pairs, for the noise and short length-scales. The choice does
    not see the outcomes, so it does not bias the likelihood (decision 12). ``most`` is `MANY`
    unless given. Cost n · most · d / 2.
    """
    n, most = len(at), MANY if most is None else most
    if n <= most:
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
        if len(picks) >= most:
            break
    return np.sort(np.array(picks[:most]))


_ONE_START = 300  # observations above which the optimiser has one start, and is brief
_ITERATIONS, _BRIEF = 60, 30  # the first 30 came within 3 nats of 500 in 34 hyper-parameters
_MARGINS = {"framed": 8.0}  # nats by which a view has to be more probable (decision 33)
_DECIDING = 200  # of these many, those that say which view a first fit is made in (our choice)
_BURN_IN, _THIN = 3, 0.5  # updates per hyper-parameter, before the first draw and between draws


def fit(
    data: Observations, gp: GP, rng: np.random.Generator, last: Sequence[Model] = ()
) -> tuple[Model, ...]:
    """Hyper-parameters for the data: the most probable model, or ``gp.samples`` draws.

    Starts from the ``last`` models in the log, where they have the same number of inputs.
    """
    likelihood = Likelihood(data, gp)
    fitting = [m for m in last if len(m.kernel.lengths) == data.at.shape[1]]
    if gp.samples:
        return sample_models(likelihood, rng, fitting[-1] if fitting else None)
    return (most_probable(likelihood, fitting[-1] if fitting else None),)


def fit_best(
    data: Sequence[Observations], gp: GP, rng: np.random.Generator, last: Sequence[Model] = ()
) -> tuple[Observations, tuple[Model, ...]]:
    """Of several views of the same outcomes the most probable, with its fit.

    Compared by log p(w, θ) + log |dw/dz|, the density of the outcomes as they were told, where the
    framed view has to be more probable by a margin. More than
    `MANY` rows are fitted and compared on the same informative subset (decision 12). A first
    fit to many rows is made in one view, the most probable of a few of them.
    """
    few = list(data)
    if len(data[0]) > MANY:
        rows = informative(data[0].at, rng)
        few = [one.rows(rows) for one in data]
    if len(few) > 1 and not last and len(few[0]) > _ONE_START:
        own = np.random.default_rng(len(few[0]))  # so that nothing drawn later depends on it
        rows = informative(few[0].at, own, _DECIDING)
        best, _ = _most_plausible([one.rows(rows) for one in few], gp, own)
        few, data = [few[best]], [data[best]]
    best, models = _most_plausible(few, gp, rng, last)
    return data[best], models


def _most_plausible(
    views: Sequence[Observations], gp: GP, rng: np.random.Generator, last: Sequence[Model] = ()
) -> tuple[int, tuple[Model, ...]]:
    """The index of the view that is most probable with its fit, and that fit."""
    fitted = [fit(one, gp, rng, last) for one in views]
    odds = [
        plausibility(view, models, gp) - _MARGINS.get(view.view, 0.0)
        for view, models in zip(views, fitted, strict=True)
    ]
    best = int(np.argmax(odds))
    return best, fitted[best]


def plausibility(data: Observations, models: Sequence[Model], gp: GP) -> float:
    """log p(w, θ) + log |dw/dz|, averaged over the models; w is the warped outcome, z it before."""
    likelihood = Likelihood(data, gp)
    values = [likelihood.integrated(likelihood.theta_of(model)) for model in models]
    return float(np.mean(values)) + data.log_slope


def most_probable(likelihood: Likelihood, last: Model | None = None) -> Model:
    """The maximum a posteriori by L-BFGS-B with analytic gradients. Cost about 30 · n³."""
    from scipy.optimize import minimize

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood.value_and_gradient(theta)
        return -value, -gradient

    starts = [likelihood.start] if last is None else [likelihood.theta_of(last), likelihood.start]
    many = len(likelihood.data.values) > _ONE_START
    if many:
        starts = starts[:1]
    found = [
        minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=likelihood.bounds,
            options={"maxiter": _BRIEF if many else _ITERATIONS, "ftol": 1e-8, "gtol": 1e-4},
        )
        for start in starts
    ]
    return likelihood.model_at(min(found, key=lambda result: float(result.fun)).x)


def sample_models(
    likelihood: Likelihood, rng: np.random.Generator, last: Model | None = None
) -> tuple[Model, ...]:
    """``gp.samples`` draws of the hyper-parameters by slice sampling, continued from ``last``.

    A new chain starts at the maximum a posteriori. Cost some hundreds of likelihoods.
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
    """One update of θ (d,) along a random direction: step out by 1, then shrink (Neal 2003).

    The target density is zero outside the box (d, 2).
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


# When hyper-parameters of many results are fitted anew.

_GROWTH = 0.1  # new results, as a share of those that were there at the fit
_DRIFT = 0.25  # root mean square change of the standardised values since the fit


def outgrown(now: Observations, then: Observations) -> bool:
    """Whether hyper-parameters fitted to the data ``then`` should be fitted anew (our choice).

    They should once there are a tenth more results, or once the standardised values of the old ones
    have moved: a new extreme, another warp or an amended value changes the units that the
    hyper-parameters are in.
    """
    if now.looks > (1.0 + _GROWTH) * then.looks:
        return True
    if now.view != then.view:
        return True
    if (now.shifts and now.shifts.labels) != (then.shifts and then.shifts.labels):
        return True
    both = np.vstack([_keys(now), _keys(then)])
    place = first_and_group(both)[1][len(now) :]
    if np.any(place >= len(now)):  # a row is gone: its standard error has become known
        return True
    moved = now.values[place] - then.values
    return bool(np.sqrt(np.mean(np.square(moved))) > _DRIFT)


def _keys(data: Observations) -> np.ndarray:
    """What identifies a row: its point, and whether its noise is learnt, (n, d + 1)."""
    shifts = () if data.shifts is None else (data.shifts.design,)
    return np.column_stack([data.at, data.learnt, *shifts])
