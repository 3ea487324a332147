"""Measured pools as plates of 24 and 96 wells: plates until 95 % of the way to the best.

    COVEY_DATA=... python -m benchmarks.pools_in_plates RESULTS.jsonl --seeds 20 --workers 8
    python -m benchmarks.pools_in_plates benchmarks/results/pools-in-plates.jsonl.gz

Three entrants fill the wells: Covey under a layout, Covey without one (`ask`, which may mix what a
bench cannot), and rows at random. The layouts: one temperature for each plate (the arylation), a
fifth of the first component on average over a plate (P3HT, 178 compositions), at most three
loadings of tin on a plate (OER). The way is from the worst row of the pool to the best. A row a
run, resumed; of a packed file (.gz) only the table is printed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.problems import problem as problem_named
from benchmarks.race.runner import add_missing, read

SHARE, MOST = 0.95, 480  # of the way; evaluations of a run
POOLS = ("pool-arylation", "pool-p3ht", "pool-oer")
ENTRANTS = ("layout", "no layout", "random")


class Cell(NamedTuple):
    """One run."""

    pool: str
    wells: int
    entrant: str
    seed: int


def layout_of(pool: str, wells: int) -> covey.Layout:
    """The rules of a bench; no shifts between plates, since these were not measured on plates."""
    rules: dict[str, dict[str, Any]] = {
        "pool-arylation": {"shared": {"Temp_C": "plate"}},
        "pool-p3ht": {"total": {"D1 content (%)": 20.0 * wells}},
        "pool-oer": {"distinct": {"Sn.PM.Loading": 3}},
    }
    return covey.Layout(plate=wells, effects=(), **rules[pool])


def race(cell: Cell) -> list[dict[str, Any]]:
    """Fill plates until one has a row within reach of the best."""
    problem = problem_named(cell.pool)
    rows = [problem.space.point(i) for i in range(problem.space.size)]
    values = np.array([problem.f(row) for row in rows])
    wanted = values.min() + SHARE * (values.max() - values.min())
    layout = layout_of(cell.pool, cell.wells)
    study = covey.Study(problem.space, seed=cell.seed)
    began, plates, reached = time.process_time(), 0, False
    while not reached and (plates + 1) * cell.wells <= min(MOST, len(rows)):
        if cell.entrant == "layout":
            try:
                (plate,) = study.ask_plates(1, layout)
            except covey.errors.ExhaustedError:  # what is left of the pool keeps no such layout
                break
            readings = {well.name: problem.f(well.point) for well in plate.used}
            study.tell_plate(plate, readings)
            found = list(readings.values())
        else:
            strategy = "random" if cell.entrant == "random" else None
            trials = study.ask(cell.wells, strategy=strategy)
            found = [problem.f(trial.point) for trial in trials]
            study.tell(trials, found)
        plates, reached = plates + 1, max(found) >= wanted
    spent = round(time.process_time() - began, 2)
    return [{**cell._asdict(), "plates": plates if reached else None, "seconds": spent}]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Mean plates until 95 % of the way, and how many runs never came there."""
    found: dict[tuple[str, int], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["pool"], row["wells"]][row["entrant"]].append(row["plates"])
    lines = [f"| pool | wells | {' | '.join(ENTRANTS)} | runs |", "|---" * 6 + "|"]
    for (pool, wells), each in sorted(found.items()):
        cells = []
        for entrant in ENTRANTS:
            there = [n for n in each[entrant] if n is not None]
            never = len(each[entrant]) - len(there)
            mean = f"{np.mean(there):.2f}" if there else "-"
            cells.append(mean + (f" ({never} never)" if never else ""))
        lines.append(f"| {pool} | {wells} | {' | '.join(cells)} | {len(each['layout'])} |")
    return lines


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    every = product(range(args.seeds), POOLS, (24, 96), ENTRANTS)
    # Of the 178 rows of P3HT 96 are most.
    wanted = [Cell(p, w, e, s) for s, p, w, e in every if (p, w) != ("pool-p3ht", 96)]
    add_missing(race, wanted, args.path, args.workers)
    print("\n".join(table(read(args.path))))


if __name__ == "__main__":
    main()
