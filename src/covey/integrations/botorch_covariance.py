"""Covariances of n points under a BoTorch model, by blocks, for a `covey.belief.Gaussian`.

`View` is a model as Gaussian posteriors of one outcome. Two classes are a
`covey.covariance.RandomFunction`: `KernelPrior` is the model's kernel before any data,
`PosteriorPrior` its posterior, for models of which only that is known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from covey.arrays import Array, Indices
from covey.belief import LEAST_VARIANCE
from covey.errors import StrategyError, installed

with installed("botorch", "botorch"):
    import torch
    from botorch.acquisition.analytic import PosteriorMean
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.exceptions.warnings import BotorchWarning
    from botorch.models.model import Model, ModelList
    from botorch.models.multitask import MultiTaskGP
    from botorch.optim.utils.acquisition_utils import get_X_baseline
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from botorch.posteriors.posterior import Posterior
    from botorch.posteriors.transformed import TransformedPosterior
    from botorch.sampling.pathwise import gen_kernel_features
    from botorch.utils.transforms import is_ensemble
    from gpytorch.kernels import Kernel
    from torch import Tensor


# A BoTorch model as Gaussian posteriors of one outcome, and the noise of an observation.
#
# An ensemble (a fully Bayesian model) is S posteriors at once; any other model is an ensemble of
# one.


_TOGETHER = 1024  # points whose moments are computed at a time


@dataclass(frozen=True, eq=False)
class View:
    """One outcome of a model, to be maximised.

    The posterior is the model's own, in the units of the data, as long as that is Gaussian (without
    outcome transform, or with `Standardize`). After `Log` and the like it is not, and the view
    uses the last scale on which it is: there f has the same order, and so the same maximiser.

    Attributes:
        model: a fitted BoTorch model.
        transform: makes one outcome of several, or turns the sign; a ``posterior_transform``.
    """

    model: Model
    transform: PosteriorTransform | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise StrategyError(f"this needs a BoTorch model; got {type(self.model).__name__}.")
        several = isinstance(self.model, ModelList)
        if self.transform is None and (several or self.model.num_outputs != 1):
            raise StrategyError(
                f"a {type(self.model).__name__} predicts "
                f"{'by several models' if several else f'{self.model.num_outputs} outcomes'}, and "
                "a batch is chosen for one outcome. Pass the model of that outcome "
                f"({'model.models[0]' if several else 'model.subset_output([0])'}), or "
                "posterior_transform=ScalarizedPosteriorTransform(weights)."
            )

        if not self.is_ensemble and self._batch_shape:
            raise StrategyError(
                f"this {type(self.model).__name__} is a batch of {tuple(self._batch_shape)} models "
                "at once; pass one of them."
            )

    @property
    def _batch_shape(self) -> torch.Size:
        try:
            return self.model.batch_shape
        except NotImplementedError:
            return torch.Size()

    @property
    def is_ensemble(self) -> bool:
        """Whether shapes have one more dimension, of S, before the last two."""
        return bool(is_ensemble(self.model))

    def gaussian(self, X: Tensor, *, noisy: bool = False) -> GPyTorchPosterior:
        """The posterior at X (..., k, d) of f, or with ``noisy`` of one observation."""
        posterior = self.model.posterior(
            X, observation_noise=noisy, posterior_transform=self.transform
        )
        while isinstance(posterior, TransformedPosterior):
            posterior = _inner(posterior)
        kind = type(self.model).__name__
        if not isinstance(posterior, GPyTorchPosterior):
            raise StrategyError(
                f"the posterior of a {kind} is a {type(posterior).__name__}, and a DPP needs a "
                "Gaussian one, as SingleTaskGP has."
            )
        found, fits = posterior.mean.shape, (*X.shape[-2:-1], 1)
        if found[-2:] != fits or len(found) != X.ndim + self.is_ensemble:
            raise StrategyError(
                f"a {kind} gave a posterior of shape {tuple(found)} at points of shape "
                f"{tuple(X.shape)}; one value for each point is needed. Input transforms that make "
                "several points of one are not supported."
            )
        return posterior

    def moments(self, X: Tensor, *, noisy: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and variance (S, n) at each of n points (n, d), in blocks, without gradient."""
        means, variances = [], []
        with torch.no_grad():
            for some in torch.split(X, _TOGETHER):
                mean, variance = self.each(some.unsqueeze(-2), noisy=noisy)
                means.append(mean.mT)
                variances.append(variance.mT)
        mean, variance = torch.cat(means, dim=-1).double(), torch.cat(variances, dim=-1).double()
        return mean, variance.clamp_min(LEAST_VARIANCE * variance.max().item())

    def each(self, X: Tensor, *, noisy: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and variance (b, S) at b single points (b, 1, d)."""
        posterior = self.gaussian(X, noisy=noisy)
        # Not `posterior.variance`: that is never below 1e-10, whatever the units of the data.
        variance = posterior.distribution.covariance_matrix
        return posterior.mean.reshape(len(X), -1), variance.reshape(len(X), -1)

    def covariance(self, X: Tensor) -> Tensor:
        """Joint covariance (S, k, k) at k points (k, d), without gradient."""
        with torch.no_grad():
            joint = self.gaussian(X).distribution.covariance_matrix.double()
        return joint.reshape(-1, len(X), len(X))

    @cached_property
    def seen(self) -> Tensor:
        """The training inputs (m, d) before any transform; empty where the model keeps none."""
        if isinstance(self.model, MultiTaskGP):
            return torch.zeros(0, 0)  # a multi-task model: they belong to several tasks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BotorchWarning)  # there may be none
            found = get_X_baseline(PosteriorMean(self.model, posterior_transform=self.transform))
        return torch.zeros(0, 0) if found is None else found.detach()

    def noise(self, X: Tensor | None = None) -> Tensor:
        """Variance (S,) that the likelihood adds to one observation, on the posterior's scale.

        Averaged over the training inputs, where f is known best and the difference loses least
        precision; over X where there are none.
        """
        at = self.seen if len(self.seen) or X is None else X[:_TOGETHER]
        if len(at) == 0:
            raise StrategyError(
                f"this {type(self.model).__name__} keeps no training inputs to read its noise off. "
                "Pass noise=, the variance of one observation in the units of the posterior."
            )
        found = (self.moments(at, noisy=True)[1] - self.moments(at)[1]).mean(dim=-1)
        if not (torch.isfinite(found) & (found > 0.0)).all():
            raise StrategyError(
                f"the likelihood of this {type(self.model).__name__} adds no noise "
                f"({found.min().item():.3g}), and I + Σ/σ² needs some. Pass noise=, the variance "
                "of one observation in the units of the posterior."
            )
        return found


@dataclass(frozen=True)
class Units:
    """The zero and the unit of a belief, in the units of the posterior."""

    zero: float = 0.0
    one: float = 1.0


def units_of(view: View, X: Tensor) -> Units:
    """Mean and standard deviation of what is predicted at the training inputs (X if none are kept).

    Where the predictions are all equal, the unit is the largest standard deviation of f.
    """
    mean, variance = view.moments(view.seen if len(view.seen) else X)
    spread = mean.mean(dim=0).std(correction=0).item()
    widest = variance.max().sqrt().item()
    return Units(mean.mean().item(), spread if spread > 1e-6 * widest else widest)


def checked_noise(noise: float) -> float:
    """A variance of one observation, above zero."""
    if not 0.0 < noise < float("inf"):
        raise StrategyError(f"noise is the variance of one look, above 0; got {noise!r}.")
    return float(noise)


def _inner(posterior: TransformedPosterior) -> Posterior:
    """The posterior before a non-linear outcome transform, if that keeps the order of values."""
    ends = posterior._sample_transform(
        torch.tensor([[[1.0]], [[2.0]]], dtype=posterior.dtype, device=posterior.device)
    )
    if not bool((ends[1] > ends[0]).all()):
        raise StrategyError(
            "the outcome transform of this model does not increase, so that its Gaussian scale has "
            "another maximiser. Transform the outcomes before they reach the model."
        )
    return posterior._posterior


_FEATURES = 2048  # random features of a pathwise draw
_ROWS = 4096  # rows of a kernel matrix computed at a time
_JOINT = 256  # the same for a posterior, where k rows cost k² covariances


@dataclass(frozen=True, eq=False)
class KernelPrior:
    """A member's kernel at n points. Entries cost O(d).

    Attributes:
        model: whose input transforms come before the kernel.
        kernel: of this member.
        points: (n, d) before the input transforms.
        member: its place in an ensemble; None: the model is no ensemble.
        scale: what the kernel is multiplied by, to the units of the belief.
    """

    model: Model
    kernel: Kernel
    points: Tensor
    member: int | None
    scale: float

    @cached_property
    def diagonal(self) -> Array:
        """Prior variances (n,)."""
        found = np.empty(len(self.points))
        with torch.no_grad():
            for i, j in _cuts(len(found), _ROWS):
                # Points one by one: for a diagonal some kernels compute the whole matrix.
                each = self.place(self.points[i:j]).unsqueeze(-2)
                found[i:j] = as_array(self.kernel(each, diag=True)).reshape(-1)
        return self.scale * found

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Covariances (len(rows), len(cols))."""
        others, found = self.place(self.points[as_indices(cols)]), np.empty((len(rows), len(cols)))
        with torch.no_grad():
            for i, j in _cuts(len(rows), _ROWS):
                some = self.place(self.points[as_indices(rows[i:j])])
                found[i:j] = as_array(self.kernel(some, others).to_dense())
        return self.scale * found

    def columns(self, cols: Indices) -> Array:
        """Covariances (n, len(cols))."""
        return self.block(np.arange(len(self.points)), cols)

    def on(self, indices: Indices) -> KernelPrior:
        """The prior of a subset."""
        return replace(self, points=self.points[as_indices(indices)])

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array
    ) -> tuple[Callable[[slice], Array], Array]:
        """Joint prior draws by random features, where BoTorch has some for the kernel."""
        try:
            with torch.random.fork_rng():
                torch.manual_seed(int(rng.integers(2**31)))
                features = gen_kernel_features(
                    self.kernel, num_inputs=self.points.shape[-1], num_outputs=_FEATURES
                )
        except NotImplementedError as reason:
            raise StrategyError(
                f"{type(self.kernel).__name__} has no random features in BoTorch, without which "
                "joint draws are for a few thousand candidates at most. Offer fewer, or use a "
                "strategy that does not draw."
            ) from reason
        weights = rng.standard_normal((features.num_outputs, draws)) * np.sqrt(self.scale)

        def at(points: Tensor, which: slice) -> Array:
            mine = weights[:, which]
            drawn = np.empty((mine.shape[1], len(points)))
            with torch.no_grad():
                for i, j in _cuts(len(points), _ROWS):
                    drawn[:, i:j] = (as_array(features(self.place(points[i:j]))) @ mine).T
            return drawn

        others = torch.from_numpy(elsewhere).to(self.points)
        return lambda which: at(self.points, which), at(others, slice(None))

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """Gradient (n, d) of Σ_i w_i k(·, x_i), through the input transforms."""
        others = self.place(torch.from_numpy(elsewhere).to(self.points))
        w, found = torch.from_numpy(weights).to(others), np.empty(self.points.shape)
        with torch.enable_grad():
            for i, j in _cuts(len(self.points), _ROWS):
                some = self.points[i:j].detach().clone().requires_grad_()
                # Each value depends on its own point only, so the sum gives all gradients.
                total = (self.kernel(self.place(some), others).to_dense() @ w).sum()
                found[i:j] = as_array(torch.autograd.grad(total, some)[0])
        return self.scale * found

    def place(self, points: Tensor) -> Tensor:
        """Points (k, d) as the kernel sees them."""
        if self.member is None:
            return self.model.transform_inputs(points)
        placed = self.model.transform_inputs(points.unsqueeze(-3))
        return placed[self.member if len(placed) > 1 else 0]


