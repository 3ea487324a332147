"""What tests of CoveySampler share: a square, and a bowl on it."""

from __future__ import annotations

import pytest

pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import FloatDistribution

SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}


def points(trials):
    return [tuple(sorted(trial.params.items())) for trial in trials]


def bowl(trial):
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + (trial.suggest_float("y", 0, 1) - 0.6) ** 2
