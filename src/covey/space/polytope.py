"""Points spread over the polytope that linear constraints cut out of a box."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from covey.arrays import Array
    from covey.space.constraints import Linear

_CORNERS = 64  # corners sought, by as many linear programs
_SWEEPS = 80


def half_spaces(
    rows: Sequence[Linear], names: Sequence[str], spans: Array, held: Mapping[str, float]
) -> tuple[Array, Array]:
    """The constraints as rows a·t <= b over the named parameters, ranges (p, 2) scaled to [0, 1].

    ``held`` are numbers of the weighed parameters that are fixed.
    """
    sides = [_halves(row, names, spans, held) for row in rows]
    normals, bounds = (np.concatenate(part) for part in zip(*sides, strict=True))
    return normals, bounds


def _halves(
    row: Linear, names: Sequence[str], spans: Array, held: Mapping[str, float]
) -> tuple[Array, Array]:
    """The constraint as rows a·t <= b over the scaled free parameters."""
    low, reach = spans[:, 0], np.ptp(spans, axis=1)
    weights = np.array([row.weights.get(name, 0.0) for name in names])
    offset = float(weights @ low) + sum(
        weight * held[name] for name, weight in row.weights.items() if name in held
    )
    normal = weights * reach
    scale = float(np.linalg.norm(normal)) or 1.0
    both = [(1.0, row.upper), (-1.0, row.lower)]
    kept = [(sign, sign * (bound - offset)) for sign, bound in both if math.isfinite(bound)]
    return (
        np.array([sign * normal / scale for sign, _ in kept]),
        np.array([bound / scale for _, bound in kept]),
    )


def scatter(normals: Array, bounds: Array, count: int, rng: np.random.Generator) -> Array | None:
    """Points (count, p) spread over {t in [0, 1]^p : A t <= b}; None if it is empty.

    Linear programs with random objectives find corners; random mixtures of these start as many
    chains of hit-and-run, whose directions are differences between chains: so they stretch as
    the polytope does, however thin it is. (Our choice.)
    """
    corners = _corners(normals, bounds, rng)
    if corners is None:
        return None
    p = normals.shape[1]
    mixed = rng.dirichlet(np.full(len(corners), 0.5), size=count) @ corners
    at = np.clip(mixed + 0.02 * (corners.mean(axis=0) - mixed), 0.0, 1.0)
    walls = np.vstack([normals, np.eye(p), -np.eye(p)])
    limits = np.concatenate([bounds, np.ones(p), np.zeros(p)])
    for sweep in range(_SWEEPS):
        along = at[rng.permutation(count)] - at[rng.permutation(count)]
        if sweep % 4 == 3:  # now and then in any direction, so that no direction is left out
            along = rng.standard_normal((count, p))
        at = np.clip(at + _stride(at, along, walls, limits, rng) * along, 0.0, 1.0)
    return at


def _corners(normals: Array, bounds: Array, rng: np.random.Generator) -> Array | None:
    from scipy.optimize import linprog

    found = []
    for objective in rng.standard_normal((_CORNERS, normals.shape[1])):
        answer = linprog(objective, A_ub=normals, b_ub=bounds, bounds=(0.0, 1.0))
        if not answer.success or answer.x is None:
            return None
        found.append(answer.x)
    return np.array(found)


def _stride(
    at: Array, along: Array, walls: Array, limits: Array, rng: np.random.Generator
) -> Array:
    """How far (n, 1) to go along each direction: uniform on the chord between the walls."""
    room = np.maximum(limits - at @ walls.T, 0.0)
    speed = along @ walls.T
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = room / speed
    ahead = np.where(speed > 1e-14, reach, np.inf).min(axis=1)
    behind = np.where(speed < -1e-14, reach, -np.inf).max(axis=1)
    known = np.isfinite(ahead) & np.isfinite(behind)
    step = np.where(known, behind, 0.0) + rng.random(len(at)) * np.where(known, ahead - behind, 0.0)
    return step[:, None]
