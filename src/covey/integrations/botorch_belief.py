"""Any BoTorch model as a belief about candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from covey.arrays import Array
from covey.belief import Belief, Beliefs, Gaussian, Goal
from covey.errors import StrategyError, installed
from covey.hypervolume import Front, front_of
from covey.integrations.botorch_covariance import (
    KernelPrior,
    PosteriorPrior,
    Units,
    View,
    as_array,
    as_indices,
    checked_noise,
    units_of,
)
from covey.large.lowrank import Evidence, held_rows

with installed("botorch", "botorch"):
    import torch
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models import SingleTaskGP
    from botorch.models.fully_bayesian import AbstractFullyBayesianSingleTaskGP
    from botorch.models.model import Model
    from linear_operator.utils.cholesky import psd_safe_cholesky
    from torch import Tensor


# The posterior of an exact Gaussian process, from its kernel and its data: Σ = K - VᵀV.
#
# `model.posterior` gives the same numbers, but for one column of Σ at n candidates it computes n
# joint posteriors; here a column costs n·m, with m the number of observations.


_MOST_ENTRIES = 3e8  # of all V together: 2.4 GB
_PROBES = 16  # candidates at which this posterior is compared with the model's own
_AGREE = 1e-8  # of the prior variance: how near they must be


@dataclass(frozen=True, eq=False)
class Member:
    """Kernel, explained part V (m, n) and evidence of one member of an ensemble."""

    prior: KernelPrior
    explained: Array
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class Data:
    """The training data as a model holds it, for each of S members, on the model's own scale."""

    inputs: Tensor  # (S, m, d), after the input transforms
    factors: Tensor  # (S, m, m), lower Cholesky factors of K + D
    weights: Tensor  # (S, m), (K + D)⁻¹ (y - mean)
    noise: Tensor  # (S, m), the diagonal of D


def exact_members(view: View, points: Tensor, unit: float) -> list[Member] | None:
    """The members of a model at n points, in units of ``unit``; None where this does not apply.

    Whether it applies is also tested: some covariances are compared with the posterior's.
    """
    model = view.model
    if not isinstance(model, SingleTaskGP | AbstractFullyBayesianSingleTaskGP):
        return None
    if model.num_outputs != 1:
        return None
    truth = view.covariance(points[:1])  # this also puts the model into eval mode
    data = _data(model, len(truth))
    if data.inputs[..., 0].numel() * len(points) > _MOST_ENTRIES:
        return None
    members = []
    for i in range(len(truth)):
        whole: Any = model.covar_module
        kernel = whole[i] if view.is_ensemble else whole
        bare = KernelPrior(model, kernel, points, i if view.is_ensemble else None, 1.0)
        member = _member(view, bare, data, unit)
        if member is None:
            return None
        members.append(member)
    return members


def _data(model: SingleTaskGP | AbstractFullyBayesianSingleTaskGP, count: int) -> Data:
    inputs = cast(tuple[Tensor], model.train_inputs)[0]
    with torch.no_grad():
        prior = model.forward(inputs)
        looks = model.likelihood(prior, inputs)
        factors = psd_safe_cholesky(looks.covariance_matrix)
        residuals = (model.train_targets - prior.mean).unsqueeze(-1)
        weights = torch.cholesky_solve(residuals, factors).squeeze(-1)
    noise = looks.variance - prior.variance
    return Data(
        inputs.expand(count, -1, -1),
        factors.expand(count, -1, -1),
        weights.expand(count, -1),
        noise.expand(count, -1),
    )


def _member(view: View, bare: KernelPrior, data: Data, unit: float) -> Member | None:
    """A member in the units of the belief, if its covariances are those of the posterior."""
    i = bare.member or 0
    factor = data.factors[i]
    with torch.no_grad():
        cross = bare.kernel(data.inputs[i], bare.place(bare.points)).to_dense()
        explained = as_array(torch.linalg.solve_triangular(factor, cross, upper=False))
    scale = _scale(view, bare, explained)
    if scale is None:
        return None
    ratio = np.sqrt(scale) / unit
    evidence = Evidence(
        as_array(view.seen),
        ratio * as_array(factor),
        as_array(data.weights[i]) / ratio,
        ratio**2 * as_array(data.noise[i]),
    )
    return Member(replace(bare, scale=ratio**2), ratio * explained, evidence)


