"""What tests of CoveySearch share: a space, a loss on it, and what a Study asks for there."""

from __future__ import annotations

import pytest

from covey import Real, Space, Study
from covey.space import Choice

pytest.importorskip("ray.tune", reason="pip install 'covey[ray]'")

from ray import tune

PARAMS = {"x": tune.uniform(0, 1), "model": {"kind": tune.choice(["a", "b"])}, "epochs": 10}
SPACE = Space({"x": Real(0, 1), "model/kind": Choice(["a", "b"])})


def loss_of(config: dict) -> float:
    return (config["x"] - 0.3) ** 2 + (config["model"]["kind"] == "b")


def plain_run(trials: int) -> list[dict]:
    """The points that a Study asks for one by one, each told before the next."""
    study, points = Study(SPACE, "min", seed=0), []
    for _ in range(trials):
        (trial,) = study.ask(1)
        points.append({"x": trial.point["x"], "model": {"kind": trial.point["model/kind"]}})
        study.tell([trial], [loss_of(points[-1])])
    return points
