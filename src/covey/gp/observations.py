"""Observations: what was told, standardised, with replicates of a point pooled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from covey.arrays import Array, Indices, Mask

# Warp: a monotone bend of the outcome that makes it look Gaussian (Yeo & Johnson 2000).
#
# Outcomes of a search are often skewed: many terrible values, few good ones a hair apart. A
# Gaussian process spends itself on the terrible ones; after the bend it sees the good ones.

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

        That is z itself, and what the noise adds, which is read off a table: z read off it would be
        wrong between two entries where the bend is steep. It is a table of a warp with ends, as
        fitted ones have: beyond it every look lies beyond an end, and noise adds nothing.
        (The trapezoidal rule, since the ends are kinks that a Gaussian one misses.)
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
        return self.straighten(w) + np.interp(w, table, means - self.straighten(table))

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


# A gap of so many ranges of the rest makes what lies below it a penalty: several results that are
# alike, which is to a share of that gap, or one alone, which must be farther off. (Our choice.)
_FAR_APART, _FAR_ALONE, _ALIKE = 10.0, 1000.0, 0.01
LEAST_NOISE = 1e-6  # variance of one look in standardised units, MATH section 1
_MOST_SPREAD = 1e75  # ... and the most of its square root: its square must not overflow
_SMALLEST = float(np.finfo(np.float64).smallest_normal)  # below it, numbers have fewer digits
_BY_ROW = ("at", "values", "counts", "known", "within", "slopes")


@dataclass(frozen=True)
class Observations:
    r"""Pooled, standardised data: one row per distinct point (and kind of noise).

    Rows come in the order in which their points were first told of, so that those of a longer log
    begin with those of a shorter one.

    m looks at one point with noise σ² enter the likelihood as their mean with noise σ²/m, times a
    factor that only σ² sees, (2πσ²)^{-(m-1)/2} m^{-1/2} exp(-scatter / 2σ²); so pooling is exact.
    Looks whose standard error is known are pooled by their precision.
    """

    at: Array  # (n, d) encoded
    values: Array  # (n,) standardised means
    counts: Array  # (n,) looks pooled into each row
    known: Array  # (n,) variance of the mean where it is known, nan where σ² is to be learnt
    within: Array  # (n,) sum of squares within replicates of unknown noise
    slopes: Array  # (n,) log slope of the warp, summed over the looks
    shift: float  # value = shift + scale · straightened standardised value
    scale: float
    warp: Warp = field(default_factory=Warp)
    penalties: int = 0  # looks that were reined in

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, indices: Indices) -> Observations:
        """Some of the rows, in the units and with the warp of all.

        What is left out is left out of the likelihood whole: a row's looks, their scatter and what
        the warp costs them go together, so that bent and straight compare as they do on all rows.
        """
        keep = {name: getattr(self, name)[indices] for name in _BY_ROW}
        return replace(self, **keep)

    @cached_property
    def scatter(self) -> float:
        """Sum of squares within replicates of unknown noise."""
        return float(self.within.sum())

    @cached_property
    def log_slope(self) -> float:
        """Of the warp, summed over all looks."""
        return float(self.slopes.sum())

    @cached_property
    def learnt(self) -> Mask:
        """Rows whose noise is σ², to be learnt."""
        return np.isnan(self.known)

    @property
    def looks(self) -> int:
        """Number of observations before pooling."""
        return int(self.counts.sum())

    @cached_property
    def spare(self) -> int:
        """Degrees of freedom within replicates of unknown noise."""
        return int((self.counts[self.learnt] - 1.0).sum())

    @property
    def best(self) -> float:
        """Largest pooled value, standardised."""
        return float(self.values.max())

    @cached_property
    def log_counts(self) -> float:
        """Σ log m over the rows of unknown noise."""
        return float(np.log(self.counts[self.learnt]).sum())

    def noise(self, sigma2: float) -> Array:
        """Variance of each row when one look has variance σ²."""
        return np.where(self.learnt, sigma2 / self.counts, self.known)


def reined_in(values: Array) -> Array:
    """Outcomes to maximise (n,), with penalties brought to just below the rest.

    Crashed runs are often told as -1e6. Taken at its word, one such value makes all others look
    alike. Where at most a quarter of the outcomes lie below a gap of more than ten times the range
    of the rest, and are alike to a hundredth of that gap, they are told apart from the rest by one
    range of it; a single one from a gap of a thousand ranges on. (Our choice.) Outcomes that differ
    among themselves are results, however good the rest has become.

    >>> reined_in(np.array([1.0, 2.0, 3.0, -1e6, 2.5]))
    array([ 1. ,  2. ,  3. , -1. ,  2.5])
    """
    ordered = np.sort(values)
    below = np.arange(1, len(values) // 4 + 1)  # how many might be penalties
    ranges = ordered[-1] - ordered[below]
    gaps = ordered[below] - ordered[below - 1]
    far = gaps > np.where(below == 1, _FAR_ALONE, _FAR_APART) * ranges
    alike = ordered[below - 1] - ordered[0] <= _ALIKE * gaps
    apart = below[(ranges > 0.0) & far & alike]
    if len(apart) == 0:
        return values
    worst = ordered[apart[-1]]
    return np.maximum(values, worst - (ordered[-1] - worst))


def observe(at: Array, values: Array, sems: Array, *, warped: bool = False) -> Observations:
    """Standardise and pool: at (N, d), values (N,), sems (N,) with nan where unknown.

    Penalties are reined in, and ``warped`` bends the outcomes first, unless some standard error is
    known: it would have to follow.

    >>> at, values = np.array([[0.0], [1.0], [0.0]]), np.array([1.0, 4.0, 3.0])
    >>> data = observe(at, values, np.full(3, np.nan))
    >>> data.counts, data.looks
    (array([2., 1.]), 3)
    """
    told = values
    if np.isnan(sems).all():
        values = reined_in(values)
    shift = float(values.mean())
    reach = float(np.abs(values - shift).max())
    # A constant outcome says nothing about scale; rounding must not be blown up into signal.
    if reach <= 1e-12 * max(float(np.abs(values).max()), _SMALLEST):
        # so that a change of unit changes nothing else
        scale = abs(shift) if abs(shift) >= _SMALLEST else 1.0
    else:  # by the reach first, so that squares of tiny outcomes do not vanish
        scale = reach * float(np.std((values - shift) / reach))
    z = (values - shift) / scale
    warp = fitted_warp(z) if warped and np.isnan(sems).all() else Warp()
    slopes = warp.log_slopes(z)
    z = warp.bend(z)
    variance = noise_variance(sems, scale)
    known = ~np.isnan(sems)
    first, group = first_and_group(np.column_stack([at, known]))
    counts = np.bincount(group).astype(float)
    weights = np.where(known, 1.0 / np.where(known, variance, 1.0), 1.0)
    total = _sums(group, weights)
    means = _sums(group, weights * z) / total
    return Observations(
        at=at[first],
        values=means,
        counts=counts,
        known=np.where(known[first], 1.0 / total, np.nan),
        within=_sums(group, np.where(known, 0.0, np.square(z - means[group]))),
        slopes=_sums(group, slopes),
        shift=shift,
        scale=scale,
        warp=warp,
        penalties=int(np.count_nonzero(values != told)),
    )


def noise_variance(error: Array | float, scale: float) -> Array:
    """Of looks with these standard errors, in units of ``scale``; not below `LEAST_NOISE`.

    >>> noise_variance(0.2, 2.0), noise_variance(0.1, 1e-200)
    (array(0.01), array(1.e+150))
    """
    with np.errstate(over="ignore"):
        spread = np.minimum(np.divide(error, scale), _MOST_SPREAD)
    return np.asarray(np.maximum(np.square(spread), LEAST_NOISE))


def _sums(group: Indices, values: Array) -> Array:
    """The values summed by group."""
    return np.asarray(np.bincount(group, values), dtype=np.float64)


def first_and_group(rows: Array) -> tuple[Indices, Indices]:
    """Where each distinct row occurs first, in that order; and which of them each row is."""
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group.reshape(-1)]
