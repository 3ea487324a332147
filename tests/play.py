"""A small study and how it is played, for the tests of studies."""

from __future__ import annotations

import numpy as np

import covey

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def f(point):
    return float(np.sin(5 * point["x"]) + point["y"])


def play(study, rounds=2, k=3):
    for _ in range(rounds):
        batch = study.ask(k)
        study.tell(batch, [f(t.point) for t in batch])
    return study


def points_of(trials):
    return [t.point for t in trials]
