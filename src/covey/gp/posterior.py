"""The posterior: models conditioned on observations, which give a belief about any candidates.

`condition` makes one from scratch; `Recall` makes the next one from the factors of the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import MEMORY, Array, cholesky, like, plus_diagonal, solve_lower, to_numpy
from covey.belief import LEAST_VARIANCE, Belief, Gaussian
from covey.gp.fit import MANY
from covey.gp.prior_mean import climbed_trend, trend
from covey.kernels import KernelMatrix, squared_distance
from covey.large.growing import BLOCK, Factor, empty
from covey.large.lowrank import Evidence, ExplainedCovariance, StreamedRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.gp.model import Model
    from covey.gp.observations import Observations
    from covey.gp.prior_mean import SourceMean
    from covey.gp.success import Success
    from covey.kernels import Kernel


@dataclass(frozen=True)
class Posterior:
    """Fitted models conditioned on observations and on pending locations.

    ``success`` says how likely a point is to succeed, which becomes the weight of candidates.
    ``known`` is the mean and standard deviation of f at the observations (`Recall.told`), which
    beliefs carry along. ``sources`` are earlier studies, whose means, weighted as each model says,
    are part of its prior mean.
    """

    models: tuple[Model, ...]
    evidence: tuple[Evidence, ...]  # one per model
    data: Observations
    success: Success | None = None
    known: tuple[Array, Array] | None = None
    sources: tuple[SourceMean, ...] = ()

    def belief(self, at: Array, round: int = 1, memory: int = MEMORY) -> Belief:
        """Posterior of f at the candidates (n, d), an array or a tensor on any device.

        One pass over the candidates. Cost per model n·m² + n·m·d for m observations; takes at most
        ``memory`` bytes.
        """
        share = memory // len(self.models)
        parts = tuple(
            self._part(model, seen, at, share)
            for model, seen in zip(self.models, self.evidence, strict=True)
        )
        open_looks = len(self.evidence[0].at) - len(self.data.at)
        looks = self.data.looks + open_looks
        weight = None if self.success is None else self.success.probability(at)
        return Belief(at, parts, self.data.best, round, looks, self.known, weight=weight)

    def _part(self, model: Model, seen: Evidence, at: Array, memory: int) -> Gaussian:
        """The posterior of one model at the candidates (n, d)."""
        made = StreamedRows(model.kernel, like(seen.at, at), seen.factor, at, memory)
        survey = made.survey(seen.weights)
        mean = model.mean + to_numpy(survey.sums)
        if any(model.earlier):
            mean = mean + trend(self.sources, model.earlier, at)
        return Gaussian(
            prior=KernelMatrix(model.kernel, at),
            mean=mean,
            explained=ExplainedCovariance((survey.layer,), survey.squares, memory),
            noise=model.noise,
            evidence=seen,
        )

    @property
    def seen_at(self) -> Array:
        """The points (n, d) whose values are known."""
        return self.data.at

    @property
    def size(self) -> int:
        """The number of models."""
        return len(self.models)

    @property
    def rows(self) -> int:
        """The number of distinct points that it is conditioned on, pending ones included."""
        return len(self.evidence[0].at)

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f at (n, d), (n,) each, in the units of the observations.

        f(x) is the mean of an observation at x, E[y | f_w(x)], also under a warp: there f_w is the
        median, since noise that is symmetric in warped units is skewed in outcome units. So the
        mean is E[y].
        """
        belief = self.belief(at)
        return self.moments(belief.mean, belief.std)

    def moments(self, mean: Array, std: Array, *, of_f: bool = True) -> tuple[Array, Array]:
        """The mean and standard deviation of a belief, (n,) each, in the units of the observations.

        They are those of f; with ``of_f`` false, those of an observation, if ``std`` includes its
        noise.
        """
        noise = self._noise if of_f else 0.0
        centre, spread = self.data.warp.moments(mean, std, noise)
        return self.data.shift + self.data.scale * centre, self.data.scale * spread

    def expected(self, values: Array) -> Array:
        """The mean of an observation at values (n,) of a belief, in units of the observations."""
        return self.data.shift + self.data.scale * self.data.warp.expected(values, self._noise)

    @property
    def _noise(self) -> float:
        """Standard deviation of one observation, averaged over the models."""
        return float(np.sqrt(np.mean([model.noise for model in self.models])))

    def outcome(self, values: Array) -> Array:
        """Values of a belief in the units of the observations, clipped to near the data."""
        return self.data.shift + self.data.scale * self.data.warp.untransform(values)

    def bound(self, values: Array) -> Array:
        """Bounds on a belief in the units of the observations, unclipped; ±∞ if there is none."""
        return self.data.shift + self.data.scale * self.data.warp.undone(values)

    def upper(self, at: Array, width: float) -> tuple[Array, Array]:
        """μ + width · σ (n,) at (n, d) and its gradient (n, d), averaged over models. Cost n m²."""
        value, gradient = np.zeros(len(at)), np.zeros_like(at)
        share = 1.0 / len(self.models)
        for model, seen in zip(self.models, self.evidence, strict=True):
            kernel = model.kernel
            r2 = squared_distance(seen.at, at, kernel.lengths)
            cross, slope = kernel.at_distance(r2), 2.0 * kernel.slope(r2)
            white = solve_lower(seen.factor, cross)
            variance = kernel.variance - np.einsum("mn,mn->n", white, white)
            std = np.sqrt(np.maximum(variance, LEAST_VARIANCE * kernel.variance))
            mean = model.mean + seen.weights @ cross
            # ∂μ = Σ_i w_i ∂k_i and ∂σ = -Σ_i (K⁻¹k)_i ∂k_i / σ, with ∂k_i = 2k' (x - x_i)/ℓ².
            fall = solve_lower(seen.factor, white, transposed=True) * (width / std)
            weights = seen.weights[:, None]
            if any(model.earlier):
                more, steeper = climbed_trend(self.sources, model.earlier, at)
                mean = mean + more
                rise = _moved(at, seen.at, slope * weights, kernel.lengths) + steeper
                rise = rise - _moved(at, seen.at, slope * fall, kernel.lengths)
            else:
                rise = _moved(at, seen.at, slope * (weights - fall), kernel.lengths)
            value += share * (mean + width * std)
            gradient += share * rise
        return value, gradient


