"""For BoTorch: `optimize_dpp` chooses batches for a model, and `qDPPScore` scores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from covey.arrays import Array, cholesky, one_thread
from covey.baselines import Sobol
from covey.belief import Belief
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, StrategyError, installed, is_whole
from covey.integrations.botorch_belief import (
    belief_from_model,
    beliefs_from_models,
    checked_tensor,
)
from covey.integrations.botorch_candidates import (
    Constraint,
    Region,
    apart,
    feasible,
    new_rows,
    promising,
)
from covey.integrations.botorch_covariance import View, checked_noise
from covey.selection import Strategy, checked_selection

with installed("botorch", "botorch"):
    import torch
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import Model
    from botorch.utils.transforms import match_batch_shape, t_batch_mode_transform
    from torch import Tensor


# The log-determinant score of a batch as a BoTorch acquisition function.


class qDPPScore(AcquisitionFunction):  # noqa: N801 - BoTorch's own way to name a batch acquisition
    r"""Diversity and quality of a batch of q points.

    .. math:: \log\det(I + \Sigma_X / \sigma^2) + w \sum_{x \in X} u(x)

    The first term is twice the information that q observations give about f (the log of a k-DPP's
    weight); u is any acquisition function of one point. With X_pending the determinant is that
    of X given what is pending, so that the scores of points chosen one after another add up to
    the score of the batch. An ensemble's Σ/σ² is averaged over its members.

    Args:
        model: a fitted model of one outcome.
        quality: u, such as LogExpectedImprovement(model, best_f) or UpperConfidenceBound(model,
            beta); None: diversity alone, which is pure exploration.
        weight: w. With log u as quality and w = 2 the batch is weighed as the k-DPP of kernel
            u(x) (I + Σ/σ²)(x, x') u(x').
        noise: σ² in the units of the posterior; None: what the likelihood adds.
        posterior_transform: makes one outcome of several; quality takes its own.
        X_pending: points (p, d) that are being evaluated.
    """

    noise: Tensor

    def __init__(
        self,
        model: Model,
        quality: AcquisitionFunction | None = None,
        weight: float = 1.0,
        *,
        noise: float | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(model=model)
        if quality is not None and not isinstance(quality, AcquisitionFunction):
            raise StrategyError(
                "quality is an acquisition function of one point, such as "
                f"LogExpectedImprovement(model, best_f); got {quality!r}."
            )
        self.quality, self.weight = quality, weight
        self.posterior_transform = posterior_transform
        self._view = View(model, posterior_transform)
        looks = self._view.noise() if noise is None else torch.tensor([checked_noise(noise)])
        self.register_buffer("noise", looks)
        self.set_X_pending(X_pending)

    @t_batch_mode_transform()
    def forward(self, X: Tensor) -> Tensor:
        """Scores (b,) of b batches X (b, q, d). Cost (q + p)³ beyond the posterior's."""
        pending = X[..., :0, :]
        if self.X_pending is not None:
            pending = match_batch_shape(self.X_pending.to(X), X)
        # Pending points come first: the rest of the factor is then that of X given them.
        together = torch.cat([pending, X], dim=-2)
        covariance = self._view.gaussian(together).distribution.covariance_matrix
        relative = covariance / self.noise.to(X)[:, None, None]
        if self._view.is_ensemble:
            relative = relative.mean(dim=-3)
        factor = torch.linalg.cholesky(relative + torch.eye(together.shape[-2]).to(X))
        gains = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log()
        diversity = gains[..., pending.shape[-2] :].sum(dim=-1)
        if self.quality is None:
            return diversity
        return diversity + self.weight * self.quality(X.unsqueeze(-2)).sum(dim=-1)


__all__ = ["belief_from_model", "beliefs_from_models", "optimize_dpp", "qDPPScore"]


