r"""Equations of motion while one foot stands: D(q) q'' + C(q, q') q' + G(q) = B u.

Notation: q = (θ1 stance leg, θ2 swing leg, θ3 torso), angles from the vertical, positive when
leaning forward; u the torques between the torso and each leg. The ankle has no motor. SI units.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from covey.arrays import Array

LEG = 1.0  # r, length of a leg
TORSO = 0.5  # L, from the hip to the torso's mass
LEG_MASS = 5.0  # m, half way down each leg
HIP_MASS = 15.0  # M_H
TORSO_MASS = 10.0  # M_T
GRAVITY = 9.8

TORQUES = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])
"""B: each torque turns the torso one way and its leg the other."""


@njit(cache=True)
def inertia(q: Array) -> Array:
    """D(q), (3, 3)."""
    D = np.zeros((3, 3))
    D[0, 0] = (1.25 * LEG_MASS + HIP_MASS + TORSO_MASS) * LEG**2
    D[0, 1] = D[1, 0] = -0.5 * LEG_MASS * LEG**2 * math.cos(q[0] - q[1])
    D[0, 2] = D[2, 0] = TORSO_MASS * LEG * TORSO * math.cos(q[0] - q[2])
    D[1, 1] = 0.25 * LEG_MASS * LEG**2
    D[2, 2] = TORSO_MASS * TORSO**2
    return D


@njit(cache=True)
def coriolis(q: Array, dq: Array) -> Array:
    """C(q, q'), (3, 3), so chosen that D' - 2C is skew-symmetric."""
    C = np.zeros((3, 3))
    legs = 0.5 * LEG_MASS * LEG**2 * math.sin(q[0] - q[1])
    body = TORSO_MASS * LEG * TORSO * math.sin(q[0] - q[2])
    C[0, 1], C[1, 0] = -legs * dq[1], legs * dq[0]
    C[0, 2], C[2, 0] = body * dq[2], -body * dq[0]
    return C


@njit(cache=True)
def gravity(q: Array) -> Array:
    """G(q), (3,): the slope of the potential energy."""
    G = np.empty(3)
    G[0] = -GRAVITY * LEG * (1.5 * LEG_MASS + HIP_MASS + TORSO_MASS) * math.sin(q[0])
    G[1] = 0.5 * GRAVITY * LEG * LEG_MASS * math.sin(q[1])
    G[2] = -GRAVITY * TORSO * TORSO_MASS * math.sin(q[2])
    return G


@njit(cache=True)
def solved(D: Array, right: Array) -> Array:
    """D⁻¹ right for a symmetric positive definite D (3, 3) with D₂₃ = 0, right (3, m).

    Written out, since a library call would cost more than the rest of the motion.
    """
    a, b = D[0, 1] / D[1, 1], D[0, 2] / D[2, 2]
    left = D[0, 0] - a * D[0, 1] - b * D[0, 2]
    out = np.empty_like(right)
    for j in range(right.shape[1]):
        out[0, j] = (right[0, j] - a * right[1, j] - b * right[2, j]) / left
        out[1, j] = (right[1, j] - D[0, 1] * out[0, j]) / D[1, 1]
        out[2, j] = (right[2, j] - D[0, 2] * out[0, j]) / D[2, 2]
    return out


def energy(q: Array, dq: Array) -> float:
    """½ q'ᵀ D q' + V(q): constant while no torque acts."""
    stance = LEG * (1.5 * LEG_MASS + HIP_MASS + TORSO_MASS) * math.cos(q[0])
    swing = -0.5 * LEG * LEG_MASS * math.cos(q[1])
    torso = TORSO * TORSO_MASS * math.cos(q[2])
    return float(0.5 * dq @ inertia(q) @ dq) + GRAVITY * (stance + swing + torso)
