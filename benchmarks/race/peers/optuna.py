"""Optuna's GP sampler."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from benchmarks.race.problems import Points, Problem, Unsupported
from covey import Integer, Pool, Real
from covey.space import Choice


class Optuna:
    """Optuna's GP sampler, asked batch times before it is told."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import optuna

        if isinstance(problem.space, Pool):
            raise Unsupported("Optuna is not entered for pools")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self._space = space = problem.space
        self._of = {n: self._distribution(optuna, p) for n, p in space.parameters.items()}
        sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=1)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._open: list[Any] = []

    @staticmethod
    def _distribution(optuna: Any, parameter: Real | Integer | Choice) -> Any:
        if isinstance(parameter, Real):
            return optuna.distributions.FloatDistribution(parameter.low, parameter.high)
        if isinstance(parameter, Integer):
            return optuna.distributions.IntDistribution(parameter.low, parameter.high)
        return optuna.distributions.CategoricalDistribution(list(parameter.options))

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """Told trials if they were asked, else complete ones."""
        import optuna

        if self._open:
            for trial, value in zip(self._open, values, strict=True):
                self._study.tell(trial, value)
            self._open = []
            return
        for point, value in zip(points, values, strict=True):
            self._study.add_trial(
                optuna.trial.create_trial(params=point, distributions=self._of, value=value)
            )

    def ask(self, batch: int) -> Points:
        """One trial after another, the earlier ones running."""
        self._open = [self._study.ask(self._of) for _ in range(batch)]
        return [self._space.check(trial.params) for trial in self._open]
