"""What failures cost: how many come, and how much regret stays.

`python -m benchmarks.failures` prints one Markdown table, in about two minutes on one core.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey import Integer, Real, Space, Study

Fails = Callable[[Mapping[str, Any], np.random.Generator], bool]

SQUARE = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
NETS = Space(
    {
        "layers": Integer(1, 64),
        "width": Integer(16, 1024, log=True),
        "lr": Real(1e-5, 0.1, log=True),
    }
)
PLANE = Space({"x": Real(-5.0, 10.0), "y": Real(0.0, 15.0)})
HEAD = ("problem", "trials", "failed, least to most", "regret, median", "worst")


@dataclass(frozen=True)
class Case:
    """Something to maximise that fails here and there, and the most to be had where it does not."""

    name: str
    space: Space
    f: Callable[[Mapping[str, Any]], float]
    fails: Fails
    most: float
    batch: int = 5
    rounds: int = 20


def hill(point: Mapping[str, Any]) -> float:
    """A summit at (0.9, 0.5)."""
    return float(-((point["x"] - 0.9) ** 2) - (point["y"] - 0.5) ** 2)


def accuracy(point: Mapping[str, Any]) -> float:
    """The larger the net the better, at the right rate of learning."""
    return math.log(point["layers"] * point["width"]) - (math.log10(point["lr"]) + 3.0) ** 2


def branin(point: Mapping[str, Any]) -> float:
    """Turned up: three summits of height -0.397887."""
    x, y = point["x"], point["y"]
    bend = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return -(bend**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) - 10.0


CASES = (
    Case("half-plane: x > 0.7 fails", SQUARE, hill, lambda p, _: p["x"] > 0.7, -0.04),
    Case(
        "disc of radius 0.15 round the summit",
        *(SQUARE, hill),
        fails=lambda p, _: hill(p) > -0.0225,
        most=-0.0225,
    ),
    Case(
        "too large a net: layers * width > 16000",
        *(NETS, accuracy),
        fails=lambda p, _: p["layers"] * p["width"] > 16000,
        most=math.log(16000),
        batch=8,
        rounds=8,
    ),
    Case(
        "Branin, 20 % at random",
        *(PLANE, branin),
        fails=lambda _, rng: rng.random() < 0.2,
        most=-0.397887,
        rounds=15,
    ),
    Case("Branin, none", PLANE, branin, lambda _, rng: False, -0.397887, rounds=15),
)


def one_run(case: Case, seed: int, strategy: str) -> tuple[int, float]:
    """How many failed, and the regret to the best that does not."""
    rng = np.random.default_rng(seed)
    study = Study(case.space, strategy=strategy, seed=seed)
    for _ in range(case.rounds):
        for trial in study.ask(case.batch):
            if case.fails(trial.point, rng):
                study.fail(trial)
            else:
                study.tell(trial, case.f(trial.point))
    told = [trial.value for trial in study.history.told if trial.value is not None]
    return len(study.history.failed), case.most - max(told, default=-math.inf)


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--only", default="", help="rows whose name begins like this")
    given = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for case in CASES:
        if not case.name.startswith(given.only):
            continue
        runs = [
            one_run(case, seed, given.strategy)
            for seed in range(given.first, given.first + given.seeds)
        ]
        failed = sorted(count for count, _ in runs)
        regrets = [regret for _, regret in runs]
        row = (
            case.name,
            str(case.batch * case.rounds),
            " ".join(map(str, failed)),
            f"{np.median(regrets):.2g}",
            f"{max(regrets):.2g}",
        )
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
