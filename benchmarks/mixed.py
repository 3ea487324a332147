"""Mixed spaces, where a default may stick on a wrong level: share of runs that do, and copies.

    python -m benchmarks.mixed RESULTS.jsonl --strategies auto --seeds 30 --batches 4 8 16

Six noise-free problems whose optimum is known; 64 evaluations, 96 where the encoded inputs are more
than six, or twelve batches, whichever is more; the first batch is the study's own. A run is stuck
if it is above 2 % of the range, then ("early") and at its end ("late"). Of a file that is packed
(.gz) only the table is printed.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.closeness import copies
from benchmarks.race.optimisers import version_of
from benchmarks.race.runner import add_missing, by_cell
from covey import Choice, Integer, Real, Space

STUCK = 0.02  # of the range
LATE = 12  # batches
RATE = Real(1e-5, 1e-1, log=True)


@dataclass(frozen=True)
class Mixed:
    """Something to maximise; the optimum is 0."""

    space: Space
    f: Callable[..., float]

    @property
    def looks(self) -> int:
        """Evaluations of a run: more where there are more inputs, as encoded."""
        return 64 if self.space.width <= 6 else 96


def readme(lr: float, layers: int, opt: str) -> float:
    """The README's example, less its optimum."""
    return -abs(layers - 5) - (lr - 0.01) ** 2 + (opt == "adam") - 1.0


def network(lr: float, layers: int, opt: str) -> float:
    """A rate whose best value depends on the optimiser, and a level that matters less."""
    best = -2.5 if opt == "adam" else -1.5
    return -0.3 * (math.log10(lr) - best) ** 2 - 0.2 * abs(layers - 5) - 0.3 * (opt == "sgd")


def forest(trees: int, depth: int, share: float, criterion: str) -> float:
    """An integer on a log scale, an integer, a share, and a choice that hardly matters."""
    miss = (math.log2(trees) - 8.0) ** 2 / 8.0 + ((depth - 11) / 6.0) ** 2
    loss = {"gini": 0.0, "entropy": 0.2, "log": 0.3}[criterion]
    return -miss - 2.0 * (share - 0.35) ** 2 - loss


def reaction(temperature: float, hours: float, solvent: str, base: str, load: int) -> float:
    """A recipe: the best temperature depends on the solvent, the best base on nothing."""
    best = {"water": 60.0, "dmf": 95.0, "thf": 45.0, "toluene": 80.0}[solvent]
    yields = {"water": 0.5, "dmf": 1.0, "thf": 0.75, "toluene": 0.85}[solvent]
    share = {"none": 0.6, "weak": 0.8, "strong": 1.0}[base]
    heat = math.exp(-(((temperature - best) / 25.0) ** 2))
    return (
        yields
        * share
        * heat
        * math.exp(-(math.log(hours / 6.0) ** 2) / 2.0)
        * (1.0 - 0.05 * abs(load - 4))
        - 1.0
    )


def pipeline(scaler: str, kernel: str, c: float, gamma: float, degree: int) -> float:
    """A pipeline without conditions: some inputs matter for some options only."""
    loss = {"none": 0.4, "standard": 0.0, "robust": 0.15}[scaler]
    if kernel == "rbf":
        fit = 0.25 * (math.log10(gamma) + 2.0) ** 2
    elif kernel == "poly":
        fit = 0.2 + 0.3 * abs(degree - 3) + 0.1 * (math.log10(gamma) + 1.0) ** 2
    else:
        fit = 0.35
    return -loss - fit - 0.1 * (math.log10(c) - 1.0) ** 2


def grade(steps: int, size: str, drop: float, width: int, lr: float) -> float:
    """Ordered choices with a second summit on a wrong level."""
    place = ["xs", "s", "m", "l", "xl"].index(size)
    summit = math.exp(-((place - 3) ** 2) / 0.8 - ((math.log2(width) - 7.0) ** 2) / 2.0)
    second = 0.85 * math.exp(-((place - 0) ** 2) / 0.8 - ((math.log2(width) - 4.5) ** 2) / 2.0)
    slope = 0.3 * (math.log10(lr) + 3.0) ** 2 / 4.0 + 0.5 * (drop - 0.2) ** 2
    return max(summit, second) - slope - 0.02 * abs(steps - 6) - 1.0


