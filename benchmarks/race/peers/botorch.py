"""BoTorch as its makers advise: qLogEI, or qLogNEI where values are noisy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.race.problems import Points, Problem
from covey import Pool, Space
from covey.space import Choice


class Columns:
    """Points as rows: reals and ordered values in [0, 1], an unordered choice by its number."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.width = len(space.parameters)
        self.categories: dict[int, list[float]] = {}
        self.levels: dict[int, list[float]] = {}
        for i, parameter in enumerate(space.parameters.values()):
            if isinstance(parameter, Choice) and not parameter.ordered:
                self.categories[i] = [float(j) for j in range(parameter.size)]
            elif parameter.size is not None:
                self.levels[i] = parameter.levels()[:, 0].tolist()

    def rows(self, points: Points) -> np.ndarray:
        """Points as rows (n, width)."""
        out = np.empty((len(points), self.width))
        for i, (name, parameter) in enumerate(self._space.parameters.items()):
            values = [point[name] for point in points]
            if i in self.categories:
                out[:, i] = [parameter.index(value) for value in values]
            else:
                out[:, i] = parameter.encode(values)[:, 0]
        return out

    def points(self, rows: np.ndarray) -> Points:
        """Rows (n, width) as points."""
        columns = {}
        for i, (name, parameter) in enumerate(self._space.parameters.items()):
            if i in self.categories:
                columns[name] = [parameter.options[int(j)] for j in rows[:, i]]
            else:
                columns[name] = parameter.decode(np.clip(rows[:, i : i + 1], 0.0, 1.0))
        return [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]


class BoTorch:
    """Sequential greedy: ten restarts, 512 raw and 128 Monte-Carlo samples."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._noisy = problem.noise > 0.0
        self._seed, self._round = seed, 0
        self._pool = problem.space if isinstance(problem.space, Pool) else None
        self._columns = None if self._pool else Columns(problem.space)
        width = self._pool.width if self._pool else self._columns.width
        self._x, self._y = np.zeros((0, width)), np.zeros(0)

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """Remember."""
        rows = self._pool.encode(points) if self._pool else self._columns.rows(points)
        self._x = np.vstack([self._x, rows])
        self._y = np.append(self._y, values)

    def ask(self, batch: int) -> Points:
        """Fit and optimise."""
        import torch

        self._round += 1
        x, y = torch.tensor(self._x), torch.tensor(self._y)[:, None]
        score = self._score(self._fitted(x, y), x, y)
        return self._choose_rows(score, batch) if self._pool else self._optimise(score, batch)

    def _fitted(self, x: Any, y: Any) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        scaled = Standardize(m=1)
        if self._columns and self._columns.categories:
            kinds = list(self._columns.categories)
            model = MixedSingleTaskGP(x, y, cat_dims=kinds, outcome_transform=scaled)
        else:
            model = SingleTaskGP(x, y, outcome_transform=scaled)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _score(self, model: Any, x: Any, y: Any) -> Any:
        import torch
        from botorch.acquisition.logei import (
            qLogExpectedImprovement,
            qLogNoisyExpectedImprovement,
        )
        from botorch.sampling import SobolQMCNormalSampler

        sampler = SobolQMCNormalSampler(torch.Size([128]), seed=1000 * self._seed + self._round)
        if self._noisy:
            return qLogNoisyExpectedImprovement(model, x, sampler=sampler, prune_baseline=True)
        return qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)

    def _optimise(self, score: Any, batch: int) -> Points:
        import torch
        from botorch.optim import optimize_acqf
        from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating

        columns = self._columns
        discrete = {**columns.levels, **columns.categories}
        ends = [discrete.get(i, [0.0, 1.0]) for i in range(columns.width)]
        bounds = torch.tensor([[v[0] for v in ends], [v[-1] for v in ends]], dtype=torch.float64)
        effort = {"num_restarts": 10, "raw_samples": 512}
        if discrete:
            found, _ = optimize_acqf_mixed_alternating(
                score, bounds, columns.levels, columns.categories, q=batch, **effort
            )
        else:
            found, _ = optimize_acqf(score, bounds, q=batch, sequential=True, **effort)
        return columns.points(found.detach().numpy())

    def _choose_rows(self, score: Any, batch: int) -> Points:
        import torch
        from botorch.optim import optimize_acqf_discrete

        pool, told = self._pool.rows, {row.tobytes() for row in self._x}
        left = np.array([i for i, row in enumerate(pool) if row.tobytes() not in told])
        found, _ = optimize_acqf_discrete(score, batch, torch.tensor(pool[left]))
        place = {row.tobytes(): i for i, row in enumerate(pool)}
        return [self._pool.point(place[row.tobytes()]) for row in found.detach().numpy()]
