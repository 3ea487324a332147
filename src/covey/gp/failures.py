"""Failed trials: they lower the posterior mean around them towards the worst value told.

Notation: q(x) is the share of the trials around x that failed, y_w the worst value told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.arrays import Array, Mask, each_chunk, to_numpy
from covey.kernels import squared_distance

# Our choices, in the unit cube. The reach h of a trial, as a share of the distance to the nearest
# trial that ended otherwise; shorter for results, or many distant results would hide a failure.
_TOLD, _FAILED = 0.25, 0.35
_LEAST, _MOST = 1e-4, 0.25  # bounds on h; the upper one is per root dimension
_BACKGROUND = 0.03  # c: weight of success everywhere, so that q vanishes far from all trials


@dataclass(frozen=True, eq=False)
class Failures:
    r"""Where trials were told, where they failed, and what a failure is taken for.

    .. math:: q(x) = \frac{\sum_{i\ failed} k_i(x)}{c + \sum_i k_i(x)}, \quad
              k_i(x) = e^{-|x - x_i|^2 / 2h_i^2}, \qquad \mu'(x) = \mu(x) - q(x) [\mu(x) - y_w]_+

    So μ' is the expected value of a trial that fails with probability q and is then worth y_w. A
    failure amid results hardly reaches beyond itself; a group of failures lowers the mean between
    them too, until a result is told there.
    """

    at: Array  # (m, d) encoded: told, then failed
    reach: Array  # (m,), h
    failed: Mask  # (m,)
    worst: float  # y_w, in units of the mean

    @staticmethod
    def among(told: Array, failed: Array, worst: float) -> Failures:
        """From the points told (n, d) and failed (f, d), and the worst value told. Cost n f d."""
        apart = np.sqrt(squared_distance(told, failed, (1.0,) * told.shape[1]))
        near = np.concatenate([_TOLD * apart.min(axis=1), _FAILED * apart.min(axis=0)])
        reach = np.clip(near, _LEAST, _MOST * np.sqrt(told.shape[1]))
        return Failures(np.vstack([told, failed]), reach, np.arange(len(reach)) >= len(told), worst)

    def share(self, at: Array) -> Array:
        """q at the points (n, d): (n,), on the host. Cost n · m · d."""
        at = to_numpy(at)

        def some(part: slice) -> Array:
            weights = self._weights(at[part])
            return (self.failed @ weights) / (_BACKGROUND + weights.sum(axis=0))

        return np.concatenate(list(each_chunk(some, at, len(self.at))))

    def lowered(self, mean: Array, at: Array) -> Array:
        """μ' (n,) from the mean μ (n,) at the points (n, d). Cost n · m · d."""
        return mean - self.share(at) * np.maximum(mean - self.worst, 0.0)

    def climbed(self, mean: Array, slope: Array, at: Array) -> tuple[Array, Array]:
        """μ' (n,) and its gradient (n, d), from μ (n,) and its gradient ``slope`` (n, d)."""
        weights = self._weights(at)
        total = _BACKGROUND + weights.sum(axis=0)
        share = (self.failed @ weights) / total
        # ∂q = Σ_i (1_failed - q) ∂k_i / total, with ∂k_i = k_i (x_i - x)/h².
        pull = (self.failed[:, None] - share) * weights / np.square(self.reach)[:, None] / total
        steep = pull.T @ self.at - at * pull.sum(axis=0)[:, None]
        above = np.maximum(mean - self.worst, 0.0)
        kept = np.where(above > 0.0, 1.0 - share, 1.0)
        return mean - share * above, kept[:, None] * slope - above[:, None] * steep

    def _weights(self, at: Array) -> Array:
        """k_i at the points (n, d): (m, n)."""
        r2 = squared_distance(self.at, at, (1.0,) * self.at.shape[1])
        weights: Array = np.exp(-0.5 * r2 / np.square(self.reach)[:, None])
        return weights
