"""robot: the walking speed of a planar biped, by eight numbers of its controller.

The paper says that inputs live in [0, 1]^8, and no more. They are the eight parameters themselves
here, speed is the hip's way over ten steps by the time it took, and a fall is worth 0. (Our
choices.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from covey import Real, Space
from papers.kathuria2016.problem import Problem

NAMES = ("a01", "a11", "a21", "a31", "a02", "a12", "a22", "a32")
BEST_KNOWN = Path(__file__).with_name("robot_optimum.json")
"""Written by `python -m papers.kathuria2016 optimum robot`."""


def evaluate(point: Mapping[str, Any]) -> float:
    """Metres per second, without noise."""
    from papers.kathuria2016.robot.walk import speed

    return speed(np.array([point[name] for name in NAMES], dtype=np.float64))


def robot() -> Problem:
    """The biped; its largest speed is the best of a long search, since nobody knows it."""
    space = Space({name: Real(0.0, 1.0) for name in NAMES})
    best = json.loads(BEST_KNOWN.read_text())
    source = f"simulated from the equations of motion; optimum by `{best['command']}`"
    return Problem("robot", "robot", space, evaluate, best["value"], 0.1, source)
