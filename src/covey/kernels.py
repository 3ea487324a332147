r"""Stationary kernels with one length-scale per input, and their matrix on n points.

Notation: r² = Σ_d (a_d - b_d)² / ℓ_d² is the scaled squared distance, s the variance (paper: γ²).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from covey.arrays import Array, Indices, at_least, each_chunk, like, namespace, to_numpy
from covey.errors import NumericsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FEATURES = 1024  # cosine/sine pairs of a pathwise prior draw: its error falls like 1/sqrt(pairs)


class Kernel(Protocol):
    """A stationary covariance function, k(a, b) as a function of r²."""

    @property
    def lengths(self) -> tuple[float, ...]:
        """One length-scale ℓ_d per input."""
        ...

    @property
    def variance(self) -> float:
        """k(x, x)."""
        ...

    def __call__(self, a: Array, b: Array, /) -> Array:
        """Covariances of the rows of a (n, d) with those of b (m, d): (n, m)."""
        ...

    def at_distance(self, r2: Array, /) -> Array:
        """k as a function of r²."""
        ...

    def slope(self, r2: Array, /) -> Array:
        """dk / dr²."""
        ...

    def frequencies(self, rng: np.random.Generator, pairs: int, /) -> Array:
        """Draws (pairs, d) from the spectral density, for random Fourier features."""
        ...


def squared_distance(a: Array, b: Array, lengths: tuple[float, ...]) -> Array:
    """r² between the rows of a (n, d) and b (m, d): (n, m), by one matrix product. Cost n m d."""
    if a.shape[1] != len(lengths):
        raise NumericsError(
            f"points have {a.shape[1]} coordinates but the kernel has {len(lengths)} "
            "length-scales; give one length-scale per coordinate."
        )
    xp, scale = namespace(a), like(np.asarray(lengths), a)
    # Centring keeps |a|² + |b|² - 2ab from cancelling when points lie far from the origin.
    centre = xp.sum(b, axis=0) / len(b) if len(b) else 0.0
    a, b = (a - centre) / scale, (b - centre) / scale
    # |a|² · 1 + a · (-2b) + 1 · |b|²: two more columns save two passes over n · m entries.
    left = xp.concat([a, xp.sum(a * a, axis=1)[:, None], xp.ones_like(a[:, :1])], axis=1)
    right = xp.concat([-2.0 * b, xp.ones_like(b[:, :1]), xp.sum(b * b, axis=1)[:, None]], axis=1)
    return at_least(left @ right.T, 0.0)


@dataclass(frozen=True, slots=True)
class SquaredExponential:
    r"""Squared-exponential kernel, the paper's (its misprint (x_d - y_d²) corrected, MATH E2).

    .. math:: k(a, b) = s\,e^{-r^2/2}

    >>> SquaredExponential(lengths=(0.5,), variance=2.0)(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[2.]])
    """

    lengths: tuple[float, ...]
    variance: float = 1.0

    def __call__(self, a: Array, b: Array, /) -> Array:
        """Covariances (n, m) of the rows of a and b."""
        return self.at_distance(squared_distance(a, b, self.lengths))

    def at_distance(self, r2: Array, /) -> Array:
        """s exp(-r²/2)."""
        return self.variance * namespace(r2).exp(-0.5 * r2)

    def slope(self, r2: Array, /) -> Array:
        """dk/dr² = -k/2."""
        return -0.5 * self.at_distance(r2)

    def frequencies(self, rng: np.random.Generator, pairs: int, /) -> Array:
        """Gaussian with standard deviations 1/ℓ_d, (pairs, d)."""
        return rng.standard_normal((pairs, len(self.lengths))) / np.asarray(self.lengths)


@dataclass(frozen=True, slots=True)
class Matern52:
    r"""Matérn kernel with ν = 5/2.

    .. math:: k(a, b) = s\,(1 + \sqrt5 r + \tfrac53 r^2)\,e^{-\sqrt5 r}

    >>> Matern52(lengths=(0.5,), variance=2.0)(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[2.]])
    """

    lengths: tuple[float, ...]
    variance: float = 1.0

    def __call__(self, a: Array, b: Array, /) -> Array:
        """Covariances (n, m) of the rows of a and b."""
        return self.at_distance(squared_distance(a, b, self.lengths))

    def at_distance(self, r2: Array, /) -> Array:
        """s (1 + q + q²/3) exp(-q) with q = √5 r."""
        xp = namespace(r2)
        p = xp.sqrt(r2)  # in place from here on, since most of an ask's time is spent here
        p *= -(5.0**0.5)  # -q
        value = p / 3.0
        value -= 1.0
        value *= p
        value += 1.0
        value *= xp.exp(p)
        if self.variance != 1.0:
            value *= self.variance
        return value

    def slope(self, r2: Array, /) -> Array:
        """dk/dr² = -(5/6) s (1 + q) exp(-q), finite at r = 0."""
        xp = namespace(r2)
        q = xp.sqrt(5.0 * r2)
        falling = xp.exp(-q)
        q += 1.0  # in place, as in `at_distance`
        q *= (-5.0 / 6.0) * self.variance
        q *= falling
        return q

    def frequencies(self, rng: np.random.Generator, pairs: int, /) -> Array:
        """Multivariate Student t with 5 degrees of freedom and scales 1/ℓ_d, (pairs, d)."""
        normal = rng.standard_normal((pairs, len(self.lengths))) / np.asarray(self.lengths)
        return normal * np.sqrt(5.0 / rng.chisquare(5.0, size=(pairs, 1)))


KERNELS: Mapping[str, Any] = {"squared-exponential": SquaredExponential, "matern52": Matern52}
"""The kernels by the name that a log or a user gives them."""


@dataclass(frozen=True)
class KernelMatrix:
    """The prior covariance of n points, computed by blocks."""

    kernel: Kernel
    at: Array  # (n, d)

    @cached_property
    def diagonal(self) -> Array:
        """k(x, x) at every point, (n,)."""
        return like(np.full(len(self.at), self.kernel.variance), self.at)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Covariances of the points ``rows`` with ``cols``: (len(rows), len(cols))."""
        return self.kernel(self.at[rows], self.at[cols])

    def columns(self, cols: Indices) -> Array:
        """Covariances of all points with ``cols``: (n, len(cols))."""
        return self.kernel(self.at, self.at[cols])

    def on(self, indices: Indices) -> KernelMatrix:
        """The same kernel on a subset of the points."""
        return KernelMatrix(self.kernel, self.at[indices])

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array
    ) -> tuple[Callable[[slice], Array], Array]:
        """Draws of the prior by random Fourier features (Rahimi & Recht 2007).

        Returns a function from a slice of the draws to their values at the n points, (len, n), and
        the values of all draws at ``elsewhere`` (m, d), (draws, m). The draws share frequencies and
        differ in their weights. Cost pairs · draws · (n + m).
        """
        omega = self.kernel.frequencies(rng, _FEATURES)
        scale = np.sqrt(self.kernel.variance / _FEATURES)
        cosine, sine = scale * rng.standard_normal((2, _FEATURES, draws))

        def at(points: Array, which: slice) -> Array:
            def some(part: slice) -> Array:
                phase = points[part] @ omega.T
                return np.cos(phase) @ cosine[:, which] + np.sin(phase) @ sine[:, which]

            return np.concatenate(list(each_chunk(some, points, _FEATURES))).T

        return lambda which: at(to_numpy(self.at), which), at(elsewhere, slice(None))

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        r"""Gradient at each point of x ↦ Σ_i w_i k(x, x_i): (n, d).

        .. math:: \partial_d = \sum_i w_i\, 2 k'(r^2) (x_d - x_{i,d}) / \ell_d^2

        for x_i = ``elsewhere`` (m, d) and weights (m,). Cost n · m · d.
        """
        mine, lengths = to_numpy(self.at), np.square(self.kernel.lengths)

        def some(part: slice) -> Array:
            at = mine[part]
            r2 = squared_distance(at, elsewhere, self.kernel.lengths)
            pull = 2.0 * weights * self.kernel.slope(r2)
            return (at * pull.sum(axis=1, keepdims=True) - pull @ elsewhere) / lengths

        return np.concatenate(list(each_chunk(some, mine, len(elsewhere))))
