r"""Steps of an integrator: the pair of orders 5 and 4 of Dormand & Prince (1980).

Notation: s = (q, q'), six numbers; h the length of a step in seconds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from covey.arrays import Array
from papers.kathuria2016.robot.feedback import acceleration

_A = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
"""Row i makes stage i + 1 of the slopes before it; the last row is the answer of order 5."""
_ERROR = np.array(
    [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40],
)
"""Its difference from the answer of order 4."""


@njit(cache=True)
def motion(s: Array, a: Array) -> Array:
    """s' (6,): the right-hand side."""
    out = np.empty(6)
    out[:3] = s[3:]
    out[3:] = acceleration(s[:3], s[3:], a)
    return out


@njit(cache=True)
def stride(s: Array, slope: Array, h: float, a: Array) -> tuple[Array, Array, Array]:
    """One step from s, where s' = slope: the new s, s' there, and the estimated error, (6,)."""
    slopes = np.zeros((7, 6))
    slopes[0] = slope
    at = s
    for i in range(6):
        at = s.copy()
        for j in range(i + 1):
            at += h * _A[i, j] * slopes[j]
        slopes[i + 1] = motion(at, a)
    error = np.zeros(6)
    for j in range(7):
        error += h * _ERROR[j] * slopes[j]
    return at, slopes[6], error
