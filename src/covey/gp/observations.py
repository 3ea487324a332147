"""Results as a Gaussian process sees them: penalties clipped, standardised, warped and pooled.

`observe` does all of it and returns `Observations`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from covey.arrays import Array, Indices, Mask
from covey.gp.shifts import Sharing, Shifts, pooled_shifts
from covey.gp.warp import Frame, Warp, fitted_warp, own_frame

# Pooled and standardised data.

# Results below a gap of so many ranges of the rest are penalties: several that agree to this share
# of the gap, or a single one, which must be farther away. (Our choice.)
_FAR_APART, _FAR_ALONE, _ALIKE = 10.0, 1000.0, 0.01
# A result beyond belief is so many times as far above the rest as any of it is from zero, and by
# more than the square of how the rest itself reaches beyond its median; fewer results allow no
# judgement. (Our choice; tests/laws/test_results_beyond_belief.py has what must not be doubted.)
_BEYOND, _REACH, _FEWEST = 1e4, 2.0, 10
LEAST_NOISE = 1e-6  # smallest variance of one observation in standardised units, MATH 1
_MOST_SPREAD = 1e75  # largest standard deviation of one: its square must not overflow
_SMALLEST = float(np.finfo(np.float64).smallest_normal)  # below it, numbers have fewer digits
View = Literal["warped", "straight", "framed"]
"""How outcomes are seen: warped, as they are, or warped in their own frame."""
_BY_ROW = ("at", "values", "counts", "known", "within", "slopes")


@dataclass(frozen=True)
class Observations:
    r"""Pooled, standardised data: one row per distinct point (and kind of noise).

    Rows are in the order in which their points were first told, so the rows of a longer log begin
    with those of a shorter one.

    m observations of one point with noise σ² enter the likelihood as their mean with noise σ²/m,
    times a factor that depends on σ² alone, (2πσ²)^{-(m-1)/2} m^{-1/2} exp(-scatter / 2σ²); so
    pooling is exact. Observations with a known standard error are weighted by their precision.
    """

    at: Array  # (n, d) encoded
    values: Array  # (n,) standardised means
    counts: Array  # (n,) observations pooled into each row
    known: Array  # (n,) variance of the mean where it is known, nan where σ² is to be learnt
    within: Array  # (n,) sum of squares within replicates of unknown noise
    slopes: Array  # (n,) log dw/dz of the warp, summed over the observations of each row
    shift: float  # outcome = shift + scale · unwarped standardised value
    scale: float
    warp: Warp = field(default_factory=Warp)
    view: View = "straight"
    penalties: int = 0  # observations that were clipped as penalties
    # (n, s) means of earlier studies at the points, for the prior mean (`covey.gp.prior_mean`).
    earlier: Array | None = None
    groups: tuple[int, ...] | None = None  # (d,) number of each column's length-scale; None: 0..d-1
    shifts: Shifts | None = None  # what observations of one plate or day share

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, indices: Indices) -> Observations:
        """A subset of the rows, in the units and with the warp of all.

        A row takes its replicates, their scatter and its share of the warp's log Jacobian along, so
        that warped and unwarped views compare as they do on all rows.
        """
        names = _BY_ROW if self.earlier is None else (*_BY_ROW, "earlier")
        keep = {name: getattr(self, name)[indices] for name in names}
        shifts = None if self.shifts is None else self.shifts.rows(indices)
        return replace(self, **keep, shifts=shifts)

    @cached_property
    def scatter(self) -> float:
        """Sum of squares within replicates of unknown noise."""
        return float(self.within.sum())

    @cached_property
    def log_slope(self) -> float:
        """log dw/dz of the warp, summed over all observations."""
        return float(self.slopes.sum())

    @cached_property
    def learnt(self) -> Mask:
        """Rows (n,) whose noise is σ², to be learnt."""
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

    def residual(self, mean: float, weights: tuple[float, ...] = ()) -> Array:
        """The values (n,) less a prior mean: a constant, and weighted means of earlier studies."""
        residual = self.values - mean
        if self.earlier is None or not any(weights):
            return residual
        return residual - self.earlier @ np.asarray(weights)

    def noise(self, sigma2: float) -> Array:
        """The variance of each row's mean, (n,), when one observation has variance σ²."""
        return np.where(self.learnt, sigma2 / self.counts, self.known)


