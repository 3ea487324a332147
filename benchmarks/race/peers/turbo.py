"""Trust regions (Eriksson et al. 2019): one box, Thompson samples within it, on BoTorch's model.

The constants are the paper's: the box starts at 0.8 of each range, doubles after three batches that
improve, halves after max(4, d)/B that do not, and starts anew once it is below 2^-7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.race.peers.botorch import Columns
from benchmarks.race.problems import Points, Problem, Unsupported
from covey import Pool

_START, _LEAST, _MOST = 0.8, 0.5**7, 1.6
_SUCCESSES = 3
_GAIN = 1e-3  # of the best value: an improvement


class Turbo:
    """TuRBO-1."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch

        if isinstance(problem.space, Pool):
            raise Unsupported("trust regions need a continuous space")
        self._columns = Columns(problem.space)
        if self._columns.categories or self._columns.levels:
            raise Unsupported("trust regions need a continuous space")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._rng = np.random.default_rng(seed)
        self._side, self._won, self._lost = _START, 0, 0
        self._x, self._y = np.zeros((0, self._columns.width)), np.zeros(0)
        self._begun = 0  # the first result of this box

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """Remember, and grow or shrink the box."""
        before = self._y[self._begun :]
        self._x = np.vstack([self._x, self._columns.rows(points)])
        self._y = np.append(self._y, values)
        if not len(before):
            return
        best = before.max()
        won = max(values) > best + _GAIN * abs(best)
        self._won, self._lost = (self._won + 1, 0) if won else (0, self._lost + 1)
        patience = math.ceil(max(4.0, self._columns.width) / len(points))
        if self._won == _SUCCESSES:
            self._side, self._won = min(2.0 * self._side, _MOST), 0
        elif self._lost == patience:
            self._side, self._lost = self._side / 2.0, 0
        if self._side < _LEAST:
            self._side, self._won, self._lost, self._begun = _START, 0, 0, len(self._y)

    def ask(self, batch: int) -> Points:
        """Thompson samples within the box; a random batch where a box begins anew."""
        import torch

        width = self._columns.width
        x, y = self._x[self._begun :], self._y[self._begun :]
        if not len(y):
            return self._columns.points(self._rng.random((batch, width)))
        model = self._fitted(torch.tensor(x), torch.tensor(y)[:, None])
        lengths = model.covar_module.lengthscale.detach().numpy().ravel()
        weights = lengths / lengths.mean()
        weights /= np.prod(weights) ** (1.0 / width)
        centre = x[np.argmax(y)]
        low = np.clip(centre - weights * self._side / 2.0, 0.0, 1.0)
        high = np.clip(centre + weights * self._side / 2.0, 0.0, 1.0)
        count = min(5000, max(2000, 200 * width))
        sobol = torch.quasirandom.SobolEngine(width, scramble=True).draw(count).double().numpy()
        moved = self._rng.random((count, width)) <= min(20.0 / width, 1.0)
        moved[~moved.any(axis=1), self._rng.integers(width)] = True
        at = torch.tensor(np.where(moved, low + sobol * (high - low), centre))
        with torch.no_grad():
            draws = model.posterior(at).rsample(torch.Size([batch]))[:, :, 0].numpy()
        picks: list[int] = []
        for draw in draws:
            draw[picks] = -np.inf
            picks.append(int(np.argmax(draw)))
        return self._columns.points(at[picks].numpy())

    @staticmethod
    def _fitted(x: Any, y: Any) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.kernels import MaternKernel
        from gpytorch.mlls import ExactMarginalLogLikelihood

        kernel = MaternKernel(nu=2.5, ard_num_dims=x.shape[-1])
        model = SingleTaskGP(x, y, covar_module=kernel, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model
