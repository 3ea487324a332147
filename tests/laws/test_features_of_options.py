"""What features of options are worth: results of one option tell of those like it."""

from __future__ import annotations

import numpy as np

import covey

OPTIONS, BATCH, RUNS, MOST = 40, 4, 10, 40


def evaluations(kind: str, seed: int) -> int:
    """Until the best of 40 options is told, or `MOST`; smooth values, best at 0.37."""
    rng = np.random.default_rng([7, seed])
    hidden = rng.random(OPTIONS)
    values = {f"o{i}": -((x - 0.37) ** 2) for i, x in enumerate(hidden.tolist())}
    told = rng.permutation(hidden) if kind == "shuffled" else hidden
    features = {name: [x, np.exp(3.0 * x)] for name, x in zip(values, told.tolist(), strict=True)}
    choice = covey.Choice(list(values), features=None if kind == "none" else features)
    study = covey.Study(covey.Space({"o": choice}), seed=seed)
    best = max(values.values())
    while study.best is None or (study.best.value < best and len(study.history.told) < MOST):
        batch = study.ask(BATCH)
        study.tell(batch, [values[trial.point["o"]] for trial in batch])
    return len(study.history.told)


def test_features_find_the_best_option_in_fewer_evaluations():
    """On average; features dealt to the wrong options do not (the control)."""
    found = {
        kind: [evaluations(kind, seed) for seed in range(10, 10 + RUNS)]
        for kind in ("none", "features", "shuffled")
    }
    assert np.mean(found["features"]) < 0.8 * np.mean(found["none"]), found
    assert np.mean(found["shuffled"]) > 1.2 * np.mean(found["features"]), found
