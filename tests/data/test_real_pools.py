"""Real catalogues of candidates: Covey finds good rows sooner than chance."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

import covey

POOLS = {
    "crossed_barrel/Crossed_barrel_dataset.csv": "toughness",
    "p3ht/P3HT_dataset.csv": "Conductivity (measured) (S/cm)",
}


@pytest.fixture
def folder() -> Path:
    if "COVEY_DATA" not in os.environ:
        pytest.skip("set COVEY_DATA to the folder with the pools/ of measured candidates")
    return Path(os.environ["COVEY_DATA"]) / "pools"


@pytest.mark.parametrize("name", POOLS)
def test_a_measured_catalogue(folder, name):
    with (folder / name).open(encoding="utf-8-sig", newline="") as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    target = POOLS[name]
    measured: dict[tuple[float, ...], list[float]] = {}
    for row in rows:  # replicates of one design are one candidate, with their mean
        key = tuple(v for k, v in row.items() if k != target)
        measured.setdefault(key, []).append(row[target])
    names = [k for k in rows[0] if k != target]
    truth = {key: float(np.mean(values)) for key, values in measured.items()}
    pool = covey.Pool([dict(zip(names, key, strict=True)) for key in truth])

    def regret(strategy: str, seed: int) -> float:
        study = covey.Study(pool, strategy=strategy, seed=seed)
        for _ in range(10):
            batch = study.ask(5)
            study.tell(batch, [truth[tuple(t.point[n] for n in names)] for t in batch])
        return max(truth.values()) - study.best.value

    ours = np.mean([regret("auto", seed) for seed in range(4)])
    chance = np.mean([regret("random", seed) for seed in range(12)])
    assert ours < 0.6 * chance
