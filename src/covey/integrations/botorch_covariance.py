"""Covariances of n points under a BoTorch model, by blocks: what a `covey.belief.Gaussian` needs.

Both classes are a `covey.belief.Prior`: `KernelPrior` is the model's kernel before any data,
`PosteriorPrior` its posterior, with nothing left to be explained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from covey.arrays import Array, Indices
from covey.errors import MissingExtraError, StrategyError
from covey.integrations.botorch_view import View

try:
    import torch
    from botorch.models.model import Model
    from botorch.sampling.pathwise import gen_kernel_features
    from gpytorch.kernels import Kernel
    from torch import Tensor
except ImportError as error:
    raise MissingExtraError("botorch", "botorch") from error

_FEATURES = 2048  # sines and cosines of a pathwise draw
_ROWS = 4096  # rows of a kernel matrix computed at a time
_JOINT = 256  # ... of a posterior, where a block of k rows costs k² covariances


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
                # Each value depends on its own point only, so the sum has all their gradients.
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
        """Not needed: without evidence a draw is exact."""
        raise StrategyError(f"a {type(self.view.model).__name__} is drawn from at candidates only.")

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """Not to be had."""
        raise StrategyError(f"a {type(self.view.model).__name__} is known by its posterior only.")


def as_array(values: Tensor) -> Array:
    """As NumPy holds it, in float64."""
    return values.detach().cpu().double().numpy()


def as_indices(indices: Indices) -> Tensor:
    """Indices for a tensor."""
    return torch.from_numpy(np.ascontiguousarray(indices))


def _cuts(n: int, rows: int) -> list[tuple[int, int]]:
    """Where n rows are cut into parts."""
    return list(pairwise([*range(0, n, rows), n]))
