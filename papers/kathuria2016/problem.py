"""Problem: what an experiment of the paper optimises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from covey import Pool, Space


@dataclass(frozen=True)
class Problem:
    """Something to maximise; ``evaluate`` is noise-free, ``noise`` is what one look adds.

    Attributes:
        name: as the command line knows it.
        title: as a figure shows it.
        space: where to look.
        evaluate: the value at a point of the space.
        optimum: the largest value there is, or the largest known.
        noise: standard deviation of one look; 0 for none.
        source: where the function, its ranges and its optimum come from.
        grid: the best value of a grid search, where the paper draws one (FastXML); that of the
            tabulated grid, so that it is the optimum here.
    """

    name: str
    title: str
    space: Space | Pool
    evaluate: Callable[[Mapping[str, Any]], float]
    optimum: float
    noise: float
    source: str
    grid: float | None = None