@dataclass(frozen=True, eq=False)
class PosteriorPrior:
    """A member's posterior at n points, each block cut from a joint one.

    For models of which only the posterior is known. A block of k rows costs k² covariances.

    Attributes:
        view: of the model.
        points: (n, d).
        variance: (n,), in the units of the belief.
        member: its place in the ensemble.
        scale: what a covariance is multiplied by, to the units of the belief.
    """

    view: View
    points: Tensor
    variance: Array
    member: int
    scale: float

    @property
    def diagonal(self) -> Array:
        """Posterior variances (n,)."""
        return self.variance

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Covariances (len(rows), len(cols))."""
        found = np.empty((len(rows), len(cols)))
        for i, j in _cuts(len(rows), max(_JOINT, len(cols))):
            both = self.points[as_indices(np.concatenate([rows[i:j], cols]))]
            found[i:j] = as_array(self.view.covariance(both)[self.member])[: j - i, j - i :]
        return self.scale * found

    def columns(self, cols: Indices) -> Array:
        """Covariances (n, len(cols))."""
        return self.block(np.arange(len(self.points)), cols)

    def on(self, indices: Indices) -> PosteriorPrior:
        """The prior of a subset."""
        return replace(
            self, points=self.points[as_indices(indices)], variance=self.variance[indices]
        )

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array
    ) -> tuple[Callable[[slice], Array], Array]:
        """Not needed: without data to condition on, a draw is exact."""
        raise StrategyError(f"a {type(self.view.model).__name__} is drawn from at candidates only.")

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """Not available."""
        raise StrategyError(f"a {type(self.view.model).__name__} is known by its posterior only.")


def as_array(values: Tensor) -> Array:
    """A tensor as a NumPy array of float64."""
    return values.detach().cpu().double().numpy()


def as_indices(indices: Indices) -> Tensor:
    """NumPy indices as a tensor."""
    return torch.from_numpy(np.ascontiguousarray(indices))


def _cuts(n: int, rows: int) -> list[tuple[int, int]]:
    """Start and end of each part, of at most ``rows`` rows."""
    return list(pairwise([*range(0, n, rows), n]))
