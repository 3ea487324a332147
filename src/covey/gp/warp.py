"""The warp: a monotone transform that makes outcomes look Gaussian, and its inverse.

Outcomes of a search are often skewed: many bad values far apart, few good ones close together.
Unwarped, the fit is dominated by the bad ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.arrays import Array

_LEAST = 5  # observations below which nothing is warped
_POWERS = (0.0, 3.0)  # range of λ in which the transform can be inverted in float64
_FAR = 5e8  # bound on an unwarped outcome in standard deviations, about e^20
_NODES = 20  # of the Gauss-Hermite quadrature over a belief
_TABLE = 2048  # values of w at which `Warp.expected` is tabulated
_STEPS = 97  # of the quadrature over the noise, for each of them


@dataclass(frozen=True, slots=True)
class Warp:
    """w = (YJ_λ(z) - middle)/width: a standardised outcome z, warped and standardised again.

    >>> Warp(1.0).transform(np.array([-2.0, 3.0]))
    array([-2.,  3.])
    >>> Warp(2.0).untransform(Warp(2.0).transform(np.array([-2.0, 3.0]))).round(12)
    array([-2.,  3.])
    """

    power: float = 1.0  # λ; 1 is the identity
    middle: float = 0.0
    width: float = 1.0
    low: float = -np.inf  # `untransform` stays within these: a bounded warp has no inverse beyond
    high: float = np.inf

    def transform(self, z: Array) -> Array:
        """w, by YJ_λ(z) = ((1 + z)^λ - 1)/λ for z ≥ 0, -((1 - z)^{2-λ} - 1)/(2 - λ) below."""
        if self == Warp():
            return z
        up, down = np.maximum(z, 0.0), np.maximum(-z, 0.0)
        warped = np.where(z >= 0.0, _power(up, self.power), -_power(down, 2.0 - self.power))
        return (warped - self.middle) / self.width

    def log_slopes(self, z: Array) -> Array:
        """log dw/dz = (λ - 1) sign(z) log(1 + |z|) - log width, the log Jacobian at each z."""
        if self == Warp():
            return np.zeros(len(z))
        return (self.power - 1.0) * np.sign(z) * np.log1p(np.abs(z)) - np.log(self.width)

    def undone(self, w: Array) -> Array:
        """The inverse of `transform`; -∞ below the range of a bounded warp (λ > 2).

        >>> Warp(3.0).undone(np.array([-0.9, -1.0, -2.0])).round(6)
        array([ -9., -inf, -inf])
        """
        w = self.middle + self.width * w
        up, down = np.maximum(w, 0.0), np.maximum(-w, 0.0)
        return np.where(w >= 0.0, _root(up, self.power), -_root(down, 2.0 - self.power))

    def untransform(self, w: Array) -> Array:
        """The inverse of `transform`, kept within ``low`` and ``high``."""
        return np.clip(self.undone(w), max(self.low, -_FAR), min(self.high, _FAR))

    def expected(self, w: Array, noise: float) -> Array:
        """E z of an observation at w: the mean of `untransform` over w + N(0, noise²).

        Computed as the unwarped w plus a correction for the noise, interpolated in a table; a table
        of z itself would be wrong between its entries where the warp is steep. A fitted warp has
        finite ``low`` and ``high``, and beyond the table the correction is zero. The quadrature is
        trapezoidal, since the ends are kinks that a Gaussian rule misses.
        """
        if self == Warp():
            return w
        if noise == 0.0:
            return self.untransform(w)
        steps = np.linspace(-6.0, 6.0, _STEPS)
        weights = np.exp(-0.5 * np.square(steps))
        low, high = self.transform(np.array([self.low, self.high]))
        table = np.linspace(low + noise * steps[0], high + noise * steps[-1], _TABLE)
        means = self.untransform(table[:, None] + noise * steps) @ (weights / weights.sum())
        return self.untransform(w) + np.interp(w, table, means - self.untransform(table))

    def moments(self, mean: Array, std: Array, noise: float = 0.0) -> tuple[Array, Array]:
        """Mean and standard deviation of `expected` for w ~ N(mean, std²), (n,) each: quadrature.

        With noise 0 they are those of z itself.
        """
        if self == Warp():
            return mean, std
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        weights = weights / weights.sum()
        z = self.expected(mean[:, None] + std[:, None] * nodes, noise)
        centre = z @ weights
        return centre, np.sqrt(np.square(z - centre[:, None]) @ weights)


def _power(u: Array, power: float) -> Array:
    """((1 + u)^p - 1)/p, or log(1 + u) at p = 0."""
    if abs(power) < 1e-8:
        return np.log1p(u)
    return np.expm1(power * np.log1p(u)) / power


def _root(v: Array, power: float) -> Array:
    """The inverse of `_power`; infinite from -1/p on, which bounds `_power` for p < 0."""
    with np.errstate(over="ignore", divide="ignore"):
        if abs(power) < 1e-8:
            return np.expm1(v)
        return np.expm1(np.log1p(np.maximum(power * v, -1.0)) / power)


def fitted_warp(z: Array) -> Warp:
    """The warp with the most likely λ for standardised outcomes (n,); the identity for few."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import yeojohnson_llf

    if len(z) < _LEAST or np.std(z) < 0.5:  # too few, or constant up to rounding
        return Warp()
    found = minimize_scalar(
        lambda power: -float(yeojohnson_llf(power, z)), bounds=_POWERS, method="bounded"
    )
    warped = Warp(float(found.x)).transform(z)
    span = float(np.ptp(z))  # predictions may go one range beyond the data (our choice)
    ends = float(z.min()) - span, float(z.max()) + span
    return Warp(float(found.x), float(warped.mean()), float(warped.std()), *ends)
