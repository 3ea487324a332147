"""BBOB's 24 functions (package `coco-experiment`): strategies in batches, from a shared first one.

    python -m benchmarks.bbob run RESULTS.jsonl --strategies auto hebo --instances 9 10
    python -m benchmarks.bbob table RESULTS.jsonl --against hebo
    python -m benchmarks.bbob run MIXED.jsonl --suite bbob-mixint --dimensions 5 10 --rounds 8

Entrants are our strategies and the peers of `benchmarks.race` (hebo, botorch,
each in an environment that has it). A run adds one line a batch, and resumes. Instances 3 to
5 are for tuning, 1 and 2 for the end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.closeness import copies
from benchmarks.race.optimisers import PEERS, Optimiser, enter, version_of
from benchmarks.race.problems import Problem
from benchmarks.race.runner import append_rows
from benchmarks.race.runner import read as read_rows
from covey.catalog import STRATEGIES

FLOOR = 1e-4  # of the first batch's regret: below it a problem is solved
TIE = 0.05


class Cell(NamedTuple):
    """One strategy on one function, from one first batch."""

    strategy: str
    function: int
    dimension: int
    instance: int
    seed: int
    batch: int
    suite: str = "bbob"


def problem_of(cell: Cell) -> Problem:
    """A function of the suite, its regret to be minimised: values are regrets, negated."""
    if cell.suite != "bbob":
        return mixed_problem_of(cell)
    from cocoex import BareProblem

    f = BareProblem("bbob", cell.function, cell.dimension, cell.instance)
    names = [f"x{i}" for i in range(cell.dimension)]
    space = covey.Space({name: covey.Real(-5.0, 5.0) for name in names})

    def value(point: Mapping[str, Any]) -> float:
        return float(f.best_value() - f([point[name] for name in names]))

    return Problem(f"bbob-{cell.function}", space, value, 0.0, 1.0)


def mixed_problem_of(cell: Cell) -> Problem:
    """A function of the mixed-integer suite: the first four fifths of its inputs are integers."""
    from cocoex import Suite

    told = f"dimensions:{cell.dimension} instance_indices:{cell.instance}"
    f = Suite(cell.suite, "", told)[cell.function - 1]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        f._best_parameter("print")
        best = f(np.loadtxt(next(Path(folder).iterdir())))
    names = [f"x{i}" for i in range(cell.dimension)]
    ends = zip(names, f.lower_bounds, f.upper_bounds, strict=True)
    whole = f.number_of_integer_variables
    space = covey.Space(
        {
            name: covey.Integer(int(low), int(high)) if i < whole else covey.Real(low, high)
            for i, (name, low, high) in enumerate(ends)
        }
    )

    def value(point: Mapping[str, Any]) -> float:
        return float(best - f([point[name] for name in names]))

    return Problem(f"{cell.suite}-{cell.function}", space, value, 0.0, 1.0)


def entered(cell: Cell, problem: Problem) -> Optimiser:
    """One of our strategies by its name, or a peer."""
    own = f"covey-{cell.strategy}" if cell.strategy in STRATEGIES else cell.strategy
    return enter(own, problem, cell.seed)


def race(cell: Cell, rounds: int) -> list[dict[str, Any]]:
    """The rows of one run: round 0 is the shared random batch."""
    rows = []
    problem = problem_of(cell)
    optimiser = entered(cell, problem)
    points, best, total, spent = problem.first_batch(cell.batch, cell.seed), np.inf, 0.0, 0.0
    for t in range(rounds + 1):
        if t:
            spent -= time.process_time()
            points = optimiser.ask(cell.batch)
            spent += time.process_time()
        regrets = [-problem.f(point) for point in points]
        optimiser.tell(points, [-regret for regret in regrets])
        best, total = min(best, *regrets), total + sum(regrets)
        row = {
            **cell._asdict(),
            "round": t,
            "rounds": rounds,
            "regret": best,
            "cumulative": total,
            "copies": copies(problem.space.encode(points)) if t else 0,
            "seconds": round(spent, 2),
            "version": version_of(cell.strategy if cell.strategy in PEERS else "covey-auto"),
        }
        rows.append(row)
    return rows


def read(path: Path) -> dict[Cell, list[dict[str, Any]]]:
    """Whole runs by cell; the last of several wins."""
    rows: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for row in read_rows(path):
        cell = Cell(*(row[name] for name in Cell._fields[:-1]), row.get("suite", "bbob"))
        if row["round"] == 0:
            rows[cell] = []
        rows[cell].append(row)
    return {cell: run for cell, run in rows.items() if len(run) == run[0]["rounds"] + 1}


def run(cells: list[Cell], path: Path, rounds: int, workers: int = 1) -> None:
    """What is missing, so many at a time; a run is written when it ends."""
    done = read(path)
    missing = [cell for cell in cells if cell not in done]
    for count, total, left in append_rows(partial(race, rounds=rounds), missing, path, workers):
        if count % 10 == 0:
            print(f"{count} of {total}, {left:.0f} s left", flush=True)


def measures(run: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Final regret, that at half time, and cumulative; the first two not below the floor."""
    floor = max(FLOOR * run[0]["regret"], 1e-12)
    half = run[len(run) // 2]["regret"]
    return max(run[-1]["regret"], floor), max(half, floor), run[-1]["cumulative"]


def mean_ratio(ratios: list[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def table(runs: Mapping[Cell, list[dict[str, Any]]], against: str) -> Iterator[str]:
    """Each strategy beside one of them, in the cells both have run."""
    yield (
        f"against {against} | cells | won/tied/lost | final (se) | half | cumulative | "
        "by d: final/cumulative | copies | worst | s"
    )
    yield "---|---|---|---|---|---|---|---|---|---"
    for name in dict.fromkeys(cell.strategy for cell in runs):
        pairs = [
            (c, measures(r), measures(runs[c._replace(strategy=against)]))
            for c, r in runs.items()
            if c.strategy == name and c._replace(strategy=against) in runs
        ]
        if not pairs:
            continue
        ratios = {c: np.divide(a, b) for c, a, b in pairs}
        final = np.array([r[0] for r in ratios.values()])
        won, lost = int((final < 1 / (1 + TIE)).sum()), int((final > 1 + TIE).sum())
        deviation = np.exp(np.std(np.log(final)) / np.sqrt(len(final))) - 1.0
        by = [
            f"{d}: {mean_ratio([r[0] for c, r in ratios.items() if c.dimension == d]):.2f}/"
            f"{mean_ratio([r[2] for c, r in ratios.items() if c.dimension == d]):.2f}"
            for d in sorted({c.dimension for c in ratios})
        ]
        own = [runs[c] for c in ratios]
        share = np.mean(
            [
                sum(row["copies"] for row in r) / (r[0]["rounds"] * c.batch)
                for c, r in zip(ratios, own, strict=True)
            ]
        )
        seconds = np.mean([r[-1]["seconds"] for r in own])
        yield (
            f"{name} | {len(final)} | {won}/{len(final) - won - lost}/{lost} | "
            f"{mean_ratio(final.tolist()):.2f} ({deviation:.0%}) | "
            f"{mean_ratio([r[1] for r in ratios.values()]):.2f} | "
            f"{mean_ratio([r[2] for r in ratios.values()]):.2f} | {', '.join(by)} | {share:.0%} | "
            f"{final.max():.1f} | {seconds:.1f}"
        )


def main() -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--strategies", nargs="+", default=["auto", "est-dpp-sample"])
    parser.add_argument("--functions", nargs="+", type=int, default=range(1, 25))
    parser.add_argument("--dimensions", nargs="+", type=int, default=[2, 5, 10])
    parser.add_argument("--instances", nargs="+", type=int, default=[3])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--against", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--suite", default="bbob", choices=("bbob", "bbob-mixint"))
    args = parser.parse_args()
    if args.what == "run":
        order = product(args.instances, args.seeds, args.dimensions, args.functions)
        cells = [
            Cell(s, f, d, i, seed, args.batch, args.suite)
            for i, seed, d, f in order
            for s in args.strategies
        ]
        run(cells, args.path, args.rounds, args.workers)
    print("\n".join(table(read(args.path), args.against)))


if __name__ == "__main__":
    main()
