"""The three synthetic functions, turned up where the literature minimises.

The paper names no noise for them, only for the robot: they are seen as they are. (Our choice.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from covey import Real, Space
from covey.bench import hartmann6 as bench_hartmann6
from papers.kathuria2016.problem import Problem


def _branin(point: Mapping[str, Any]) -> float:
    a, b = point["x0"], point["x1"]
    bowl = b - 5.1 / (4.0 * math.pi**2) * a * a + 5.0 / math.pi * a - 6.0
    return -(bowl * bowl) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) - 10.0


def _wave(x: float) -> float:
    u = 1.6 * x - 0.5
    return 0.3 * math.cos(3.0 * math.pi * u) - u * u


def _cosines(point: Mapping[str, Any]) -> float:
    return 1.0 + _wave(point["x0"]) + _wave(point["x1"])


def branin() -> Problem:
    """Branin-Hoo turned up, on [-5, 10] x [0, 15]: three equal maxima.

    >>> problem = branin()
    >>> round(problem.optimum - problem.evaluate({"x0": math.pi, "x1": 2.275}), 8)
    0.0
    """
    space = Space({"x0": Real(-5.0, 10.0), "x1": Real(0.0, 15.0)})
    source = "Branin-Hoo in raw units, times -1; x1 from 0 (GPyOpt's box begins at 1)"
    return Problem("branin", "Branin-Hoo", space, _branin, -0.39788735772973816, 0.0, source)


def cosines() -> Problem:
    """Mixture of cosines (Anderson et al. 2000) on [0, 1]²: the maximum is 1.6 at (5/16, 5/16).

    >>> cosines().evaluate({"x0": 0.3125, "x1": 0.3125})
    1.6
    """
    space = Space({"x0": Real(0.0, 1.0), "x1": Real(0.0, 1.0)})
    source = "as GPyOpt has it, but with the true maximum: GPyOpt records 1.59622"
    return Problem("cosines", "Mixture of cosines", space, _cosines, 1.6, 0.0, source)


def hartmann6() -> Problem:
    """Hartmann-6 turned up, on [0, 1]^6."""
    ours = bench_hartmann6()
    source = "Hartmann-6 times -1, in covey.bench"
    return Problem("hartmann6", "Hartmann-6", ours.space, ours.f, ours.optimum, 0.0, source)
