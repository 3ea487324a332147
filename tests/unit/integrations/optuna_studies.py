"""What tests of CoveySampler share: a square, a bowl on it, and which trials computed a batch."""

from __future__ import annotations

import pytest

pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import FloatDistribution

from covey.integrations.optuna_batches import all_trials

SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}


def batches(study):
    """Numbers of the trials that computed a batch."""
    return [
        trial.number
        for trial in all_trials(study)
        for key, value in trial.system_attrs.items()
        if key.startswith("covey:batch") and isinstance(value, dict)
    ]


def points(trials):
    return [tuple(sorted(trial.params.items())) for trial in trials]


def bowl(trial):
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + (trial.suggest_float("y", 0, 1) - 0.6) ** 2
