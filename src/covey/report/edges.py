"""Edges: numeric parameters whose best value sits at the end of its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from covey.arrays import Mask
from covey.report.axes import Axis, axes_of
from covey.report.words import number, shown
from covey.space import Pool, Space

_NEAR = 0.01  # of the range, as the model sees it (our choice)


@dataclass(frozen=True, slots=True)
class Edge:
    """The best point sits at an end of this parameter.

    ``others`` is how many of the ``of`` points of the batch looked at sit there too.
    """

    name: str
    side: Literal["lower", "upper"]
    bound: float
    value: float
    others: int
    of: int
    words: str


def edges(
    space: Space | Pool, best: Mapping[str, Any], batch: Sequence[Mapping[str, Any]]
) -> tuple[Edge, ...]:
    """Every end at which the best point sits; two values are too few to have an end."""
    found = []
    rows = space.encode([best, *batch])
    for axis in axes_of(space):
        if axis.ends is None or len(axis.values) <= 2:
            continue
        low, high = axis.ends
        u = rows[:, space.columns_of(axis.name)][:, 0]
        x = np.array([float(point[axis.name]) for point in (best, *batch)])
        for side, bound, at in (
            ("lower", low, (u <= _NEAR) | (x <= low)),
            ("upper", high, (u >= 1.0 - _NEAR) | (x >= high)),
        ):
            if at[0]:
                found.append(_edge(space, axis, side, bound, x[0], at[1:]))
    return tuple(found)


def _edge(
    space: Space | Pool, axis: Axis, side: Any, bound: float, value: float, others: Mask
) -> Edge:
    pool = isinstance(space, Pool)
    beyond = value < bound if side == "lower" else value > bound
    where = "sits at" if value == bound else "lies beyond" if beyond else "is next to"
    end = (
        f"the {'smallest' if side == 'lower' else 'largest'} in the pool"
        if pool
        else f"its {side} bound"
    )
    ask = "add candidates beyond it?" if pool else "widen it?"
    words = f"{shown(axis.name)} {where} {end} {number(bound)}: {ask}"
    return Edge(axis.name, side, bound, float(value), int(others.sum()), len(others), words)
