"""A point well inside linear constraints, by linear programming."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covey.space.parameters import Integer
from covey.space.polytope import half_spaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from covey.arrays import Array, Mask
    from covey.space.constraints import Linear
    from covey.space.parameters import Parameter


def centres(
    free: Mapping[str, Parameter], held: Mapping[str, float], rows: Sequence[Linear]
) -> Iterator[dict[str, float]]:
    """Points to try in turn, as numbers by name of the free weighed parameters.

    First the centre of the relaxed problem, whose integers need rounding: it lies deepest inside
    and mostly works. Then one whose integers are whole.

    Args:
        free: the parameters to place; those without a weight are left alone.
        held: numbers of the weighed parameters that are fixed.
        rows: the constraints.
    """
    for whole in (False, True):
        values = _centre(free, held, rows, whole=whole)
        if values is not None:
            yield values


def _centre(
    free: Mapping[str, Parameter],
    held: Mapping[str, float],
    rows: Sequence[Linear],
    *,
    whole: bool,
) -> dict[str, float] | None:
    r"""Centre of the largest ball between the constraints, every range scaled to [0, 1].

    .. math:: \max r \text{ s.t. } a_i^\top t + \lVert a_i \rVert r \le b_i, \; r \le t \le 1 - r

    With ``whole`` the integers stay integers (a mixed-integer program) and the ball extends in the
    other directions only. None if there is no such point.
    """
    from scipy.optimize import linprog

    names = [name for name in free if any(name in row.weights for row in rows)]
    spans = np.array([free[name].span for name in names], dtype=np.float64).reshape(-1, 2)
    low, reach = spans[:, 0], np.ptp(spans, axis=1)
    counted = np.array([whole and isinstance(free[name], Integer) for name in names], dtype=bool)
    units = np.array(
        [
            max((free[name].size or 1) - 1, 1) if count else 1
            for name, count in zip(names, counted, strict=True)
        ],
        dtype=np.float64,
    )
    normals, bounds = half_spaces(rows, names, spans, held)
    box, edges = _box(counted)
    radii = np.linalg.norm(normals[:, ~counted], axis=1, keepdims=True)
    answer = linprog(
        np.append(np.zeros(len(names)), -1.0),
        A_ub=np.vstack([np.hstack([normals / units, radii]), box]),
        b_ub=np.concatenate([bounds, edges]),
        bounds=[*((0.0, unit) for unit in units), (0.0, 0.5)],
        integrality=np.append(counted, False).astype(np.intp),
    )
    if not answer.success or answer.x is None:
        return None
    values = low + reach * answer.x[:-1] / units
    return dict(zip(names, values.tolist(), strict=True))


def _box(counted: Mask) -> tuple[Array, Array]:
    """Rows that keep the ball inside [0, 1] in the directions it extends."""
    sides = np.eye(len(counted))[~counted]
    ones = np.ones((len(sides), 1))
    rows = np.vstack([np.hstack([-sides, ones]), np.hstack([sides, ones])])
    return rows, np.concatenate([np.zeros(len(sides)), np.ones(len(sides))])
