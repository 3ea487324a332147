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


def plain_run(rounds: int, batch: int, seed: int = 0) -> list[dict]:
    """The points that a Study of the same seed asks for, round by round."""
    study, points = Study(SPACE, "min", seed=seed), []
    for _ in range(rounds):
        trials = study.ask(batch)
        points += [{"x": t.point["x"], "model": {"kind": t.point["model/kind"]}} for t in trials]
        study.tell(trials, [loss_of(point) for point in points[-batch:]])
    return points
