r"""The controller: torques that bring two outputs to zero in finite time.

Notation: a = (a01, a11, a21, a31, a02, a12, a22, a32), the eight numbers that are optimised;
p(θ) = Σ a_i1 θ^i the torso's posture, h(θ) = (Σ a_i2 θ^i)(θ² - θd²) how the swing leg mirrors the
stance leg (it does so exactly at touch-down, θ1 = θd); y1 = θ3 - p(θ1), y2 = θ1 + θ2 - h(θ1).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from covey.arrays import Array
from papers.kathuria2016.robot.dynamics import TORQUES, coriolis, gravity, inertia, solved

TOUCH_DOWN = math.pi / 8.0  # θd
_ALPHA, _EPSILON = 0.9, 0.1  # of the feedback: its exponent, and how fast it is


@njit(cache=True)
def posture(a: Array, s: float) -> tuple[float, float, float]:
    """p(s), p'(s), p''(s)."""
    value = a[0] + s * (a[1] + s * (a[2] + s * a[3]))
    slope = a[1] + s * (2.0 * a[2] + s * 3.0 * a[3])
    return value, slope, 2.0 * a[2] + 6.0 * a[3] * s


@njit(cache=True)
def mirror(a: Array, s: float) -> tuple[float, float, float]:
    """h(s), h'(s), h''(s)."""
    value, slope, bend = posture(a[4:], s)
    gap = s * s - TOUCH_DOWN**2
    return (
        value * gap,
        slope * gap + 2.0 * s * value,
        bend * gap + 4.0 * s * slope + 2.0 * value,
    )


@njit(cache=True)
def outputs(q: Array, dq: Array, a: Array) -> tuple[Array, Array]:
    """y and y', (2,) each."""
    p, dp, _ = posture(a, q[0])
    h, dh, _ = mirror(a, q[0])
    y = np.array([q[2] - p, q[0] + q[1] - h])
    return y, np.array([dq[2] - dp * dq[0], (1.0 - dh) * dq[0] + dq[1]])


@njit(cache=True)
def pull(y: float, z: float) -> float:
    """ψ(y, z) of Bhat & Bernstein (1998): y'' = ψ(y, y') is at rest after a finite time."""
    reach = math.copysign(abs(z) ** (2.0 - _ALPHA), z) / (2.0 - _ALPHA)
    phi = y + reach
    brake = math.copysign(abs(z) ** _ALPHA, z)
    return -brake - math.copysign(abs(phi) ** (_ALPHA / (2.0 - _ALPHA)), phi)


@njit(cache=True)
def acceleration(q: Array, dq: Array, a: Array) -> Array:
    r"""q'' (3,) under the feedback, which makes y'' = v (input-output linearisation).

    .. math:: u = (J D^{-1} B)^{-1} (v - J D^{-1}(-C \dot q - G) - c), \qquad y'' = J \ddot q + c

    Not finite where J D⁻¹ B is singular.
    """
    y, dy = outputs(q, dq, a)
    _, dp, ddp = posture(a, q[0])
    _, dh, ddh = mirror(a, q[0])
    right, C, G = np.empty((3, 3)), coriolis(q, dq), gravity(q)
    for i in range(3):
        right[i, 0], right[i, 1] = TORQUES[i, 0], TORQUES[i, 1]
        right[i, 2] = -C[i, 0] * dq[0] - C[i, 1] * dq[1] - C[i, 2] * dq[2] - G[i]
    moved = solved(inertia(q), right)  # D⁻¹B, and what happens without torque
    wanted = np.empty((2, 3))  # J moved
    for j in range(3):
        wanted[0, j] = moved[2, j] - dp * moved[0, j]
        wanted[1, j] = (1.0 - dh) * moved[0, j] + moved[1, j]
    square = dq[0] * dq[0]
    v1 = pull(y[0], _EPSILON * dy[0]) / _EPSILON**2 - wanted[0, 2] + ddp * square
    v2 = pull(y[1], _EPSILON * dy[1]) / _EPSILON**2 - wanted[1, 2] + ddh * square
    det = wanted[0, 0] * wanted[1, 1] - wanted[0, 1] * wanted[1, 0]
    if det == 0.0:
        return np.full(3, np.nan)
    u1 = (wanted[1, 1] * v1 - wanted[0, 1] * v2) / det
    u2 = (wanted[0, 0] * v2 - wanted[1, 0] * v1) / det
    return moved[:, 2] + u1 * moved[:, 0] + u2 * moved[:, 1]