PROBLEMS = {
    "readme": Mixed(
        Space({"lr": RATE, "layers": Integer(1, 8), "opt": Choice(["adam", "sgd"])}), readme
    ),
    "network": Mixed(
        Space({"lr": RATE, "layers": Integer(1, 8), "opt": Choice(["adam", "sgd"])}), network
    ),
    "forest": Mixed(
        Space(
            {
                "trees": Integer(8, 1024, log=True),
                "depth": Integer(2, 20),
                "share": Real(0.05, 1.0),
                "criterion": Choice(["gini", "entropy", "log"]),
            }
        ),
        forest,
    ),
    "reaction": Mixed(
        Space(
            {
                "temperature": Real(20.0, 140.0),
                "hours": Real(0.5, 48.0, log=True),
                "solvent": Choice(["water", "dmf", "thf", "toluene"]),
                "base": Choice(["none", "weak", "strong"], ordered=True),
                "load": Integer(1, 10),
            }
        ),
        reaction,
    ),
    "pipeline": Mixed(
        Space(
            {
                "scaler": Choice(["none", "standard", "robust"]),
                "kernel": Choice(["linear", "poly", "rbf"]),
                "c": Real(1e-3, 1e3, log=True),
                "gamma": Real(1e-5, 1e1, log=True),
                "degree": Integer(2, 6),
            }
        ),
        pipeline,
    ),
    "grade": Mixed(
        Space(
            {
                "steps": Integer(1, 12),
                "size": Choice(["xs", "s", "m", "l", "xl"], ordered=True),
                "drop": Real(0.0, 0.6),
                "width": Integer(8, 512, log=True),
                "lr": RATE,
            }
        ),
        grade,
    ),
}


class Cell(NamedTuple):
    """One run."""

    strategy: str
    problem: str
    batch: int
    seed: int


def race(cell: Cell) -> list[dict[str, Any]]:
    """Its row, one."""
    task = PROBLEMS[cell.problem]
    many = task.space.decode(np.random.default_rng(0).random((4096, task.space.width)))
    span = -min(task.f(**point) for point in many)
    study = covey.Study(task.space, seed=cell.seed, strategy=cell.strategy)
    began, same, late = time.process_time(), 0, 0
    early = task.looks // cell.batch
    regrets = []
    for t in range(max(early, LATE)):
        trials = study.ask(cell.batch)
        study.tell(trials, [task.f(**trial.point) for trial in trials])
        if t:
            same += copies(task.space.encode([trial.point for trial in trials]))
            late += cell.batch
        regrets.append(-study.best.value / span)
    row = {
        **cell._asdict(),
        "regret": regrets[early - 1],
        "late": regrets[-1],
        "copies": same / late,
        "seconds": round(time.process_time() - began, 2),
        "version": version_of("covey-auto"),
    }
    return [row]


def table(rows: dict[Cell, dict[str, Any]]) -> Iterator[str]:
    """By strategy and batch, over problems."""
    yield (
        "strategy | B | runs | stuck early | late | by problem, early/late | median | 90 % | "
        "copies | worst run's | s"
    )
    yield "---|---|---|---|---|---|---|---|---|---|---"
    groups: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in rows:
        groups[cell.strategy, cell.batch].append(cell)
    for (strategy, batch), cells in groups.items():
        regrets = np.array([rows[c]["regret"] for c in cells])
        same = np.array([rows[c]["copies"] for c in cells])
        late = np.array([rows[c].get("late", math.nan) for c in cells])
        stuck: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for c, end in zip(cells, late, strict=True):
            stuck[c.problem][0] += rows[c]["regret"] > STUCK
            stuck[c.problem][1] += end > STUCK
        by = " ".join(f"{name} {early}/{end}" for name, (early, end) in stuck.items())
        yield (
            f"{strategy} | {batch} | {len(cells)} | {(regrets > STUCK).mean():.1%} | "
            f"{(late > STUCK).mean():.1%} | {by} | "
            f"{np.median(regrets):.1e} | {np.quantile(regrets, 0.9):.1e} | {same.mean():.0%} | "
            f"{same.max():.0%} | {np.mean([rows[c]['seconds'] for c in cells]):.1f}"
        )


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--strategies", nargs="*", default=["auto"])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--batches", nargs="+", type=int, default=[8])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    order = product(args.batches, args.problems, range(args.seeds), args.strategies)
    wanted = [Cell(s, p, b, i) for b, p, i, s in order]
    add_missing(race, wanted, args.path, args.workers)
    print("\n".join(table(by_cell(args.path, Cell))))


if __name__ == "__main__":
    main()
