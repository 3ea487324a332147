"""Ray Tune with points from Covey: 16 trials, four at a time.

pip install 'covey[ray]'
"""

from __future__ import annotations

import logging
import os
import tempfile

# Before Ray is imported: no usage reports, and little on the screen but what is printed below.
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
}

import ray
from ray import tune

from covey.integrations.ray import CoveySearch


def train(config: dict) -> dict:
    """Stands for a training that ends with a loss."""
    model = config["model"]
    loss = (model["layers"] - 3) ** 2 / 10 + 10 * (config["lr"] - 0.03) ** 2
    return {"loss": loss + 0.2 * (model["activation"] == "tanh")}


def main() -> None:
    """Search, and print what was found."""
    search = CoveySearch(seed=0)
    with tempfile.TemporaryDirectory() as storage:
        tuner = tune.Tuner(
            train,
            param_space={
                "lr": tune.loguniform(1e-4, 1.0),
                "model": {
                    "layers": tune.randint(1, 9),
                    "activation": tune.choice(["relu", "tanh"]),
                },
                "epochs": 10,
            },
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                search_alg=search,
                num_samples=16,
                max_concurrent_trials=4,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=storage, verbose=0),
        )
        best = tuner.fit().get_best_result()
    print(f"best of {len(search.study.history.told)}: loss {best.metrics['loss']:.3f}")
    print("config:", best.config)


if __name__ == "__main__":
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    main()
    ray.shutdown()
