"""Optimisers of the race, ours and the peers', behind one small interface.

A peer is imported when it is first asked for; each may live in an environment of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from covey import Choice, Integer, Pool, Real, Space, Study
from covey.catalog import STRATEGIES

Points = list[dict[str, Any]]


class Optimiser(Protocol):
    """Maximises; the first batch is told to it, so that it makes no random design of its own."""

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """Results of the last batch (or of the first, shared one)."""
        ...

    def ask(self, batch: int) -> Points:
        """The next batch."""
        ...


class Covey:
    """One of our strategies."""

    def __init__(self, space: Space | Pool, seed: int, strategy: str) -> None:
        self._study = Study(space, strategy=strategy, seed=seed)

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """The first batch is added, later ones are told."""
        pending = self._study.history.pending
        if pending:
            self._study.tell(pending, values)
        else:
            self._study.add(points, values)

    def ask(self, batch: int) -> Points:
        """One ask."""
        return [dict(trial.point) for trial in self._study.ask(batch)]


def _require_box(space: Space | Pool, name: str) -> Space:
    if isinstance(space, Pool) or not space.continuous.all():
        raise Unsupported(f"{name} is entered for continuous spaces only")
    return space


class Unsupported(Exception):  # noqa: N818 - a state, not a fault
    """This optimiser is not entered for this kind of space."""


class BoTorch:
    """BoTorch's qLogEI, sequential: ten restarts, 512 raw and 128 Monte-Carlo samples."""

    def __init__(self, space: Space | Pool, seed: int) -> None:
        import torch

        self._space = _require_box(space, "BoTorch")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._seed, self._round = seed, 0
        self._x = np.zeros((0, self._space.width))
        self._y = np.zeros(0)

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """Remember."""
        self._x = np.vstack([self._x, self._space.encode(points)])
        self._y = np.append(self._y, values)

    def ask(self, batch: int) -> Points:
        """Fit and optimise."""
        import torch
        from botorch.acquisition.logei import qLogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim import optimize_acqf
        from botorch.sampling import SobolQMCNormalSampler
        from gpytorch.mlls import ExactMarginalLogLikelihood

        self._round += 1
        x, y = torch.tensor(self._x), torch.tensor(self._y)[:, None]
        model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        sampler = SobolQMCNormalSampler(torch.Size([128]), seed=1000 * self._seed + self._round)
        score = qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, x.shape[1])
        found, _ = optimize_acqf(
            score, bounds, q=batch, num_restarts=10, raw_samples=512, sequential=True
        )
        return self._space.decode(found.detach().clamp(0.0, 1.0).numpy())


class Hebo:
    """HEBO, on reals, integers and choices."""

    def __init__(self, space: Space | Pool, seed: int) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        if isinstance(space, Pool):
            raise Unsupported("HEBO is not entered for pools")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - HEBO draws from the global generator
        self._space = space
        described = [self._describe(name, p) for name, p in space.parameters.items()]
        self._hebo = HEBO(DesignSpace().parse(described), rand_sample=1, scramble_seed=seed)

    @staticmethod
    def _describe(name: str, parameter: Real | Integer | Choice) -> dict[str, Any]:
        if isinstance(parameter, Real):
            return {"name": name, "type": "num", "lb": parameter.low, "ub": parameter.high}
        if isinstance(parameter, Integer):
            return {"name": name, "type": "int", "lb": parameter.low, "ub": parameter.high}
        return {"name": name, "type": "cat", "categories": list(parameter.options)}

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """HEBO minimises."""
        import pandas as pd

        self._hebo.observe(pd.DataFrame(points), -np.asarray(values, dtype=float).reshape(-1, 1))

    def ask(self, batch: int) -> Points:
        """HEBO's own batch."""
        rows = self._hebo.suggest(n_suggestions=batch).to_dict("records")
        # By way of the unit cube: HEBO's single precision can overstep a bound by rounding.
        return self._space.decode(np.vstack([self._unit({**row}) for row in rows]))

    def _unit(self, row: dict[str, Any]) -> np.ndarray:
        for name, parameter in self._space.parameters.items():
            if isinstance(parameter, Real):
                row[name] = float(np.clip(row[name], parameter.low, parameter.high))
        return self._space.encode([row])


class Optuna:
    """Optuna's GP sampler, asked batch times before it is told."""

    def __init__(self, space: Space | Pool, seed: int) -> None:
        import optuna

        if isinstance(space, Pool):
            raise Unsupported("Optuna is not entered for pools")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self._space = space
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


def _ours(strategy: str) -> Callable[[Space | Pool, int], Optimiser]:
    return lambda space, seed: Covey(space, seed, strategy)


OPTIMISERS: Mapping[str, Callable[[Space | Pool, int], Optimiser]] = {
    **{f"covey-{name}": _ours(name) for name in STRATEGIES},
    "botorch-qlogei": BoTorch,
    "hebo": Hebo,
    "optuna-gp": Optuna,
}
"""Everything that can be entered, by name."""
