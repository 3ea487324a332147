"""The posterior of an exact Gaussian process, from its kernel and its data: Σ = K - VᵀV.

`model.posterior` gives the same numbers, but one column of them at n candidates costs it a pass
over n joint posteriors; here it costs n·m, with m the number of observations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from covey.arrays import Array
from covey.belief import Evidence
from covey.errors import MissingExtraError
from covey.integrations.botorch_covariance import KernelPrior, as_array, as_indices
from covey.integrations.botorch_view import View

try:
    import torch
    from botorch.models import SingleTaskGP
    from botorch.models.fully_bayesian import AbstractFullyBayesianSingleTaskGP
    from linear_operator.utils.cholesky import psd_safe_cholesky
    from torch import Tensor
except ImportError as error:
    raise MissingExtraError("botorch", "botorch") from error

_MOST_ENTRIES = 3e8  # of all V together: 2.4 GB
_PROBES = 16  # candidates at which our posterior is compared with the model's own
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

    That it applies is not left to the kind of model alone: some covariances are compared with the
    posterior's.
    """
    model = view.model
    if not isinstance(model, SingleTaskGP | AbstractFullyBayesianSingleTaskGP):
        return None
    if model.num_outputs != 1:
        return None
    truth = view.covariance(points[:1])  # and the model is now in eval mode
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
    """By what the outcome transform has multiplied every variance; None: by no one number."""
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
