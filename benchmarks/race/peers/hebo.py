"""HEBO, with its own defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.race.problems import Points, Problem, Unsupported
from covey import Integer, Pool, Real
from covey.space import Choice


class Hebo:
    """HEBO, on reals, integers and choices."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        if isinstance(problem.space, Pool):
            raise Unsupported("HEBO is not entered for pools")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - HEBO draws from the global generator
        self._space = space = problem.space
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
