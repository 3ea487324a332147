"""How near the points of late batches are to one another, and runs that end on a lower bump.

    python -m benchmarks.closeness near [--strategies auto est-dpp-sample] [--instance 4]
    python -m benchmarks.closeness traps [--strategies auto] [--runs 16 80]

`near`: of batches 5 to 8 (B = 10) on four functions of BBOB in 2-d and 5-d, the share of points
that have another of their batch within 1, 2, 5 and 10 % of every range, and the largest correlation
that the posterior saw between two of a batch; of an example like README's, batch 6. `traps`: a
narrow, higher and a wide, lower bump in the unit square, 40 evaluations, B = 5.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey

SHARES = (0.01, 0.02, 0.05, 0.1)  # of every range
FUNCTIONS = (1, 8, 15, 21)
EXAMPLE = covey.Space(
    {
        "lr": covey.Real(1e-5, 1e-1, log=True),
        "layers": covey.Integer(1, 8),
        "opt": covey.Choice(["adam", "sgd"]),
        "drop": covey.Real(0.0, 0.6),
    }
)


def copies(at: np.ndarray, share: float = 0.01) -> int:
    """Points of a batch (k, d), encoded, that have another within a share of every range."""
    gaps = np.abs(at[:, None] - at).max(axis=2) + np.eye(len(at))
    return int((gaps.min(axis=1) < share).sum())


def train(lr: float, layers: int, opt: str, drop: float) -> float:
    """An accuracy whose best settings are soon known."""
    rate = 0.02 * (math.log10(lr) + 2.5) ** 2
    return 0.95 - rate - 0.01 * abs(layers - 5) + 0.01 * (opt == "adam") - 0.2 * (drop - 0.25) ** 2


def trap(i: int) -> tuple[Callable[[np.ndarray], float], np.ndarray]:
    """A narrow bump of height 1.18 and a wide one of height 1, far from it; and its summit."""
    rng = np.random.default_rng(200 + i)
    narrow, wide = rng.uniform(0.15, 0.85, 2), rng.uniform(0.15, 0.85, 2)
    while np.linalg.norm(narrow - wide) < 0.45:
        wide = rng.uniform(0.1, 0.9, 2)

    def f(x: np.ndarray) -> float:
        high = 1.18 * math.exp(-np.square(x - narrow).sum() / (2.0 * 0.10**2))
        return high + math.exp(-np.square(x - wide).sum() / (2.0 * 0.22**2))

    return f, narrow


def late_batches(
    study: covey.Study, f: Callable[[Mapping[str, Any]], float], size: int, rounds: int, first: int
) -> list[tuple[np.ndarray, float]]:
    """Encoded points of the batches from ``first`` on, and their largest posterior correlation."""
    late = []
    for t in range(1, rounds + 1):
        known = len(study.history.told)
        batch = study.ask(size)
        at = study.space.encode([trial.point for trial in batch])
        if t >= first:
            late.append((at, _correlation(study, at) if known else math.nan))
        study.tell(batch, [f(trial.point) for trial in batch])
    return late


def _correlation(study: covey.Study, at: np.ndarray) -> float:
    """The largest correlation of two of these points under the model that chose them."""
    posterior = study._model.of(study.history)
    cov = posterior.belief(at).columns(range(len(at)))
    scale = np.sqrt(np.diag(cov))
    return float((cov / np.outer(scale, scale) - np.eye(len(at))).max())


def print_near(strategies: Sequence[str], instance: int) -> None:
    """A table of shares and correlations."""
    from benchmarks.bbob import Cell, problem_of

    print("| strategy | problem | within 1 / 2 / 5 / 10 % | largest correlation (median) |")
    print("|---|---|---|---|")
    for name in strategies:
        for d in (2, 5):
            late = []
            for number in FUNCTIONS:
                problem = problem_of(Cell(name, number, d, instance, 0, 10))
                study = covey.Study(problem.space, strategy=name, seed=0)
                late += late_batches(study, problem.f, 10, 8, 5)
            _print_row(name, f"BBOB {d}-d", late)
        late = []
        for seed in range(5):
            study = covey.Study(EXAMPLE, strategy=name, seed=seed)
            late += late_batches(study, lambda p: train(**p), 8, 6, 6)
        _print_row(name, "example", late)


def _print_row(name: str, problem: str, late: list[tuple[np.ndarray, float]]) -> None:
    shares = [np.mean([copies(at, share) / len(at) for at, _ in late]) for share in SHARES]
    middle = float(np.median([correlation for _, correlation in late]))
    shown = " / ".join(f"{share:.2f}" for share in shares)
    print(f"| {name} | {problem} | {shown} | {middle:.3f} |", flush=True)


def ends_low(strategy: str, i: int) -> bool:
    """Whether forty evaluations in batches of five end away from the higher bump."""
    f, summit = trap(i)
    space = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
    study = covey.Study(space, seed=0, strategy=strategy)
    for _ in range(8):
        batch = study.ask(5)
        study.tell(batch, [f(space.encode([trial.point])[0]) for trial in batch])
    best = max(study.history.told, key=lambda trial: trial.value)
    return bool(np.linalg.norm(space.encode([best.point])[0] - summit) > 0.15)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("near", "traps"))
    parser.add_argument("--strategies", nargs="+", default=["auto"])
    parser.add_argument("--instance", type=int, default=4)
    parser.add_argument("--runs", nargs=2, type=int, default=(16, 80))
    args = parser.parse_args()
    if args.what == "near":
        print_near(args.strategies, args.instance)
        return
    for name in args.strategies:
        lost = [ends_low(name, i) for i in range(*args.runs)]
        print(f"{name}: {sum(lost)} of {len(lost)} runs end on the lower bump", flush=True)


if __name__ == "__main__":
    main()
