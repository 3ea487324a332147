"""Walking: from the first touch-down to the last, or to a fall."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from covey.arrays import Array
from papers.kathuria2016.robot.dynamics import LEG
from papers.kathuria2016.robot.feedback import TOUCH_DOWN, mirror, posture
from papers.kathuria2016.robot.impact import impact
from papers.kathuria2016.robot.pace import motion, stride

NOMINAL = np.array([0.512, 0.073, 0.035, -0.819, -2.27, 3.26, 3.11, 1.89])
"""Parameters of a known periodic gait (the book's)."""
STEPS = 10
TOLERANCE = 1e-8  # relative, the absolute one is a tenth: speeds are right to 1e-5 (1e-5: to 1e-3)
_FIRST_SPEED = 1.55  # of the stance leg before the first impact, rad/s
_HIP_TOO_LOW = 0.5  # of a leg
_LEAST_STRIDE = 1e-12  # seconds: the torques have become infinite
_MOST_STRIDES, _MOST_SECONDS = 20_000, 13.0  # for one step of the robot (our choice)


@njit(cache=True)
def start(a: Array) -> Array:
    """s just after the first impact: before it, both outputs and their speeds are zero."""
    p, dp, _ = posture(a, TOUCH_DOWN)
    _, dh, _ = mirror(a, TOUCH_DOWN)
    w = _FIRST_SPEED
    return landed(np.array([TOUCH_DOWN, -TOUCH_DOWN, p, w, (dh - 1.0) * w, dp * w]))


@njit(cache=True)
def landed(s: Array) -> Array:
    """s just after a touch-down at s."""
    out = np.empty(6)
    out[:3], out[3:] = impact(s[:3], s[3:])
    return out


@njit(cache=True)
def _exactly(s: Array, slope: Array, h: float, a: Array) -> tuple[float, Array]:
    """The length in (0, h] of the stride from s that ends with θ1 at touch-down, and its end.

    By the Illinois variant of regula falsi, on strides of the integrator itself.
    """
    end, _, _ = stride(s, slope, h, a)
    low, high = 0.0, h
    below, above = s[0] - TOUCH_DOWN, end[0] - TOUCH_DOWN
    middle = h
    for _ in range(60):
        middle = (low * above - high * below) / (above - below)
        end, _, _ = stride(s, slope, middle, a)
        gap = end[0] - TOUCH_DOWN
        if abs(gap) < 1e-13 or high - low < 1e-15:
            break
        if gap > 0.0:
            high, above, below = middle, gap, 0.5 * below
        else:
            low, below, above = middle, gap, 0.5 * above
    return middle, end


@njit(cache=True)
def step(s: Array, a: Array, tolerance: float) -> tuple[float, Array]:
    """One step of the robot from s to the next touch-down: its seconds and s there.

    A fall takes infinite time. It has fallen when the hip is too low, when the torques become
    infinite, or when it stands about for too long; the height of the swing foot is not looked at.
    """
    time, h, slope = 0.0, 1e-3, motion(s, a)
    for _ in range(_MOST_STRIDES):
        new, new_slope, error = stride(s, slope, h, a)
        scale = tolerance * np.maximum(np.maximum(np.abs(s), np.abs(new)), 0.1)
        worst = np.max(np.abs(error) / scale)
        if not worst <= 1.0:  # too large, or not a number
            h *= max(0.1, 0.9 * worst**-0.2) if math.isfinite(worst) else 0.1
            if h < _LEAST_STRIDE:
                break
            continue
        if s[0] < TOUCH_DOWN <= new[0]:
            last, end = _exactly(s, slope, h, a)
            return time + last, end
        time += h
        if time > _MOST_SECONDS or math.cos(new[0]) < _HIP_TOO_LOW:
            break
        s, slope = new, new_slope
        h *= min(5.0, 0.9 * max(worst, 1e-10) ** -0.2)
    return math.inf, s


@njit(cache=True)
def walk(a: Array, steps: int = STEPS, tolerance: float = TOLERANCE) -> tuple[float, float]:
    """How far the hip gets in some steps, and in how many seconds; infinite if it falls."""
    s, distance, time = start(a), 0.0, 0.0
    for _ in range(steps):
        seconds, end = step(s, a, tolerance)
        if not math.isfinite(seconds):
            return distance, math.inf
        distance += LEG * (math.sin(end[0]) - math.sin(s[0]))
        time += seconds
        s = landed(end)
        if not math.isfinite(s.sum()):
            return distance, math.inf
    return distance, time


def speed(a: Array, steps: int = STEPS, tolerance: float = TOLERANCE) -> float:
    """Metres per second over some steps; 0 for one that falls."""
    distance, time = walk(np.asarray(a, dtype=np.float64), steps, tolerance)
    return distance / time
