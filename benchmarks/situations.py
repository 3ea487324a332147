"""The default in situations that races do not show: no signal yet, one at a time, a known summit.

    python -m benchmarks.situations [signal] [small] [rest] [--workers 2]

Prints a table for each. It uses nothing but `Study`, so that any version can be measured by it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.problems import problem

SEEDS = range(12)
SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def first_hit(study: covey.Study, value: Callable[[dict], float], batch: int, most: int) -> int:
    """Looks until a value above 0, or one more than the most."""
    looks = 0
    while looks < most:
        trials = study.ask(batch)
        values = [value(trial.point) for trial in trials]
        study.tell(trials, values)
        if max(values) > 0.0:
            return looks + 1 + int(np.argmax(np.array(values) > 0.0))
        looks += batch
    return most + 1


def in_catalogue(d: int, strategy: str, seed: int) -> int:
    """Looks to the first active row: 3 % of 2000 rows, near some place, are active."""
    rng = np.random.default_rng(seed)
    rows, centre = rng.random((2000, d)), rng.uniform(0.3, 0.7, d)
    far = np.square(rows - centre).sum(axis=1)
    least = np.quantile(far, 0.03)
    values = np.maximum(0.0, 1.0 - far / least)
    active = {tuple(r): float(v) for r, v in zip(rows, values, strict=True)}
    study = covey.Study(covey.Pool(rows), seed=seed, strategy=strategy)
    return first_hit(study, lambda point: active[tuple(point.values())], 8, 96)


def in_square(radius: float, strategy: str, seed: int) -> int:
    """Looks until a point falls into a disc of a square; elsewhere the value is 0."""

    def inside(point: dict) -> float:
        return float(np.hypot(point["x"] - 0.73, point["y"] - 0.21) < radius)

    return first_hit(covey.Study(SQUARE, seed=seed, strategy=strategy), inside, 5, 80)


def regret_of(name: str, batch: int, seed: int) -> float:
    """Share of the range that is missing after 60 evaluations."""
    race = problem(name)
    study = covey.Study(race.space, seed=1000 + seed)
    while len(study.history.told) < 60:
        trials = study.ask(batch)
        study.tell(trials, [race.f(trial.point) for trial in trials])
    return (race.optimum - study.best.value) / race.range


def looks_again(name: str, seed: int) -> tuple[float, float]:
    """Share of the last quarter of 150 points within 0.001 of an earlier one; regret in all."""
    race = problem(name)
    study, spent = covey.Study(race.space, seed=seed), 0.0
    for _ in range(30):
        trials = study.ask(5)
        values = [race.f(trial.point) for trial in trials]
        study.tell(trials, values)
        spent += sum(race.optimum - value for value in values) / race.range
    at = race.space.encode([trial.point for trial in study.history.trials])
    tail = len(at) // 4
    gaps = np.linalg.norm(at[-tail:, None] - at, axis=2)
    earlier = np.arange(len(at)) < np.arange(len(at) - tail, len(at))[:, None]
    return float((np.where(earlier, gaps, np.inf).min(axis=1) < 1e-3).mean()), spent


def signal(each: Callable) -> Iterator[str]:
    """Results that are equal so far."""
    yield (
        f"| no signal yet | strategy | studies of {len(SEEDS)} with a hit "
        "| median evaluations to it |"
    )
    yield "|---|---|---|---|"
    for d in (4, 6, 10):
        for strategy in ("auto", "random"):
            looks = each(partial(in_catalogue, d, strategy))
            hits = sum(one <= 96 for one in looks)
            yield f"| 2000 rows, {d}-d, 3 % active | {strategy} | {hits} | {median(looks):g} |"
    for radius in (0.2, 0.13, 0.1):
        for strategy in ("auto", "random"):
            looks = each(partial(in_square, radius, strategy))
            hits = sum(one <= 80 for one in looks)
            yield f"| disc of radius {radius} | {strategy} | {hits} | {median(looks):g} |"


def small(each: Callable) -> Iterator[str]:
    """Batches of one and two."""
    yield "| 60 evaluations | B | median regret | mean |"
    yield "|---|---|---|---|"
    for name in ("hartmann6", "levy4", "ackley10"):
        for batch in (1, 2, 5):
            regrets = each(partial(regret_of, name, batch))
            yield f"| {name} | {batch} | {median(regrets):.2g} | {np.mean(regrets):.2g} |"


def rest(each: Callable) -> Iterator[str]:
    """A study that has converged."""
    yield "| 30 batches of 5 | last points that measure an earlier one again | cumulative regret |"
    yield "|---|---|---|"
    for name in ("branin2", "camel2"):
        again, spent = np.mean(each(partial(looks_again, name)), axis=0)
        yield f"| {name} | {again:.0%} | {spent:.3g} |"


def main() -> None:
    """Print what was asked for."""
    tables = {"signal": signal, "small": small, "rest": rest}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(tables), metavar="TABLE")
    parser.add_argument("--workers", type=int, default=2)
    wanted = parser.parse_args()
    with ProcessPoolExecutor(wanted.workers) as pool:
        for name in wanted.tables:
            for line in tables[name](lambda one: list(pool.map(one, SEEDS))):
                print(line, flush=True)
            print()


if __name__ == "__main__":
    main()