def _moved(at: Array, seen: Array, pull: Array, lengths: tuple[float, ...]) -> Array:
    """Σ_i pull_i (x - x_i)/ℓ² at (n, d), for pulls (m, n)."""
    moved = at * pull.sum(axis=0)[:, None] - pull.T @ seen
    return moved / np.square(lengths)


def condition(
    models: Sequence[Model], data: Observations, pending: Array | None = None
) -> Posterior:
    r"""Condition each model on the data, and its covariance on pending locations (p, d).

    .. math:: \mu = m + k_*^\top (K + D)^{-1} (y - m), \qquad
              \Sigma = k_{**} - k_*^\top (K + D)^{-1} k_*

    (Section 2 of the paper; MATH 1.) Pending locations have no value: the covariance is conditioned
    on them, the mean is not. Cost per model (n + p)³/3.
    """
    pending = data.at[:0] if pending is None else pending
    at, n = np.vstack([data.at, pending]), len(data.at)
    evidence = []
    for model in models:
        noise = np.concatenate([data.noise(model.noise), np.full(len(pending), model.noise)])
        gram, shift = plus_diagonal(model.kernel(at, at), noise), np.zeros(1)
        if data.shifts is not None:
            means, spread = data.shifts.after_controls(model)
            gram[:n, :n] += data.shifts.design @ spread @ data.shifts.design.T
            shift = data.shifts.design @ means
        factor = cholesky(gram)
        # The leading block of the factor is the factor of the leading block.
        head = factor[:n, :n]
        residual = data.residual(model.mean, model.earlier) - shift
        weights = solve_lower(head, solve_lower(head, residual), transposed=True)
        weights = np.concatenate([weights, np.zeros(len(pending))])
        evidence.append(Evidence(at, factor, weights, noise))
    return Posterior(tuple(models), tuple(evidence), data)


