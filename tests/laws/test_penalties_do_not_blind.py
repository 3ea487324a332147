"""Crashes told as a huge penalty cost no more than the points they spoil."""

import numpy as np
import pytest

import covey
from covey.gp import observations

SPACE = covey.Space({f"x{i}": covey.Real(0.0, 1.0) for i in range(3)})


def bowl(point) -> float:
    return -sum((x - 0.3 - 0.2 * i) ** 2 for i, x in enumerate(point.values()))


def best_with_penalties() -> float:
    rng = np.random.default_rng(0)
    study, best = covey.Study(SPACE, seed=0), -np.inf
    for _ in range(7):
        batch = study.ask(6)
        values = [bowl(trial.point) for trial in batch]
        best = max(best, *values)
        study.tell(batch, [-1e6 if rng.random() < 0.1 else value for value in values])
    return best


def test_the_default_is_not_blinded():
    assert best_with_penalties() > -0.005


def test_taken_at_their_word_penalties_would_blind_it(monkeypatch):
    """The negative control."""
    monkeypatch.setattr(observations, "reined_in", lambda values: values)
    assert best_with_penalties() < -0.05


def test_a_prediction_is_still_in_the_units_that_were_told():
    study = covey.Study(SPACE, seed=0)
    rng = np.random.default_rng(1)
    points = [dict(zip(SPACE.names, row, strict=True)) for row in rng.random((30, 3)).tolist()]
    values = [100.0 + bowl(point) for point in points]
    study.add([*points, {"x0": 0.9, "x1": 0.1, "x2": 0.1}], [*values, -1e6])
    assert study.predict([points[3]]).mean[0] == pytest.approx(values[3], abs=0.05)
    assert study.best.value == max(values)
