r"""The log posterior of the hyper-parameters and its gradient (Rasmussen & Williams 2006, ch. 5).

Notation: θ = (log ℓ_1 .. log ℓ_g, log s, log σ²); the last entry is missing when σ² is known.
Each of the d columns has a length-scale, g = d, unless `Observations.groups` says which share one.
Where observations share shifts, log τ² of each effect follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, cholesky, plus_diagonal, solve_lower
from covey.gp.model import GP, PRIORS, LogNormal, Model
from covey.gp.observations import LEAST_NOISE, Observations, noise_variance
from covey.gp.prior_mean import MeanFit, fitted_mean
from covey.kernels import KERNELS, Kernel, squared_distance

if TYPE_CHECKING:
    from covey.gp.model import Prior

_LENGTHS = (1e-2, 1e3)
_VARIANCE = (1e-2, 1e3)
_NOISE = (LEAST_NOISE, 4.0)
_SHIFT = (1e-6, 1e2)
_SHIFT_PRIOR = LogNormal(-2.0, 2.0)  # of τ²
_MEAN_PRIOR_VARIANCE = 1.0  # of the constant mean, in standardised units


@dataclass(frozen=True)
class Likelihood:
    """log p(y | θ) + log p(θ) for one data set and one Gaussian process, up to a constant."""

    data: Observations
    gp: GP

    @cached_property
    def given_noise(self) -> float | None:
        """σ² where it is not learnt: given by the user, or all standard errors are known."""
        if self.gp.noise is not None:
            return float(noise_variance(self.gp.noise, self.data.scale))
        if not self.data.learnt.any():
            return float(np.median(self.data.known * self.data.counts))
        return None

    @cached_property
    def _priors(self) -> tuple[Prior, ...]:
        """The prior of each entry of θ."""
        g = self._scales
        # Distances grow with the columns, whether or not these share a length-scale.
        priors = PRIORS[self.gp.priors](self.data.at.shape[1])
        noise = () if self.given_noise is not None else (priors.noise,)
        return (*(priors.length,) * g, priors.variance, *noise, *(_SHIFT_PRIOR,) * self._effects)

    @cached_property
    def _scales(self) -> int:
        """The number of length-scales, g."""
        groups = self.data.groups
        return self.data.at.shape[1] if groups is None else max(groups) + 1

    @property
    def _effects(self) -> int:
        """The number of effects whose shifts are learnt: the last entries of θ are log τ²."""
        return 0 if self.data.shifts is None else len(self.data.shifts.names)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Box for each entry of θ."""
        plain = len(self._priors) - self._effects
        boxes = [*(_LENGTHS,) * self._scales, _VARIANCE, _NOISE][:plain]
        boxes += [_SHIFT] * self._effects
        return [(math.log(low), math.log(high)) for low, high in boxes]

    @property
    def start(self) -> Array:
        """θ at the start of each prior."""
        return self.clip(np.array([prior.start for prior in self._priors]))

    def clip(self, theta: Array) -> Array:
        """θ moved into its box."""
        low, high = np.array(self.bounds).T
        return np.clip(theta, low, high)

    def theta_of(self, model: Model) -> Array:
        """θ of a model, clipped to the box."""
        lengths, groups = model.kernel.lengths, self.data.groups
        if groups is not None:
            lengths = tuple(lengths[groups.index(group)] for group in range(self._scales))
        entries = [*lengths, model.kernel.variance, model.noise]
        entries = entries[: len(self._priors) - self._effects]
        if self.data.shifts is not None:
            known = dict(model.shifts)
            usual = math.exp(_SHIFT_PRIOR.start)
            entries += [known.get(name, usual) for name in self.data.shifts.names]
        return self.clip(np.log(np.maximum(entries, 1e-300)))

    def model_at(self, theta: Array) -> Model:
        """The model with hyper-parameters θ and the most probable constant mean. Cost n³/3."""
        kernel, noise = self._unpack(theta)
        factor = cholesky(self._covariance(kernel, noise, theta))
        mean = self._mean_fit(factor)
        made = Model(kernel, noise, mean.constant, earlier=mean.weights)
        if self.data.shifts is None:
            return made
        taus = np.exp(theta[-self._effects :]).tolist()
        return replace(made, shifts=tuple(zip(self.data.shifts.names, taus, strict=True)))

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """log p(θ) and its gradient in θ (the logarithms)."""
        g = self._scales
        value, slopes = self._priors[0].log_density(theta[:g])  # one prior for all length-scales
        pairs = [p.log_density(t) for p, t in zip(self._priors[g:], theta[g:], strict=True)]
        total = float(value.sum()) + float(sum(v for v, _ in pairs))
        return total, np.array([*slopes, *(g for _, g in pairs)])

    def value(self, theta: Array) -> float:
        """log p(y | θ) + log p(θ), without gradient. Cost n³/3."""
        return self._value(theta)[0]

    def integrated(self, theta: Array) -> float:
        r"""The log posterior with the constant mean integrated out under m ~ N(0, 1). Cost n³/3.

        It is the value at the most probable m, less ½ log(1 + 1'K⁻¹1). With earlier studies their
        weights are integrated out too, as if these could be negative.
        """
        value, factor = self._value(theta)
        if self.data.earlier is not None and any((mean := self._mean_fit(factor)).weights):
            return value + mean.integral
        if self.gp.mean == "zero":
            return value
        ones = solve_lower(factor, self._level)
        return value - 0.5 * math.log1p(_MEAN_PRIOR_VARIANCE * float(ones @ ones))

    def _value(self, theta: Array) -> tuple[float, Array]:
        """The log posterior, and the Cholesky factor of K + D (n, n)."""
        kernel, noise = self._unpack(theta)
        factor = cholesky(self._covariance(kernel, noise, theta))
        mean = self._mean_fit(factor)
        return self._log_likelihood(factor, mean, noise) + self.log_prior(theta)[0], factor

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        r"""The log posterior and its gradient ½ tr((αα' - K⁻¹) ∂K/∂θ) (eq. 5.9). Cost n³ + n²d.

        The mean is at its optimum for θ, so its derivative vanishes (envelope theorem).
        """
        data, g = self.data, self._scales
        kernel, noise = self._unpack(theta)
        r2 = squared_distance(data.at, data.at, kernel.lengths)
        gram = kernel.at_distance(r2)
        variances = data.noise(noise)
        factor = cholesky(self._joint(gram, noise, theta))
        mean = self._mean_fit(factor)
        residual = self._residual(mean)
        alpha = solve_lower(factor, solve_lower(factor, residual), transposed=True)
        every = np.outer(alpha, alpha)
        every -= inverse_of(factor)
        weight = every[: len(data), : len(data)]

        pull = weight * kernel.slope(r2)
        x = (data.at - data.at.mean(axis=0)) / np.asarray(kernel.lengths)
        rows = pull.sum(axis=1)
        slopes = np.empty(len(theta))
        # ∂r²_ij / ∂log ℓ_d = -2 (x_id - x_jd)² / ℓ_d², summed without an n x n x d array.
        each = -2.0 * (rows @ np.square(x) - np.einsum("id,id->d", x, pull @ x))
        slopes[:g] = each if data.groups is None else np.bincount(data.groups, each)
        slopes[g] = 0.5 * np.sum(np.multiply(weight, gram, out=gram))
        if self.given_noise is None:
            learnt = data.learnt
            slopes[g + 1] = 0.5 * np.sum((np.diagonal(weight) * variances)[learnt])
            slopes[g + 1] += 0.5 * (data.scatter / noise - data.spare)
        if data.shifts is not None:
            self._shift_slopes(slopes, every, theta)
        prior, prior_slopes = self.log_prior(theta)
        return self._log_likelihood(factor, mean, noise) + prior, slopes + prior_slopes

    def _covariance(self, kernel: Kernel, noise: float, theta: Array) -> Array:
        """K + D at the data, (n, n), with shifts and controls where there are any."""
        return self._joint(kernel(self.data.at, self.data.at), noise, theta)

    # Shifts of plates and the like. Rows of controls follow those of the data (see `Shifts`).

    def _joint(self, gram: Array, noise: float, theta: Array) -> Array:
        noises, shifts = self.data.noise(noise), self.data.shifts
        if shifts is None:
            return plus_diagonal(gram, noises)
        return shifts.joint(gram, noises, noise, np.exp(theta[-self._effects :]))

    @cached_property
    def _values(self) -> Array:
        """The values of the data, and then of controls."""
        shifts = self.data.shifts
        return self.data.values if shifts is None else np.append(self.data.values, shifts.controls)

    @cached_property
    def _level(self) -> Array:
        """Which rows have the constant mean: not controls."""
        controls = 0 if self.data.shifts is None else len(self.data.shifts.controls)
        return np.append(np.ones(len(self.data)), np.zeros(controls))

    def _shift_slopes(self, slopes: Array, weight: Array, theta: Array) -> None:
        """Add ½ tr(W τ² ZZ') of each effect, and what controls say about the noise."""
        data, shifts = self.data, self.data.shifts
        if shifts is None:
            return
        place = self._scales + 1  # of log σ²
        noise = math.exp(theta[place]) if self.given_noise is None else 0.0
        shares = 0.5 * np.einsum("ig,ij,jg->g", shifts.every, weight, shifts.every)
        shares = np.bincount(shifts.of, shares, minlength=self._effects)
        slopes[-self._effects :] = shares * np.exp(theta[-self._effects :])
        if self.given_noise is None:
            own = np.diagonal(weight)[len(data) :] * noise / shifts.counts
            slopes[place] += 0.5 * float(own.sum())
            slopes[place] += 0.5 * (shifts.scatter / noise - shifts.spare)

    def _unpack(self, theta: Array) -> tuple[Kernel, float]:
        """The kernel and the noise σ² at θ."""
        g, groups = self._scales, self.data.groups
        values = np.exp(theta)
        lengths = values[:g] if groups is None else values[list(groups)]
        kernel = KERNELS[self.gp.kernel](tuple(map(float, lengths)), float(values[g]))
        given = self.given_noise
        return kernel, float(values[g + 1]) if given is None else given

    def _mean_fit(self, factor: Array) -> MeanFit:
        """Most probable constant mean under m ~ N(0, 1): 1'K⁻¹y / (1'K⁻¹1 + 1).

        With earlier studies, their most probable weights too.
        """
        constant = None if self.gp.mean == "zero" else _MEAN_PRIOR_VARIANCE
        none: tuple[float, ...] = ()
        if self.data.earlier is not None:
            rows = np.zeros((len(self._level), self.data.earlier.shape[1]))
            rows[: len(self.data)] = self.data.earlier
            found = fitted_mean(factor, self._values, rows, constant, self._level)
            if any(found.weights):
                return found
            none = found.weights  # from here on as if there were no earlier studies
        if constant is None:
            return MeanFit(0.0, none)
        ones, values = solve_lower(factor, np.column_stack([self._level, self._values])).T
        return MeanFit(float(ones @ values / (ones @ ones + 1.0 / constant)), none)

    def _residual(self, mean: MeanFit) -> Array:
        """The values less their prior mean, (n,); and then the controls."""
        own, shifts = self.data.residual(mean.constant, mean.weights), self.data.shifts
        return own if shifts is None else np.append(own, shifts.controls)

    def _log_likelihood(self, factor: Array, mean: MeanFit, noise: float) -> float:
        """log p(y | θ) at the most probable mean (eq. 5.8), with the log prior of that mean."""
        data, residual = self.data, self._residual(mean)
        white = solve_lower(factor, residual)
        shift = data.values[0] - residual[0]
        value = -0.5 * (white @ white) - np.log(np.diagonal(factor)).sum()
        value -= 0.5 * len(residual) * math.log(2.0 * math.pi)
        if any(mean.weights):
            value += mean.log_prior
        else:
            value -= 0.5 * shift * shift / _MEAN_PRIOR_VARIANCE
        # The factor of the pooled replicates, which depends on σ² alone (see `Observations`).
        value -= 0.5 * data.spare * math.log(2.0 * math.pi * noise) + 0.5 * data.scatter / noise
        value -= 0.5 * data.log_counts
        if data.shifts is not None:
            own = data.shifts
            value -= 0.5 * own.spare * math.log(2.0 * math.pi * noise) + 0.5 * own.log_counts
            value -= 0.5 * own.scatter / noise
        return float(value)


def inverse_of(factor: Array) -> Array:
    """(CCᵀ)⁻¹ for a lower Cholesky factor C (n, n). Cost 2n³/3."""
    from scipy.linalg.lapack import dpotri

    lower = dpotri(factor, lower=1)[0]  # above its diagonal are the zeros of the factor
    inverse: Array = lower + lower.T
    np.fill_diagonal(inverse, np.diagonal(lower))
    return inverse
