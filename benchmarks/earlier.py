"""Earlier studies as a prior: what they gain where they are right, and cost where they are wrong.

    python -m benchmarks.earlier RESULTS.jsonl --seeds 20

Branin and Hartmann in three and six dimensions, noise-free, in batches of four. The earlier study
has made 40 evaluations with the default, of the same function, of one shifted by a tenth of each
range and stretched, of the function upside down, or of one that has nothing to do with it. A row
a run, resumed; of a packed file (.gz) only the table is printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.optimisers import version_of
from benchmarks.race.runner import add_missing, by_cell

BATCH, BEFORE = 4, 40  # points of a batch; evaluations of the earlier study
SHIFT = 0.1  # of each range
Function = Callable[[np.ndarray], float]  # of a point in the unit cube, to be maximised


def branin(u: np.ndarray) -> float:
    """Branin's function upside down; its maximum is -0.397887."""
    x, y = 15.0 * u[0] - 5.0, 15.0 * u[1]
    bowl = (y - 5.1 / (4 * np.pi**2) * x**2 + 5.0 / np.pi * x - 6.0) ** 2
    return float(-(bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0))


_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_P3 = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
_A6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann3(u: np.ndarray) -> float:
    """Hartmann's function in three dimensions; its maximum is 3.86278."""
    return float(_HEIGHTS @ np.exp(-(_A3 * np.square(u - _P3)).sum(axis=1)))


def hartmann6(u: np.ndarray) -> float:
    """Hartmann's function in six dimensions; its maximum is 3.32237."""
    return float(_HEIGHTS @ np.exp(-(_A6 * np.square(u - _P6)).sum(axis=1)))


class Problem(NamedTuple):
    """A function, its inputs, its maximum, and the batches of a run."""

    f: Function
    d: int
    best: float
    rounds: int


PROBLEMS = {
    "branin": Problem(branin, 2, -0.39788735772973816, 8),
    "hartmann3": Problem(hartmann3, 3, 3.86278214782076, 8),
    "hartmann6": Problem(hartmann6, 6, 3.32236801141551, 15),
}


def _unrelated(problem: Problem, seed: int) -> Function:
    """Waves that have nothing to do with the problem, others for each seed."""
    rng = np.random.default_rng([9, seed])
    turns, phases = rng.standard_normal((12, problem.d)) * 4.0, rng.uniform(0.0, 6.3, 12)
    return lambda u: float(np.cos(turns @ u + phases).sum())


SOURCES: dict[str, Callable[[Problem, int], Function] | None] = {
    "none": None,
    "same": lambda problem, seed: problem.f,
    "shifted": lambda problem, seed: lambda u: 3.0 * problem.f(np.clip(u + SHIFT, 0, 1)) + 50.0,
    "inverted": lambda problem, seed: lambda u: -problem.f(u),
    "unrelated": _unrelated,
}


class Cell(NamedTuple):
    """One run."""

    problem: str
    source: str
    seed: int


def _space(d: int) -> covey.Space:
    return covey.Space({f"x{i}": covey.Real(0, 1) for i in range(d)})


def _run(study: covey.Study, f: Function, rounds: int) -> None:
    for _ in range(rounds):
        batch = study.ask(BATCH)
        study.tell(batch, [f(np.array(list(trial.point.values()))) for trial in batch])


def race(cell: Cell) -> list[dict[str, Any]]:
    """The earlier study, then the study; its regret after each batch."""
    problem, source = PROBLEMS[cell.problem], SOURCES[cell.source]
    with tempfile.TemporaryDirectory() as folder:
        prior = None
        if source is not None:
            prior = [Path(folder) / "earlier.jsonl"]
            old = covey.Study(_space(problem.d), seed=cell.seed + 10_000, journal=prior[0])
            _run(old, source(problem, cell.seed), BEFORE // BATCH)
        began = time.process_time()
        study = covey.Study(_space(problem.d), seed=cell.seed, prior=prior)
        regrets, weights = [], []
        for _ in range(problem.rounds):
            _run(study, problem.f, 1)
            regrets.append(problem.best - study.best.value)
            used = study.diagnostics.prior or {}
            weights.append(next(iter(used.values()), None))
    row = {
        **cell._asdict(),
        "regrets": regrets,
        "weights": weights,
        "seconds": round(time.process_time() - began, 2),
        "version": version_of("covey-auto"),
    }
    return [row]


def table(rows: dict[Cell, dict[str, Any]]) -> Iterator[str]:
    """Geometric means of the regret, at half time and at the end, and ratios to none."""
    yield "problem | earlier study | runs | half time | end | end / none | mean log10 | weight | s"
    yield "---|---|---|---|---|---|---|---|---"
    groups: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for cell, row in rows.items():
        groups[cell.problem, cell.source][cell.seed] = row
    for problem, source in product(PROBLEMS, SOURCES):
        found = groups.get((problem, source))
        if not found:
            continue
        logs = np.log10(np.maximum([found[s]["regrets"] for s in sorted(found)], 1e-8))
        plain = groups.get((problem, "none"), {})
        both = [s for s in sorted(found) if s in plain]
        theirs = np.log10(np.maximum([plain[s]["regrets"] for s in both], 1e-8))
        mine = np.log10(np.maximum([found[s]["regrets"] for s in both], 1e-8))
        ratio = 10.0 ** (mine - theirs)[:, -1].mean() if both else np.nan
        weights = [w for row in found.values() for w in row["weights"][-1:] if w is not None]
        weight = f"{np.mean(weights):.2f}" if weights else ""
        middle = logs.shape[1] // 2 - 1
        yield (
            f"{problem} | {source} | {len(found)} | {10.0 ** logs[:, middle].mean():.1e} | "
            f"{10.0 ** logs[:, -1].mean():.1e} | {ratio:.2f} | {logs.mean():.2f} | {weight} | "
            f"{np.mean([row['seconds'] for row in found.values()]):.1f}"
        )


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--sources", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    order = product(range(args.seeds), args.problems, args.sources)
    wanted = [Cell(p, s, i) for i, p, s in order]
    add_missing(race, wanted, args.path, args.workers)
    print("\n".join(table(by_cell(args.path, Cell))))


if __name__ == "__main__":
    main()
