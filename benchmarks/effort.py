"""What more time in an ask buys: the default with more candidates, and with sampled models.

    python -m benchmarks.effort RESULTS.jsonl

A run of `benchmarks.bbob` with a few functions; it adds one line a batch, and resumes. The table at
its end is that of docs/benchmarks.md, "What more time buys".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from unittest.mock import patch

import covey
from benchmarks import bbob
from benchmarks.race.optimisers import Covey, Optimiser
from benchmarks.race.problems import Problem
from covey import candidates

FUNCTIONS = (
    1,
    3,
    8,
    10,
    15,
    21,
)  # one or two of each group of the suite
MORE = {name: 4 * getattr(candidates, name) for name in ("_WIDE", "_NEAR", "_ASCENTS")}
EFFORTS: dict[str, tuple[dict[str, int], covey.GP | None]] = {
    "auto": ({}, None),
    "four times the candidates and ascents": (MORE, None),
    "hyper-parameters averaged over 4 draws": ({}, covey.GP(samples=4)),
}


class Sampled(Covey):
    """The default with another Gaussian process."""

    def __init__(self, problem: Problem, seed: int, gp: covey.GP | None) -> None:
        self._study = covey.Study(problem.space, seed=seed, gp=gp)


@contextmanager
def searching(numbers: dict[str, int]) -> Iterator[None]:
    """The search of a continuous space with these numbers of candidates."""
    with ExitStack() as stack:
        for name, number in numbers.items():
            stack.enter_context(patch.object(candidates, name, number))
        yield


def entered(cell: bbob.Cell, problem: Problem) -> Optimiser:
    """The default at some effort, in place of a strategy's name."""
    return Sampled(problem, cell.seed, EFFORTS[cell.strategy][1])


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--functions", nargs="+", type=int, default=FUNCTIONS)
    parser.add_argument("--dimensions", nargs="+", type=int, default=[2, 5, 10])
    parser.add_argument("--instances", nargs="+", type=int, default=[3])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    order = product(args.instances, args.seeds, args.dimensions, args.functions, EFFORTS)
    done = bbob.read(args.path) if args.path.exists() else {}
    with args.path.open("a") as out, patch.object(bbob, "entered", entered):
        for instance, seed, dimension, function, effort in order:
            cell = bbob.Cell(effort, function, dimension, instance, seed, 10)
            if cell in done:
                continue
            with searching(EFFORTS[effort][0]):
                rows = list(bbob.race(cell, args.rounds))
            out.write("".join(json.dumps(row) + "\n" for row in rows))
            out.flush()
    print("\n".join(bbob.table(bbob.read(args.path), "auto")))


if __name__ == "__main__":
    main()
