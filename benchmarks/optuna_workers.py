"""Optuna with eight workers: CoveySampler beside Optuna's own samplers, as a table.

The clock is played out: each trial takes as long as its number and the seed say, some three times
as long as others, and a worker that is free asks for the next one, knowing what has ended by then.
"""

from __future__ import annotations

import os

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS")})

import argparse
import heapq
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import optuna

from benchmarks.race.problems import Problem, problem
from covey.integrations.optuna import CoveySampler
from covey.integrations.spaces.optuna import space_to_optuna

WORKERS = 8
PROBLEMS = ("branin2", "hartmann6", "mixed-hartmann6")
SAMPLERS: dict[str, Callable[[int], Any]] = {
    "RandomSampler": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "**CoveySampler**": lambda seed: CoveySampler(seed=seed),
}


def regret(of: Problem, sampler: Any, trials: int, seed: int) -> float:
    """How far the best of so many trials falls short of the optimum."""
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = space_to_optuna(of.space)
    running: list[tuple[float, int, optuna.Trial]] = []
    for number in range(trials):
        now = 0.0
        if len(running) == WORKERS:
            now, _, ended = heapq.heappop(running)
            study.tell(ended, of.f(ended.params))
        takes = float(np.random.default_rng([seed, number]).lognormal(0.0, 0.5))
        heapq.heappush(running, (now + takes, number, study.ask(space)))
    for _, _, trial in sorted(running):
        study.tell(trial, of.f(trial.params))
    return of.optimum - study.best_value


def main() -> None:
    """Print the table, a row for each sampler."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--only", default="", help="samplers with this in their name")
    chosen = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    print(f"| sampler | {' | '.join(PROBLEMS)} | seconds a study |\n|---|---|---|---|---|")
    for name, make in ((n, m) for n, m in SAMPLERS.items() if chosen.only in n):
        cells, seconds = [], []
        for which in PROBLEMS:
            found = []
            for seed in range(chosen.seeds):
                start = time.perf_counter()
                found.append(regret(problem(which), make(seed), chosen.trials, seed))
                seconds.append(time.perf_counter() - start)
                print(f"{name}, {which}, seed {seed}: {found[-1]:.4g}", file=sys.stderr)
            cells.append(f"{median(found):.2g} ({min(found):.2g} to {max(found):.2g})")
        print(f"| {name} | {' | '.join(cells)} | {median(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    main()
