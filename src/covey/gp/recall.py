"""Recall: what conditioning on many results leaves behind, to make the next one quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, solve_lower
from covey.belief import LEAST_VARIANCE, Evidence
from covey.gp.factor import Factor, empty
from covey.gp.posterior import Posterior, condition
from covey.gp.subset import MANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.gp.model import Model
    from covey.gp.observations import Observations
    from covey.kernels import Kernel

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
