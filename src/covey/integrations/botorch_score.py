"""The set score of a determinantal point process as a BoTorch acquisition function."""

from __future__ import annotations

from covey.errors import MissingExtraError, StrategyError
from covey.integrations.botorch_view import View, checked_noise

try:
    import torch
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import Model
    from botorch.utils.transforms import match_batch_shape, t_batch_mode_transform
    from torch import Tensor
except ImportError as error:
    raise MissingExtraError("botorch", "botorch") from error


class qDPPScore(AcquisitionFunction):  # noqa: N801 - BoTorch's own way to name a batch acquisition
    r"""Diversity and quality of a batch of q points.

    .. math:: \log\det(I + \Sigma_X / \sigma^2) + w \sum_{x \in X} u(x)

    The first term is twice the information that q looks give about f (the log of a k-DPP's
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
        X_pending: points (p, d) under way.
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
        # What is pending comes first: the rest of the factor is then that of X given it.
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
