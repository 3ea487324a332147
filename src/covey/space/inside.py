"""Points inside linear constraints, for when drawing from the whole box finds too little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from covey.arrays import Array
from covey.space.interior import centres
from covey.space.parameters import Parameter
from covey.space.polytope import half_spaces, scatter
from covey.space.space import Space


def one_inside(space: Space, fixed: Mapping[str, Any]) -> Array | None:
    """Coordinates (d,) of one feasible point well inside the linear constraints.

    None without linear constraints, or if none was found.
    """
    if not space.linear:
        return None
    free, held = _weighed(space, fixed)
    for values in centres(free, held, space.linear):
        u = space.hold(np.full((1, space.width), 0.5), fixed)
        for name, value in values.items():
            u[:, space.columns_of(name)] = free[name].nearest(np.array([value]))
        u = space.snap(u)
        if space.feasible(u)[0]:
            return np.asarray(u[0])
    return None


def many_inside(
    space: Space, fixed: Mapping[str, Any], count: int, rng: np.random.Generator
) -> Array | None:
    """Coordinates (count, d) spread over what the linear constraints leave.

    Rounding to integers and predicates may still refuse some of them. None without linear
    constraints, or if they leave nothing.
    """
    free, held = _weighed(space, fixed)
    if not free:
        return None
    spans = np.array([parameter.span for parameter in free.values()], dtype=np.float64)
    shares = scatter(*half_spaces(space.linear, list(free), spans, held), count, rng)
    if shares is None:
        return None
    u = rng.random((count, space.width))
    for (name, parameter), (low, high), share in zip(free.items(), spans, shares.T, strict=True):
        u[:, space.columns_of(name)] = parameter.nearest(low + share * (high - low))
    return space.snap(space.hold(u, fixed))


def _weighed(
    space: Space, fixed: Mapping[str, Any]
) -> tuple[dict[str, Parameter], dict[str, float]]:
    """The parameters linear constraints weigh: those free to move, and numbers of the rest."""
    weighed = {name for row in space.linear for name in row.weights}
    free = {n: p for n, p in space.parameters.items() if n in weighed and n not in fixed}
    return free, {name: float(fixed[name]) for name in weighed.intersection(fixed)}