def without_shifts(models: Sequence[Model], data: Observations) -> Observations:
    """The data less their shifts, as most probable: for a choice, which is about f alone.

    A shift that is common to a plate hardly changes which wells differ, but its uncertainty would
    widen every bound.
    """
    if data.shifts is None:
        return data
    shifts = [
        data.shifts.estimated(
            model,
            plus_diagonal(model.kernel(data.at, data.at), data.noise(model.noise)),
            data.residual(model.mean, model.earlier),
        )
        for model in models
    ]
    values = data.values - data.shifts.design @ np.mean(shifts, axis=0)
    return replace(data, values=values, shifts=None)


# Conditioning on many results, with factors that grow between asks.

_NOISY = 1e4  # ratio of noise to the variance of f above which `Recall.told` would lose digits


class Recall:
    """Keeps the Cholesky factors of the last conditioning and grows them, which only saves time.

    An empty one gives the same posteriors to the last bit (see `Factor`). Nothing is kept for at
    most ``many`` observations; ``block`` is that of the factors.
    """

    def __init__(self, many: int = MANY, block: int = BLOCK) -> None:
        self._many, self._block = many, block
        self._kept: dict[Kernel, Factor] = {}

    def condition(
        self, models: Sequence[Model], data: Observations, pending: Array | None = None
    ) -> Posterior:
        """As `covey.gp.condition`. With more than ``many`` rows, cost m² for each new row."""
        pending = data.at[:0] if pending is None else pending
        if len(data) + len(pending) <= self._many or data.shifts is not None:
            self._kept = {}
            return condition(models, data, pending)
        at = np.vstack([data.at, pending])
        kernels = {model.kernel for model in models}
        self._kept = {kernel: old for kernel, old in self._kept.items() if kernel in kernels}
        evidence = tuple(self._evidence(model, data, at) for model in models)
        return Posterior(tuple(models), evidence, data)

    def _evidence(self, model: Model, data: Observations, at: Array) -> Evidence:
        """Factor and weights of one model at the data and the pending locations, ``at`` (m, d)."""
        n, more = len(data), len(at) - len(data)
        noise = np.concatenate([data.noise(model.noise), np.full(more, model.noise)])
        old = self._kept.get(model.kernel) or empty(model.kernel, at.shape[1], self._block)
        factor = self._kept[model.kernel] = old.grown(at, noise)
        # A pending location has no value; its residual is zero, and it carries no weight.
        own = data.residual(model.mean, model.earlier)
        residual = np.concatenate([own, np.zeros(more)])
        white = solve_lower(factor.lower, residual)
        white[n:] = 0.0
        weights = solve_lower(factor.lower, white, transposed=True)
        return Evidence(at, factor.lower, weights, noise)

    def told(self, posterior: Posterior) -> tuple[Array, Array]:
        r"""Mean and standard deviation of f at the observations, (n,) each.

        .. math:: \mu = y - D\alpha, \qquad \sigma_i^2 = d_i - d_i^2 (A^{-1})_{ii}

        for A = K + D and α = A⁻¹(y - m). With many rows this takes a third of the time of a belief
        about them and no memory, and only the part of A⁻¹ that new rows add is computed.
        """
        data, models = posterior.data, posterior.models
        noises = [seen.noise[: len(data)] for seen in posterior.evidence]
        noisy = any(
            noise.max() > _NOISY * model.kernel.variance
            for noise, model in zip(noises, models, strict=True)
        )
        few = len(posterior.evidence[0].at) <= self._many
        if noisy or few or data.shifts is not None:
            belief = posterior.belief(data.at)
            return belief.mean, belief.std
        means, variances = [], []
        for model, seen, noise in zip(models, posterior.evidence, noises, strict=True):
            left = noise - np.square(noise) * self._factor(model, seen).precision[: len(data)]
            variances.append(np.maximum(left, LEAST_VARIANCE * model.kernel.variance))
            means.append(data.values - noise * seen.weights[: len(data)])
        spread = np.mean(variances, axis=0) + np.var(means, axis=0)
        return np.mean(means, axis=0), np.sqrt(spread)

    def _factor(self, model: Model, seen: Evidence) -> Factor:
        """The `Factor` of this evidence: the one that is kept, if it is the same."""
        kept = self._kept.get(model.kernel)
        if kept is not None and kept.lower is seen.factor:
            return kept
        return Factor(model.kernel, seen.at, seen.noise, seen.factor, self._block)
