"""The warp: a monotone transform that makes outcomes look Gaussian, and its inverse.

Outcomes of a search are often skewed: many bad values far apart, few good ones close together.
Unwarped, the fit is dominated by the bad ones. Where they span many decades, the best of them are
alike in any warp that begins from their mean and standard deviation, so `own_frame` finds another
zero and unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from covey.arrays import Array

_LEAST = 5  # observations below which nothing is warped
_MOST = 3.0  # λ; from 0 to here the transform can be inverted in float64
_FAR = 5e8  # bound on an unwarped outcome where nothing was fitted, about e^20
_TABLE, _REACH = 2048, 20.0  # values of w at which `Warp.expected` is tabulated, and the farthest
# Expectations over N(0, 1) are sums over these. Even steps, since the ends of a warp are kinks,
# which a Gaussian rule misses.
_STEPS = np.linspace(-8.0, 8.0, 97)
_WEIGHTS = np.exp(-0.5 * np.square(_STEPS))
_WEIGHTS /= _WEIGHTS.sum()


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
    low: float = -_FAR  # `untransform` stays within these: a bounded warp has no inverse beyond
    high: float = _FAR

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
        return np.clip(self.undone(w), self.low, self.high)

    def expected(self, w: Array, noise: float) -> Array:
        """E z of an observation at w: the mean of `untransform` over w + N(0, noise²).

        Computed as the unwarped w plus a correction for the noise, interpolated in a table; a table
        of z itself would be wrong between its entries where the warp is steep. Beyond ``low`` and
        ``high`` the correction is zero.
        """
        if self == Warp():
            return w
        if noise == 0.0:
            return self.untransform(w)
        ends = np.clip(self.transform(np.array([self.low, self.high])), -_REACH, _REACH)
        low, high = ends + noise * _STEPS[[0, -1]]
        table = np.linspace(low, high, _TABLE)
        means = self.untransform(table[:, None] + noise * _STEPS) @ _WEIGHTS
        return self.untransform(w) + np.interp(w, table, means - self.untransform(table))

    def moments(self, mean: Array, std: Array, noise: float = 0.0) -> tuple[Array, Array]:
        """Mean and standard deviation of `expected` for w ~ N(mean, std²), (n,) each: quadrature.

        With noise 0 they are those of z itself.
        """
        if self == Warp():
            return mean, std
        z = self.expected(mean[:, None] + std[:, None] * _STEPS, noise)
        centre = z @ _WEIGHTS
        return centre, np.sqrt(np.square(z - centre[:, None]) @ _WEIGHTS)


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


def fitted_warp(z: Array, most: float = _MOST) -> Warp:
    """The warp with the most likely λ up to ``most`` for outcomes (n,); the identity for few."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import yeojohnson_llf

    if len(z) < _LEAST or np.std(z) < 0.5:  # too few, or constant up to rounding
        return Warp()
    found = minimize_scalar(
        lambda power: -float(yeojohnson_llf(power, z)), bounds=(0.0, most), method="bounded"
    )
    warped = Warp(float(found.x)).transform(z)
    span = float(np.ptp(z))  # predictions may go one range beyond the data (our choice)
    ends = float(z.min()) - span, float(z.max()) + span
    return Warp(float(found.x), float(warped.mean()), float(warped.std()), *ends)


# The frame of a warp: what it takes for zero and for one.

Frame: TypeAlias = tuple[float, float, Warp]

_CLOSE = 0.1  # deviations; where the best quarter lies within this, it may have its own frame
_FINEST = 1e-3  # deviations, as the least noise; a finer unit would reward a run that converges
_STEEPEST = 2.0  # λ, a logarithm: beyond it all decades of the bad side have one value


def own_frame(values: Array, mean: float, deviation: float) -> Frame:
    """The zero, the unit and the warp that make outcomes to maximise (n,) most nearly Gaussian.

    Compared by the Gaussian log likelihood of the outcomes as they were told: mean and standard
    deviation; and, where the best quarter lies within a tenth of a deviation, zeros and units
    taken from quantiles. (Our choice.)
    """
    frames = [(mean, deviation, fitted_warp((values - mean) / deviation))]
    q25, middle, q75, q90, best = np.quantile(values, [0.25, 0.5, 0.75, 0.9, 1.0]).tolist()
    if best - q75 < _CLOSE * deviation:
        units = (q75 - q25, best - q75, best - q90, best - middle)
        for zero, unit in product((middle, q75, best), units):
            if unit >= _FINEST * deviation:
                frames.append((zero, unit, fitted_warp((values - zero) / unit, _STEEPEST)))

    def likelihood(frame: Frame) -> float:
        zero, unit, warp = frame
        return float(warp.log_slopes((values - zero) / unit).sum()) - len(values) * math.log(unit)

    warped = (frame for frame in frames if frame[-1] != Warp())
    return max(warped, key=likelihood, default=frames[0])
