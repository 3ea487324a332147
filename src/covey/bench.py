"""Known problems to try an optimiser on, each with its space and its optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.arrays import Array
from covey.space import Real, Space


@dataclass(frozen=True)
class Problem:
    """A function to maximise, its space, and the value of its optimum."""

    name: str
    space: Space
    f: Callable[[Mapping[str, Any]], float]
    optimum: float

    def regret(self, value: float) -> float:
        """How far a value falls short of the optimum."""
        return self.optimum - value


_A = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)
_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def hartmann6_values(x: Array) -> Array:
    """Values (n,) of Hartmann-6, its sign changed for maximisation, at the rows of x (n, 6)."""
    return np.exp(-(_A * np.square(x[:, None, :] - _P)).sum(axis=2)) @ _HEIGHTS


def _hartmann6(point: Mapping[str, Any]) -> float:
    return float(hartmann6_values(np.array([[point[f"x{i}"] for i in range(6)]]))[0])


def hartmann6() -> Problem:
    """Hartmann-6 for maximisation: six local maxima on [0, 1]^6, the best of height 3.32237.

    >>> problem = hartmann6()
    >>> best = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
    >>> round(problem.f({f"x{i}": x for i, x in enumerate(best)}), 5)
    3.32237
    """
    space = Space({f"x{i}": Real(0.0, 1.0) for i in range(6)})
    return Problem("hartmann6", space, _hartmann6, 3.322368011415515)
