"""The robot's best known speed, by a long search without noise."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from covey.arrays import Array
from papers.kathuria2016.problems.robot import BEST_KNOWN


@dataclass(frozen=True)
class Search:
    """How long to search: differential evolution from each seed, then a polish of its end."""

    seeds: int = 5
    generations: int = 150
    population: int = 10  # times the dimension
    polish: int = 2000  # walks of it


def declare(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("problem", choices=["robot"])
    for name, default in asdict(Search()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, default=BEST_KNOWN)


def run(options: argparse.Namespace) -> int:
    """Search, and write what was found."""
    from rich.console import Console

    how = Search(options.seeds, options.generations, options.population, options.polish)
    found = search(how)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    Console().print(f"{found['value']:.6f} m/s after {found['evaluations']} walks")
    return 0


def search(how: Search) -> dict[str, object]:
    """The best speed over all seeds, where it is, and the command that finds it again."""
    from scipy.optimize import Bounds, differential_evolution, minimize

    from papers.kathuria2016.robot.walk import speed

    def loss(a: Array) -> float:
        return -speed(a)

    def rough_loss(a: Array) -> float:
        return -speed(a, tolerance=1e-6)

    box = Bounds(np.zeros(8), np.ones(8))
    value, at, walks = -np.inf, np.zeros(8), 0
    ends = []
    for seed in range(how.seeds):
        wide = differential_evolution(
            rough_loss,
            box,
            maxiter=how.generations,
            popsize=how.population,
            tol=0.0,
            polish=False,
            rng=seed,
        )
        near = minimize(
            loss,
            wide.x,
            method="Nelder-Mead",
            bounds=box,
            options={"maxfev": how.polish, "xatol": 1e-6, "fatol": 1e-9},
        )
        walks += wide.nfev + near.nfev
        ends.append(round(-float(near.fun), 6))
        if -near.fun > value:
            value, at = -float(near.fun), near.x
    words = " ".join(f"--{name} {number}" for name, number in asdict(how).items())
    return {
        "command": f"python -m papers.kathuria2016 optimum robot {words}",
        "value": value,
        "point": [float(x) for x in at],
        "ends": ends,
        "evaluations": walks,
    }