def clipped_penalties(values: Array) -> Array:
    """Outcomes to maximise (n,), with penalties raised to one range below the rest. Cost n log n.

    Crashed runs are often told as -1e6, and one such value makes all others look equal. At most a
    quarter of the outcomes are penalties, if they lie below a gap of ten times the range of the
    rest and agree to a hundredth of that gap; a single one needs a gap of a thousand ranges. (Our
    choice.) Outcomes that differ among themselves are results, however good the rest has become.

    >>> clipped_penalties(np.array([1.0, 2.0, 3.0, -1e6, 2.5]))
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


def beyond_belief(values: Array) -> tuple[int, float] | None:
    """The outcome to maximise that is beyond belief, if one is, and how far. Cost n log n.

    The counterpart of `clipped_penalties` at the good end: 1e6 among values of order 1 is a slip of
    a pen, and a model that takes it in is blind to the rest. How far is the gap to all others, by
    the largest of their sizes; it must be 10⁴, of ten outcomes at least. Zero means something here:
    where all results are 0.1 and one is 0.97, the gap is thousands of their ranges, and they are
    accuracies. Outcomes that span decades may well go on to: where the largest of the others is h
    times their median, in size, the gap must exceed h², too. Two such outcomes support each other.

    >>> beyond_belief(np.array([1.0, 2.0, 3.0, 2.5, -1.0, 0.5, 1e6, 2.0, -0.3, 1.2]))
    (6, 333332.3333333333)
    """
    if len(values) < _FEWEST:
        return None
    order = np.argsort(values)
    others = clipped_penalties(values[order[:-1]])
    sizes, top = np.abs(others), int(order[-1])
    largest, usual = float(sizes.max()), float(np.median(sizes))
    # Sizes are divided first, so that squares do not overflow; a median of zero spans all decades.
    if usual < _SMALLEST or not np.isfinite(largest / usual):
        return None
    far = float(values[top] / largest - others[-1] / largest)
    return (top, far) if far > max(_BEYOND, (largest / usual) ** _REACH) else None


def observe(
    at: Array,
    values: Array,
    sems: Array,
    sharing: Sharing | None = None,
    *,
    view: View = "straight",
    groups: tuple[int, ...] | None = None,
) -> Observations:
    """Standardise and pool: at (N, d), values (N,), sems (N,) with nan where unknown. N log N.

    Penalties are clipped and outcomes are seen in the ``view`` that is asked for, or in a plainer
    one where that makes no difference; straight if some standard error is known: that is in the
    units of the outcomes as told. ``groups`` (d,): columns that share a length-scale. Observations
    of one point are pooled where they share their shifts.

    >>> at, values = np.array([[0.0], [1.0], [0.0]]), np.array([1.0, 4.0, 3.0])
    >>> data = observe(at, values, np.full(3, np.nan))
    >>> data.counts, data.looks
    (array([2., 1.]), 3)
    """
    told = values
    if np.isnan(sems).all():
        values = clipped_penalties(values)
    else:
        view = "straight"
    usual = _mean_and_unit(values)
    shift, scale, warp = _frame(values, *usual, view)
    if warp == Warp():
        view = "straight"
    elif (shift, scale) == usual:
        view = "warped"
    z = (values - shift) / scale
    finer = np.log(usual[1] / scale)  # so that densities in different units compare
    slopes = warp.log_slopes(z) + finer
    z = warp.transform(z)
    variance = noise_variance(sems, scale)
    known = ~np.isnan(sems)
    codes = () if sharing is None else (sharing.codes,)
    first, group = first_and_group(np.column_stack([at, known, *codes]))
    counts = np.bincount(group).astype(float)
    weights = np.where(known, 1.0 / np.where(known, variance, 1.0), 1.0)
    total = _sums(group, weights)
    means = _sums(group, weights * z) / total
    shifts, slopes_too = None, np.zeros(0)
    if sharing is not None:
        apart = (sharing.controls - shift) / scale
        slopes_too = warp.log_slopes(apart) + finer
        shifts = pooled_shifts(sharing, sharing.codes[first], warp.transform(apart))
    return Observations(
        at=at[first],
        values=means,
        counts=counts,
        known=np.where(known[first], 1.0 / total, np.nan),
        within=_sums(group, np.where(known, 0.0, np.square(z - means[group]))),
        slopes=_with_controls(_sums(group, slopes), slopes_too),
        shift=shift,
        scale=scale,
        warp=warp,
        view=view,
        penalties=int(np.count_nonzero(values != told)),
        groups=groups,
        shifts=shifts,
    )


def _mean_and_unit(values: Array) -> tuple[float, float]:
    """The mean of outcomes (n,), and their standard deviation where they have one."""
    mean = float(values.mean())
    reach = float(np.abs(values - mean).max())
    # A constant outcome has no scale of its own, and its rounding errors are no signal.
    if reach <= 1e-12 * max(float(np.abs(values).max()), _SMALLEST):
        # The scale follows a change of unit all the same.
        return mean, abs(mean) if abs(mean) >= _SMALLEST else 1.0
    # By the reach first, so that squares of tiny outcomes do not underflow.
    return mean, reach * float(np.std((values - mean) / reach))


def _frame(values: Array, mean: float, unit: float, view: View) -> Frame:
    """Zero, unit and warp of outcomes (n,) in a view."""
    if view == "framed":
        return own_frame(values, mean, unit)
    return mean, unit, Warp() if view == "straight" else fitted_warp((values - mean) / unit)


def views_of(
    at: Array,
    values: Array,
    sems: Array,
    sharing: Sharing | None = None,
    *,
    warp: bool,
    groups: tuple[int, ...] | None = None,
) -> list[Observations]:
    """The same results in every view in which they differ; straight alone unless ``warp``."""
    wanted: tuple[View, ...] = get_args(View) if warp else ("straight",)
    seen = [observe(at, values, sems, sharing, view=view, groups=groups) for view in wanted]
    return [data for data, view in zip(seen, wanted, strict=True) if data.view == view]


def _with_controls(slopes: Array, more: Array) -> Array:
    """Slopes (n,), to the first of which those of controls are added: only the sum matters."""
    if len(more):
        slopes[0] += more.sum()
    return slopes


def noise_variance(error: Array | float, scale: float) -> Array:
    """The variance of observations with these standard errors, in units of ``scale``.

    It is at least `LEAST_NOISE`.

    >>> noise_variance(0.2, 2.0), noise_variance(0.1, 1e-200)
    (array(0.01), array(1.e+150))
    """
    with np.errstate(over="ignore"):
        spread = np.minimum(np.divide(error, scale), _MOST_SPREAD)
    return np.asarray(np.maximum(np.square(spread), LEAST_NOISE))


def _sums(group: Indices, values: Array) -> Array:
    """The sum of the values in each group."""
    return np.asarray(np.bincount(group, values), dtype=np.float64)


def first_and_group(rows: Array) -> tuple[Indices, Indices]:
    """The first place of each distinct row, ascending, and the number of the row that each is."""
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group.reshape(-1)]
