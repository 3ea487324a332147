"""Any BoTorch model as a belief about candidates."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array
from covey.belief import Belief, Gaussian, held
from covey.errors import MissingExtraError, StrategyError
from covey.integrations.botorch_covariance import PosteriorPrior, as_array
from covey.integrations.botorch_exact import exact_members
from covey.integrations.botorch_view import Units, View, checked_noise, units_of

try:
    import torch
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import Model
    from torch import Tensor
except ImportError as error:
    raise MissingExtraError("botorch", "botorch") from error


def belief_from_model(
    model: Model,
    X: Tensor,
    *,
    X_pending: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    noise: float | None = None,
    standardize: bool = False,
) -> Belief:
    """The belief of a BoTorch model about n candidates (n, d), its covariance by columns.

    Mean, covariance and noise are those of ``model.posterior``, with input and outcome transforms
    applied. A fully Bayesian model becomes one part for each of its samples. No n x n matrix is
    made, so candidates may come by the hundred thousand.

    Args:
        model: a fitted model of one outcome, which is to be maximised.
        X: the candidates.
        X_pending: points (p, d) under way: the covariance counts them as observed.
        posterior_transform: makes one outcome of several, or turns the sign; as in BoTorch.
        noise: variance of one look in the units of the posterior; None: what the likelihood adds.
        standardize: put zero at the mean of what the model predicts at its training inputs, and
            one at the standard deviation; else keep the units of the posterior.
    """
    view = View(model, posterior_transform)
    points = checked_points(view, X, "X")
    pending = points[:0]
    if X_pending is not None and len(X_pending):
        pending = checked_points(view, X_pending, "X_pending")
    everything = torch.cat([points, pending])
    units = units_of(view, points) if standardize else Units()
    parts = _parts(view, everything, noise, units)
    told = _told(view, units)
    best = np.mean([part.mean for part in parts], axis=0) if told is None else told[0]
    belief = Belief(
        as_array(everything),
        parts,
        best=float(best.max()),
        looks=len(view.seen) + len(pending),
        told=told,
    )
    if len(pending) == 0:
        return belief
    # A pending point need not be a candidate: it is looked at, then left out.
    n = len(points)
    return belief.after_looking_at(np.arange(n, len(everything))).on(np.arange(n))


def checked_points(view: View, X: Tensor, name: str) -> Tensor:
    """Points (n, d) on the model's device, in its precision."""
    if not isinstance(X, Tensor) or X.ndim != 2 or 0 in X.shape:
        shape = tuple(X.shape) if isinstance(X, Tensor) else type(X).__name__
        raise StrategyError(f"{name} is a tensor of points, n x d; got {shape}.")
    seen = view.seen
    if len(seen) and seen.shape[-1] != X.shape[-1]:
        raise StrategyError(
            f"the model has {seen.shape[-1]} inputs, and {name} has {X.shape[-1]} columns."
        )
    if not bool(torch.isfinite(X).all()):
        raise StrategyError(f"{name} holds nan or infinity; every coordinate must be a number.")
    return X.detach().to(seen) if len(seen) else X.detach()


def _parts(view: View, points: Tensor, noise: float | None, units: Units) -> tuple[Gaussian, ...]:
    """One Gaussian for each member of the model."""
    mean, variance = view.moments(points)
    looks = view.noise(points) if noise is None else torch.full((len(mean),), checked_noise(noise))
    means = (as_array(mean) - units.zero) / units.one
    noises = as_array(looks) / units.one**2
    members = exact_members(view, points, units.one)
    if members is not None:
        return tuple(
            Gaussian(member.prior, mu, held(member.explained), float(sigma2), member.evidence)
            for member, mu, sigma2 in zip(members, means, noises, strict=True)
        )
    variances = as_array(variance) / units.one**2
    return tuple(
        Gaussian(
            PosteriorPrior(view, points, variances[i], i, 1.0 / units.one**2),
            means[i],
            held(np.zeros((0, len(points)))),
            float(noises[i]),
        )
        for i in range(len(means))
    )


def _told(view: View, units: Units) -> tuple[Array, Array] | None:
    """Mean and standard deviation at the training inputs, over all members."""
    if not len(view.seen):
        return None
    mean, variance = (as_array(part) for part in view.moments(view.seen))
    total = variance.mean(axis=0) + mean.var(axis=0)
    return (mean.mean(axis=0) - units.zero) / units.one, np.sqrt(total) / units.one
