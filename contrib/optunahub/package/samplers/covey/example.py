"""Branin's function in batches of four, evaluated by two threads."""

from __future__ import annotations

import math

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Branin's function, whose minimum is 0.397887."""
    x = trial.suggest_float("x", -5.0, 10.0)
    y = trial.suggest_float("y", 0.0, 15.0)
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


if __name__ == "__main__":
    sampler = optunahub.load_module(package="samplers/covey").CoveySampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=33, n_jobs=2)
    print(study.best_params, study.best_value)
