r"""Earlier studies as a prior mean: m(x) = c + Σ_s a_s m_s(x), each a_s ≥ 0 found with the fit.

m_s is the posterior mean of study s in its own standardised units. The weight a_s has a Gaussian
prior around ½, cut off at zero: a study that agrees with the results counts for more. One that
contradicts them all over gets a weight of exactly zero, which leaves the model as if it had not
been given; one whose mean is flat where the results are may keep any weight, and changes little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Indices, solve_lower, to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.gp.posterior import Posterior

EXPECTED, SPREAD = 0.5, 0.5  # of a weight, before any result (our choice)


@dataclass(frozen=True, eq=False)
class SourceMean:
    """The posterior mean of an earlier study, as a function of the coordinates of this one.

    ``columns`` are those of this study that it depends on; ``rest`` are coordinates of what only
    the earlier study varied, where that did best.
    """

    posterior: Posterior
    columns: Indices  # (c,)
    rest: Array  # (r,)

    def _theirs(self, at: Array) -> Array:
        """Coordinates (n, c + r) of the earlier study's model."""
        here = to_numpy(at)[:, self.columns]
        return np.hstack([here, np.tile(self.rest, (len(here), 1))])

    def mean(self, at: Array) -> Array:
        """m_s (n,) at the points (n, d)."""
        return self.posterior.belief(self._theirs(at), memory=0).mean

    def climbed(self, at: Array) -> tuple[Array, Array]:
        """m_s (n,) and its gradient (n, d)."""
        value, slope = self.posterior.upper(self._theirs(at), 0.0)
        gradient = np.zeros_like(at)
        gradient[:, self.columns] = slope[:, : len(self.columns)]
        return value, gradient


def trend(sources: Sequence[SourceMean], weights: Sequence[float], at: Array) -> Array | float:
    """Σ_s a_s m_s (n,) at the points (n, d); sources of weight zero are not looked at."""
    parts = [a * s.mean(at) for s, a in zip(sources, weights, strict=True) if a > 0.0]
    return np.sum(parts, axis=0) if parts else 0.0


def climbed_trend(
    sources: Sequence[SourceMean], weights: Sequence[float], at: Array
) -> tuple[Array, Array]:
    """Σ_s a_s m_s (n,) at the points (n, d), and its gradient (n, d)."""
    value, gradient = np.zeros(len(at)), np.zeros_like(at)
    for source, weight in zip(sources, weights, strict=True):
        if weight > 0.0:
            mean, slope = source.climbed(at)
            value, gradient = value + weight * mean, gradient + weight * slope
    return value, gradient


@dataclass(frozen=True)
class MeanFit:
    """The most probable constant and weights for one covariance, and what they cost."""

    constant: float
    weights: tuple[float, ...] = ()
    log_prior: float = 0.0  # of both, less that of zeros
    # -½ log det(I + V H'K⁻¹H): what integrating them out under their prior N(b, V) changes.
    integral: float = 0.0


def fitted_mean(
    factor: Array,
    values: Array,
    basis: Array,
    constant_variance: float | None,
    level: Array | None = None,
) -> MeanFit:
    """The most probable constant and weights of the means ``basis`` (n, s), given K + D = LL'.

    ``constant_variance`` is that of the prior of the constant; None: there is none. Weights below
    zero are set to zero, one after the other, and the rest found anew. ``level`` (n,) is 0 for rows
    without the constant, such as controls.
    """
    n, count = basis.shape
    constant = constant_variance is not None
    ones = np.ones(n) if level is None else level
    columns = np.column_stack([ones, basis]) if constant else basis
    expected = np.array([0.0] * constant + [EXPECTED] * count)
    spread = np.array([constant_variance] * constant + [SPREAD**2] * count, dtype=np.float64)
    white = solve_lower(factor, np.column_stack([columns, values]))
    h, y = white[:, :-1], white[:, -1]
    precision = h.T @ h + np.diag(1.0 / spread)
    pull = h.T @ y + expected / spread
    free = np.ones(len(expected), dtype=bool)
    found = np.zeros(len(expected))
    while free.any():
        found[:] = 0.0
        found[free] = np.linalg.solve(precision[np.ix_(free, free)], pull[free])
        low = free & (found < 0.0)
        low[: int(constant)] = False
        if not low.any():
            break
        free[np.flatnonzero(low)[np.argmin(found[low])]] = False
    cost = np.square(found - expected) - np.square(expected)
    root = np.sqrt(spread)
    _, size = np.linalg.slogdet(np.eye(len(root)) + root[:, None] * (h.T @ h) * root)
    start = int(constant)
    return MeanFit(
        constant=float(found[0]) if constant else 0.0,
        weights=tuple(float(a) for a in found[start:]),
        log_prior=-0.5 * float(np.sum(cost / spread)),
        integral=-0.5 * float(size),
    )