def optimize_dpp(  # noqa: PLR0913 - the arguments of optimize_acqf and optimize_acqf_discrete
    model: Model,
    bounds: Tensor | None = None,
    q: int = 1,
    *,
    choices: Tensor | None = None,
    strategy: str | Strategy = "est-dpp-sample",
    seed: int | None = None,
    X_pending: Tensor | None = None,
    X_avoid: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    inequality_constraints: Sequence[Constraint] | None = None,
    equality_constraints: Sequence[Constraint] | None = None,
    fixed_features: Mapping[int, float] | None = None,
    post_processing_func: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """The next q points for a model: each promising, all of them different.

    Within ``bounds`` the candidates are a Sobol set, points near the best of the training inputs,
    and what gradient ascent makes of them; or they are the rows of ``choices``. A strategy of
    Covey's chooses among them; by default the first point by EST, the others from a k-DPP.

    Args:
        model: a fitted model of one outcome, which is to be maximised.
        bounds: (2, d), lower and upper; None if ``choices`` are given.
        q: how many points.
        choices: (n, d), the points to choose among.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
        seed: of all randomness; None: drawn by torch, so that `torch.manual_seed` governs it.
        X_pending: (p, d), points being evaluated: never returned, and counted as observed.
        X_avoid: (a, d), points never returned.
        posterior_transform: makes one outcome of several, or turns the sign to minimise.
        inequality_constraints: (indices, coefficients, rhs) for Σ coefficient · x >= rhs.
        equality_constraints: the same for Σ coefficient · x = rhs, as of the parts of a mixture.
        fixed_features: values of some columns, within bounds.
        post_processing_func: what each candidate within bounds goes through before it is
            considered, such as the rounding of integers and categories.

    Returns:
        The points (q, d) in order of choice, of the model's type and device; and what each adds to
        log det(I + Σ/σ²) after those before it, which sum to the `qDPPScore` of the batch.

    Raises:
        ExhaustedError: fewer than q candidates are left.
        StrategyError: the model or an argument does not fit.
    """
    view = View(model, posterior_transform)
    rng = np.random.default_rng(int(torch.randint(2**31, ())) if seed is None else seed)
    taken = [
        checked_tensor(view, X, name)
        for name, X in (("X_pending", X_pending), ("X_avoid", X_avoid))
        if X is not None and len(X)
    ]
    search = _Search(view, strategy_of(strategy)[1], _count(q), taken, rng)
    constraints, equal = tuple(inequality_constraints or ()), tuple(equality_constraints or ())
    if choices is None and bounds is not None:
        region = Region(bounds, constraints, fixed_features or {}, post_processing_func, equal)
        X = search.within(region)
    elif choices is not None and bounds is None and not fixed_features and not post_processing_func:
        X = search.among(choices, constraints, equal)
    else:
        raise StrategyError(
            "give either bounds (2 x d) or choices (n x d); fixed_features and "
            "post_processing_func go with bounds."
        )
    belief = belief_from_model(
        model, X, X_pending=X_pending, posterior_transform=posterior_transform, standardize=True
    )
    # The paper's t counts batches: here as many as the data would fill (our choice).
    belief = replace(belief, round=1 + belief.looks // q)
    with one_thread():
        selection = checked_selection(search.strategy.choose(belief, q, rng), q, len(belief))
    indices = list(selection.indices)
    return X[indices], torch.from_numpy(_gains(belief, indices)).to(X)


@dataclass(frozen=True, eq=False)
class _Search:
    """The arguments of a search for candidates, in a region or in a list."""

    view: View
    strategy: Strategy
    q: int
    taken: Sequence[Tensor]
    rng: np.random.Generator

    def within(self, region: Region) -> Tensor:
        """Candidates inside a region."""
        region = replace(region, bounds=checked_tensor(self.view, region.bounds, "bounds"))
        taken = torch.cat([region.bounds[:0], *self.taken])
        if self.strategy.needs_model:
            found = promising(self.view, region, self.q, taken, self.rng)
        else:  # the strategy "sobol" takes them in this order
            found = region.scattered(max(512, 2 * self.q), self.rng)
            found = apart(found, taken, region, self.q)
        return self._enough(found)

    def among(
        self, choices: Tensor, constraints: Sequence[Constraint], equalities: Sequence[Constraint]
    ) -> Tensor:
        """Candidates out of a list."""
        if isinstance(self.strategy, Sobol):
            raise StrategyError('"sobol" fills a box and needs bounds; for choices use "random".')
        X = checked_tensor(self.view, choices, "choices")
        X = X[feasible(X, constraints, equalities)]
        return self._enough(X[new_rows(X, torch.cat([X[:0], *self.taken]))])

    def _enough(self, X: Tensor) -> Tensor:
        if len(X) >= self.q:
            return X
        raise ExhaustedError(
            f"asked for {self.q} points; distinct candidates that are feasible, and neither "
            f"pending nor to be avoided: {len(X)}. Ask for fewer, or allow more.",
            left=len(X),
        )


def _count(q: int) -> int:
    if not is_whole(q, 1):
        raise StrategyError(f"q is a whole number of points, at least 1; got {q!r}.")
    return q


def _gains(belief: Belief, indices: list[int]) -> Array:
    """What each candidate adds to log det(I + Σ/σ²) after those before it."""
    chosen = np.asarray(indices, dtype=np.intp)
    factor = cholesky(belief.information().block(chosen, chosen))
    return 2.0 * np.log(np.diagonal(factor))
