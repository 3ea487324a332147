"""Optuna with Covey: workers in processes of their own share one storage.

Ridge regression on random features, tuned by two workers; `sampler=` is all they know of Covey.

pip install 'covey[optuna]'
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from covey.integrations.optuna import CoveySampler

WORKERS, TRIALS_EACH = 2, 14


def validation_error(width: float, penalty: float, features: int, kind: str) -> float:
    """Error of a ridge regression on random features, at points it was not fitted to."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (400, 2))
    y = np.sin(6.0 * x[:, 0]) * x[:, 1] + 0.1 * rng.standard_normal(400)
    inner = x @ (rng.standard_normal((2, features)) / width) + rng.uniform(0.0, 6.28, features)
    z = np.cos(inner) if kind == "cosine" else np.maximum(inner, 0.0)
    gram = z[:300].T @ z[:300] + penalty * np.eye(features)
    weights = np.linalg.solve(gram, z[:300].T @ y[:300])
    return float(np.sqrt(np.mean((z[300:] @ weights - y[300:]) ** 2)))


def objective(trial: optuna.Trial) -> float:
    """One trial of Optuna."""
    return validation_error(
        trial.suggest_float("width", 0.05, 5.0, log=True),
        trial.suggest_float("penalty", 1e-6, 10.0, log=True),
        trial.suggest_int("features", 20, 200, step=20),
        trial.suggest_categorical("kind", ["cosine", "relu"]),
    )


def open_study(log: str) -> optuna.Study:
    """The study of a log file, which is made if it is not there."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(log)),
        study_name="ridge",
        sampler=CoveySampler(seed=0),
        load_if_exists=True,
    )


def work(log: str) -> None:
    """What each worker does: join the study, and go on with it."""
    open_study(log).optimize(objective, n_trials=TRIALS_EACH)


def main() -> None:
    """Run the workers, then look at what they found."""
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "study.log")
        study = open_study(log)
        start = multiprocessing.get_context("spawn").Process
        workers = [start(target=work, args=(log,)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        points = {tuple(sorted(trial.params.items())) for trial in study.trials}
        best = ", ".join(f"{name} {value}" for name, value in sorted(study.best_params.items()))
        print(f"{len(study.trials)} trials at {len(points)} points")
        print(f"error {study.best_value:.4f} at {best}")


if __name__ == "__main__":
    main()
