r"""Warp: a monotone bend of the outcome that makes it look Gaussian (Yeo & Johnson 2000).

Outcomes of a search are often skewed: many terrible values, few good ones a hair apart. A Gaussian
process spends itself on the terrible ones; after the bend it sees the good ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.arrays import Array

_LEAST = 5  # observations below which nothing is bent
_POWERS = (0.0, 3.0)  # within these the bend is gentle enough to be undone in float64
_FAR = 5e8  # the most standard deviations an outcome is carried back to, about e^20
_NODES = 20  # of the quadrature that carries a belief back to outcome units
_TABLE = 2048  # values at which the mean outcome is worked out, to be read off between them
_STEPS = 97  # of the noise, for each of them


@dataclass(frozen=True, slots=True)
class Warp:
    """Standardised outcome -> bent and standardised again, w = (YJ_λ(z) - middle)/width.

    >>> Warp(1.0).bend(np.array([-2.0, 3.0]))
    array([-2.,  3.])
    >>> Warp(2.0).straighten(Warp(2.0).bend(np.array([-2.0, 3.0]))).round(12)
    array([-2.,  3.])
    """

    power: float = 1.0
    middle: float = 0.0
    width: float = 1.0
    low: float = -np.inf  # z is never carried back beyond these: a bounded bend has no way back
    high: float = np.inf

    def bend(self, z: Array) -> Array:
        """YJ_λ(z) = ((1 + z)^λ - 1)/λ for z ≥ 0, -((1 - z)^{2-λ} - 1)/(2 - λ) below."""
        if self == Warp():
            return z
        up, down = np.maximum(z, 0.0), np.maximum(-z, 0.0)
        bent = np.where(z >= 0.0, _power(up, self.power), -_power(down, 2.0 - self.power))
        return (bent - self.middle) / self.width

    def log_slopes(self, z: Array) -> Array:
        r"""log dw/dz = (λ - 1) sign(z) log(1 + |z|) - log width; summed, the price of a bend."""
        if self == Warp():
            return np.zeros(len(z))
        return (self.power - 1.0) * np.sign(z) * np.log1p(np.abs(z)) - np.log(self.width)

    def undone(self, w: Array) -> Array:
        """The inverse of `bend`: -∞ below the least that a bounded bend (λ > 2) can come to.

        >>> Warp(3.0).undone(np.array([-0.9, -1.0, -2.0])).round(6)
        array([ -9., -inf, -inf])
        """
        w = self.middle + self.width * w
        up, down = np.maximum(w, 0.0), np.maximum(-w, 0.0)
        return np.where(w >= 0.0, _root(up, self.power), -_root(down, 2.0 - self.power))

    def straighten(self, w: Array) -> Array:
        """The inverse of `bend`, kept within ``low`` and ``high``."""
        return np.clip(self.undone(w), max(self.low, -_FAR), min(self.high, _FAR))

    def expected(self, w: Array, noise: float) -> Array:
        """E z of a look at w, to which it adds N(0, noise²) before the bend is undone.

        Read off a table, of a warp with ends, as fitted ones have: beyond the table every look lies
        beyond an end. (The trapezoidal rule, since the ends are kinks that a Gaussian one misses.)
        """
        if self == Warp():
            return w
        if noise == 0.0:
            return self.straighten(w)
        steps = np.linspace(-6.0, 6.0, _STEPS)
        weights = np.exp(-0.5 * np.square(steps))
        low, high = self.bend(np.array([self.low, self.high]))
        table = np.linspace(low + noise * steps[0], high + noise * steps[-1], _TABLE)
        means = self.straighten(table[:, None] + noise * steps) @ (weights / weights.sum())
        return np.interp(w, table, means)

    def moments(self, mean: Array, std: Array, noise: float = 0.0) -> tuple[Array, Array]:
        """Mean and standard deviation of `expected` when w ~ N(mean, std²), by quadrature.

        Without noise, those of z itself.
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
    """The inverse of `_power`; a bounded bend (p < 0) ends at -1/p, which comes from infinity."""
    with np.errstate(over="ignore", divide="ignore"):
        if abs(power) < 1e-8:
            return np.expm1(v)
        return np.expm1(np.log1p(np.maximum(power * v, -1.0)) / power)


def fitted_warp(z: Array) -> Warp:
    """The λ under which standardised outcomes (n,) are most nearly Gaussian."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import yeojohnson_llf

    if len(z) < _LEAST or np.std(z) < 0.5:  # constant up to rounding: there is nothing to bend
        return Warp()
    found = minimize_scalar(
        lambda power: -float(yeojohnson_llf(power, z)), bounds=_POWERS, method="bounded"
    )
    bent = Warp(float(found.x)).bend(z)
    span = float(np.ptp(z))  # predictions may go as far again beyond what was seen (our choice)
    ends = float(z.min()) - span, float(z.max()) + span
    return Warp(float(found.x), float(bent.mean()), float(bent.std()), *ends)
