"""Posterior: the model after the data, ready to be asked about any candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import (
    MEMORY,
    Array,
    cholesky,
    like,
    plus_diagonal,
    solve_lower,
    to_numpy,
)
from covey.belief import LEAST_VARIANCE, Belief, Gaussian
from covey.gp.failures import Failures
from covey.gp.fit import MANY
from covey.kernels import KernelMatrix, squared_distance
from covey.large.growing import Factor, empty
from covey.large.lowrank import Evidence, ExplainedCovariance, StreamedRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.gp.model import Model
    from covey.gp.observations import Observations
    from covey.kernels import Kernel


@dataclass(frozen=True)
class Posterior:
    """Fitted models conditioned on observations and on pending locations.

    Where there are ``failures``, the mean is lowered around them. ``known`` is the mean and the
    standard deviation of f where values were told (`Recall.told`), which beliefs carry along.
    """

    models: tuple[Model, ...]
    evidence: tuple[Evidence, ...]  # one per model
    data: Observations
    failures: Failures | None = None
    known: tuple[Array, Array] | None = None

    def belief(self, at: Array, round: int = 1, memory: int = MEMORY) -> Belief:
        """Posterior of f at the candidates (n, d), an array or a tensor on any device.

        One pass over them. Cost per model n·m² + n·m·d, m observations; it takes at most so many
        bytes of ``memory``.
        """
        share = memory // len(self.models)
        parts = tuple(
            self._part(model, seen, at, share)
            for model, seen in zip(self.models, self.evidence, strict=True)
        )
        open_looks = len(self.evidence[0].at) - len(self.data.at)
        looks = self.data.looks + open_looks
        return Belief(at, parts, self.data.best, round, looks, self.known)

    def _part(self, model: Model, seen: Evidence, at: Array, memory: int) -> Gaussian:
        made = StreamedRows(model.kernel, like(seen.at, at), seen.factor, at, memory)
        survey = made.survey(seen.weights)
        mean = model.mean + to_numpy(survey.sums)
        return Gaussian(
            prior=KernelMatrix(model.kernel, at),
            mean=mean if self.failures is None else self.failures.lowered(mean, at),
            explained=ExplainedCovariance((survey.layer,), survey.squares, memory),
            noise=model.noise,
            evidence=seen,
        )

    @property
    def size(self) -> int:
        """How many models."""
        return len(self.models)

    @property
    def rows(self) -> int:
        """Distinct points it is conditioned on, those under way included."""
        return len(self.evidence[0].at)

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f in the units of the observations.

        f is the mean of a look, E[y | f_w], also where outcomes were bent: there f_w is the
        median, and noise that is even after the bend is skewed before it. So the mean is E[y].
        """
        belief = self.belief(at)
        return self.moments(belief.mean, belief.std)

    def moments(self, mean: Array, std: Array, *, of_f: bool = True) -> tuple[Array, Array]:
        """Those of f where a belief has these, in the units of the observations; or of a look."""
        noise = self._noise if of_f else 0.0
        centre, spread = self.data.warp.moments(mean, std, noise)
        return self.data.shift + self.data.scale * centre, self.data.scale * spread

    def expected(self, values: Array) -> Array:
        """The mean of a look where a belief has these values, in the units of the observations."""
        return self.data.shift + self.data.scale * self.data.warp.expected(values, self._noise)

    @property
    def _noise(self) -> float:
        """Standard deviation of one look, of all models."""
        return float(np.sqrt(np.mean([model.noise for model in self.models])))

    def outcome(self, values: Array) -> Array:
        """Values of a belief in the units of the observations, not far beyond what was seen."""
        return self.data.shift + self.data.scale * self.data.warp.untransform(values)

    def bound(self, values: Array) -> Array:
        """Bounds on a belief in the units of the observations, however far; ±∞ where none is."""
        return self.data.shift + self.data.scale * self.data.warp.undone(values)

    def upper(self, at: Array, width: float) -> tuple[Array, Array]:
        """μ + width · σ at (n, d) and its gradient (n, d), averaged over the models."""
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
            if self.failures is None:
                rise = _moved(at, seen.at, slope * (weights - fall), kernel.lengths)
            else:
                rise = _moved(at, seen.at, slope * weights, kernel.lengths)
                mean, rise = self.failures.climbed(mean, rise, at)
                rise = rise - _moved(at, seen.at, slope * fall, kernel.lengths)
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

    The mean ignores what is pending, the covariance does not. Cost per model (n + p)³/3.
    """
    pending = data.at[:0] if pending is None else pending
    at, n = np.vstack([data.at, pending]), len(data.at)
    evidence = []
    for model in models:
        noise = np.concatenate([data.noise(model.noise), np.full(len(pending), model.noise)])
        factor = cholesky(plus_diagonal(model.kernel(at, at), noise))
        # The leading block of the factor is the factor of the leading block.
        head = factor[:n, :n]
        weights = solve_lower(head, solve_lower(head, data.values - model.mean), transposed=True)
        weights = np.concatenate([weights, np.zeros(len(pending))])
        evidence.append(Evidence(at, factor, weights, noise))
    return Posterior(tuple(models), tuple(evidence), data)


# Recall: what conditioning on many results leaves behind, to make the next one quick.

_DROWNED = 1e4  # variances of f: above so much noise its own formula loses digits


class Recall:
    """Keeps the factors of the last conditioning and grows them: speed changes, no bit of a result.

    An empty one gives the same posteriors (see `Factor`). Few observations leave nothing behind.
    """

    def __init__(self) -> None:
        self._kept: dict[Kernel, Factor] = {}

    def condition(
        self, models: Sequence[Model], data: Observations, pending: Array | None = None
    ) -> Posterior:
        """As `covey.gp.condition`; of many rows, at a cost of m² for each new one."""
        pending = data.at[:0] if pending is None else pending
        if len(data) + len(pending) <= MANY:
            self._kept = {}
            return condition(models, data, pending)
        at = np.vstack([data.at, pending])
        kernels = {model.kernel for model in models}
        self._kept = {kernel: old for kernel, old in self._kept.items() if kernel in kernels}
        evidence = tuple(self._evidence(model, data, at) for model in models)
        return Posterior(tuple(models), evidence, data)

    def _evidence(self, model: Model, data: Observations, at: Array) -> Evidence:
        n, more = len(data), len(at) - len(data)
        noise = np.concatenate([data.noise(model.noise), np.full(more, model.noise)])
        old = self._kept.get(model.kernel) or empty(model.kernel, at.shape[1])
        factor = self._kept[model.kernel] = old.grown(at, noise)
        # What is pending has no value: with its mean for one, it carries no weight.
        residual = np.concatenate([data.values - model.mean, np.zeros(more)])
        white = solve_lower(factor.lower, residual)
        white[n:] = 0.0
        weights = solve_lower(factor.lower, white, transposed=True)
        return Evidence(at, factor.lower, weights, noise)

    def told(self, posterior: Posterior) -> tuple[Array, Array]:
        r"""Mean and standard deviation of f where its values are known, (n,) each.

        .. math:: \mu = y - D\alpha, \qquad \sigma_i^2 = d_i - d_i^2 (A^{-1})_{ii}

        for A = K + D and α = A⁻¹(y - m). Of many rows this takes a third of what a belief about
        them would, and no memory; and only what new rows add to A⁻¹ is made anew.
        """
        data, models = posterior.data, posterior.models
        noises = [seen.noise[: len(data)] for seen in posterior.evidence]
        drowned = any(
            noise.max() > _DROWNED * model.kernel.variance
            for noise, model in zip(noises, models, strict=True)
        )
        if drowned or len(posterior.evidence[0].at) <= MANY:
            belief = posterior.belief(data.at)
            return belief.mean, belief.std
        means, variances = [], []
        for model, seen, noise in zip(models, posterior.evidence, noises, strict=True):
            left = noise - np.square(noise) * self._factor(model, seen).precision[: len(data)]
            variances.append(np.maximum(left, LEAST_VARIANCE * model.kernel.variance))
            mean = data.values - noise * seen.weights[: len(data)]
            failures = posterior.failures
            means.append(mean if failures is None else failures.lowered(mean, data.at))
        spread = np.mean(variances, axis=0) + np.var(means, axis=0)
        return np.mean(means, axis=0), np.sqrt(spread)

    def _factor(self, model: Model, seen: Evidence) -> Factor:
        kept = self._kept.get(model.kernel)
        if kept is not None and kept.lower is seen.factor:
            return kept
        return Factor(model.kernel, seen.at, seen.noise, seen.factor)