def _scale(view: View, bare: KernelPrior, explained: Array) -> float | None:
    """The factor by which the outcome transform multiplies every variance; None if it varies."""
    prior = bare.diagonal
    left = prior - np.einsum("mn,mn->n", explained, explained)
    spread = np.linspace(0, len(prior) - 1, min(len(prior), _PROBES)).astype(np.intp)
    probes = np.unique([int(np.argmax(left)), *spread])
    truth = as_array(view.covariance(bare.points[as_indices(probes)])[bare.member or 0])
    ours = bare.block(probes, probes) - explained[:, probes].T @ explained[:, probes]
    most = int(np.argmax(ours.diagonal()))
    if not ours[most, most] > 0.0:
        return None
    scale = float(truth[most, most] / ours[most, most])
    near = np.abs(scale * ours - truth).max() <= _AGREE * scale * prior.max()
    return scale if near else None


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
        X_pending: points (p, d) being evaluated: the covariance counts them as observed.
        posterior_transform: makes one outcome of several, or turns the sign; as in BoTorch.
        noise: variance of one observation in the units of the posterior; None: what the
            likelihood adds.
        standardize: put zero at the mean of what the model predicts at its training inputs, and
            one at the standard deviation; else keep the units of the posterior.
    """
    view = View(model, posterior_transform)
    points = checked_tensor(view, X, "X")
    pending = points[:0]
    if X_pending is not None and len(X_pending):
        pending = checked_tensor(view, X_pending, "X_pending")
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
    # A pending point need not be a candidate: the belief is conditioned on it, then drops it.
    n = len(points)
    seen = belief.after_looking_at(np.arange(n, len(everything))).on(np.arange(n))
    return replace(seen, under_way=belief.at[n:], awaited=belief.mean[n:])


def beliefs_from_models(
    models: Sequence[Model],
    X: Tensor,
    ref_point: Sequence[float],
    *,
    X_pending: Tensor | None = None,
    weight: Array | None = None,
) -> Beliefs:
    """The beliefs of several BoTorch models, one for each goal, about n candidates (n, d).

    The front is that of the models' means at their training inputs, which they share, as those of
    a ``ModelListGP`` do: ``beliefs_from_models(model.models, X, ref_point)``. A strategy then
    chooses by what upper bounds add to its hypervolume:
    ``strategy_of("auto")[1].choose(beliefs, 8, rng).indices``.

    Args:
        models: a fitted model of each goal, all to be maximised.
        X: the candidates.
        ref_point: values no better than these are worth nothing, as in BoTorch.
        X_pending: points (p, d) being evaluated: the covariance counts them as observed.
        weight: the probability (n,) that each candidate counts, such as that of keeping limits.
    """
    worst = np.asarray([float(value) for value in ref_point])
    if not models or len(worst) != len(models):
        raise StrategyError(
            f"there is one model and one value of ref_point for each goal; got {len(models)} and "
            f"{len(worst)}."
        )
    each = [belief_from_model(model, X, X_pending=X_pending) for model in models]
    told = [belief.told[0] for belief in each if belief.told is not None]
    if len(told) < len(each) or len({len(mean) for mean in told}) > 1:
        raise StrategyError(
            "the front is that of the means where all goals were observed, so the models share "
            "their training inputs; these do not."
        )
    values = np.column_stack(told)
    span = np.maximum(values.max(axis=0) - worst, 0.1 * np.ptp(values, axis=0))
    span = np.where(span > 0.0, span, 1.0)
    goals = tuple(
        Goal(f"goal {j}", len(one.parts), _unit(worst[j], span[j]), one.best, one.told)
        for j, one in enumerate(each)
    )
    parts = tuple(part for belief in each for part in belief.parts)
    first, front = each[0], front_of((values - worst) / span)
    return Beliefs(
        first.at,
        parts,
        np.nan,
        looks=first.looks,
        weight=weight,
        goals=goals,
        front=Front(front, np.zeros(len(worst))),
        under_way=first.under_way,
    )


def _unit(low: float, span: float) -> Callable[[Array], Array]:
    return lambda values: np.asarray((values - low) / span)


def checked_tensor(view: View, X: Tensor, name: str) -> Tensor:
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
            Gaussian(member.prior, mu, held_rows(member.explained), float(sigma2), member.evidence)
            for member, mu, sigma2 in zip(members, means, noises, strict=True)
        )
    variances = as_array(variance) / units.one**2
    return tuple(
        Gaussian(
            PosteriorPrior(view, points, variances[i], i, 1.0 / units.one**2),
            means[i],
            held_rows(np.zeros((0, len(points)))),
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
