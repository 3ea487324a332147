r"""Touch-down: the swing foot strikes, sticks and becomes the stance foot.

Notation: q_e = (θ1, θ2, θ3, z1, z2), the angles and where the old stance foot is; D_e its inertia;
E = ∂(swing foot)/∂q_e; F the impulse of the ground.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from covey.arrays import Array
from papers.kathuria2016.robot.dynamics import (
    HIP_MASS,
    LEG,
    LEG_MASS,
    TORSO,
    TORSO_MASS,
    inertia,
)


@njit(cache=True)
def free_inertia(q: Array) -> Array:
    """D_e(q), (5, 5): of the robot with no foot on the ground."""
    D, standing = np.zeros((5, 5)), inertia(q)
    k = 0.5 * LEG * (3.0 * LEG_MASS + 2.0 * HIP_MASS + 2.0 * TORSO_MASS)
    reaches = (k, -0.5 * LEG_MASS * LEG, TORSO_MASS * TORSO)
    for i in range(3):
        for j in range(3):
            D[i, j] = standing[i, j]
        D[i, 3] = D[3, i] = reaches[i] * math.cos(q[i])
        D[i, 4] = D[4, i] = -reaches[i] * math.sin(q[i])
    D[3, 3] = D[4, 4] = 2.0 * LEG_MASS + HIP_MASS + TORSO_MASS
    return D


@njit(cache=True)
def foot_slope(q: Array) -> Array:
    """E(q), (2, 5): how the swing foot moves with q_e."""
    E = np.zeros((2, 5))
    E[0, 0], E[1, 0] = LEG * math.cos(q[0]), -LEG * math.sin(q[0])
    E[0, 1], E[1, 1] = -LEG * math.cos(q[1]), LEG * math.sin(q[1])
    E[0, 3] = E[1, 4] = 1.0
    return E


@njit(cache=True)
def struck(q: Array, dq: Array) -> Array:
    r"""q_e' (5,) just after the impact, before the legs change their names; then F (2,).

    Inelastic, without slip or rebound: the foot stops, and only the ground's impulse acts.

    .. math:: D_e (\dot q_e^+ - \dot q_e^-) = E^\top F, \qquad E \dot q_e^+ = 0
    """
    D, E = free_inertia(q), foot_slope(q)
    matrix = np.zeros((7, 8))  # the last column is the right-hand side
    for i in range(5):
        for j in range(5):
            matrix[i, j] = D[i, j]
        for j in range(2):
            matrix[i, 5 + j] = -E[j, i]
            matrix[5 + j, i] = E[j, i]
        for j in range(3):
            matrix[i, 7] += D[i, j] * dq[j]
    return _solved(matrix)


@njit(cache=True)
def _solved(matrix: Array) -> Array:
    """x with A x = b for (A | b), which is used up: elimination with pivots.

    (A call of LAPACK would take as long to compile as all the rest.)
    """
    n = len(matrix)
    for k in range(n):
        pivot = k + np.argmax(np.abs(matrix[k:, k]))
        for j in range(k, n + 1):
            matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for i in range(n):
            if i != k:
                share = matrix[i, k] / matrix[k, k]
                for j in range(k, n + 1):
                    matrix[i, j] -= share * matrix[k, j]
    out = np.empty(n)
    for k in range(n):
        out[k] = matrix[k, n] / matrix[k, k]
    return out


@njit(cache=True)
def impact(q: Array, dq: Array) -> tuple[Array, Array]:
    """Angles and speeds at the start of the next step: after the impact, the legs swapped."""
    after = struck(q, dq)
    return np.array([q[1], q[0], q[2]]), np.array([after[1], after[0], after[2]])
