"""Does `Study.advice` come true? Said against seen, on the race and on functions of its own model.

    python -m benchmarks.foretold ROWS.jsonl --seeds 3 --drawn 12 --first 0 --workers 2
    python -m benchmarks.foretold ROWS.jsonl --plot foretold.png

After some batches of each run: what the next batch is expected to gain and then gains (shares of
the function's range), the probability said that something better is left and whether it was, and
whether the advice was to stop. Without ``--seeds`` and ``--drawn`` it only prints the tables.

Functions ``drawn1``, ``drawn2`` and ``drawn4`` are drawn from the Gaussian process that advice
believes in, hyper-parameters from their priors, in one, two and four dimensions.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.problems import Problem, problem
from benchmarks.race.runner import append_rows, read
from covey.ascent import climb
from covey.candidates import sobol_blocks
from covey.gains import expected_gains, verdict_on
from covey.gp.model import scaled_priors
from covey.kernels import Matern52
from covey.outlook import outlook

RACE = (
    "forrester1",
    "branin2",
    "camel2",
    "cosines2",
    "levy4",
    "rastrigin4",
    "michalewicz5",
    "hartmann6",
    "styblinski6",
    "mixed-hartmann6",
)
DRAWN = ("drawn1", "drawn2", "drawn4")
BATCH, ROUNDS = 6, (2, 4, 6)  # batches told when advice is asked for
EDGES = np.array([0.0, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, np.inf])
SAID = np.array([0.0, 0.02, 0.1, 0.35, 0.65, 0.9, 1.0 + 1e-9])
_PAIRS = 1000  # cosine and sine pairs of a drawn function


class Draw:
    """A draw of the process on the unit cube, with its gradient."""

    def __init__(self, d: int, seed: int) -> None:
        rng, priors = np.random.default_rng([seed, d, 77]), scaled_priors(d)
        length, variance, noise = (
            np.exp(prior.mu + prior.sigma * rng.standard_normal(size))
            for prior, size in ((priors.length, d), (priors.variance, 1), (priors.noise, 1))
        )
        kernel = Matern52(tuple(length.tolist()), float(variance[0]))
        self.d, self.noise = d, float(np.sqrt(noise[0]))
        self._turns = kernel.frequencies(rng, _PAIRS)
        self._cos, self._sin = np.sqrt(variance / _PAIRS) * rng.standard_normal((2, _PAIRS))

    def climbed(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (n,) and gradients (n, d) at points (n, d)."""
        phase = at @ self._turns.T
        cos, sin = np.cos(phase), np.sin(phase)
        return cos @ self._cos + sin @ self._sin, (cos * self._sin - sin * self._cos) @ self._turns

    def problem(self, name: str) -> Problem:
        """As a problem of the race; its optimum by ascent from the best of many points."""
        space = covey.Space({f"x{i}": covey.Real(0.0, 1.0) for i in range(self.d)})
        wide = np.vstack([next(sobol_blocks(self.d, s)) for s in range(4)])
        values = self.climbed(wide)[0]
        starts = wide[np.argsort(-values)[:24]]
        tops = climb(self.climbed, starts, np.ones(self.d, dtype=bool))
        top = max(float(self.climbed(tops)[0].max()), float(values.max()))

        def f(point: Any) -> float:
            return float(self.climbed(space.encode([point]))[0][0])

        return Problem(name, space, f, top, top - float(values.min()), self.noise)


def task_of(name: str, seed: int) -> Problem:
    """A problem of the race, or the drawn function of this seed."""
    return Draw(int(name[-1]), seed).problem(name) if name in DRAWN else problem(name)


def race(cell: tuple[str, int]) -> list[dict[str, Any]]:
    """A row for each time that advice is asked for, of a problem and a seed."""
    name, seed = cell
    task = task_of(name, seed)
    noise = np.random.default_rng([seed, 7])
    study = covey.Study(task.space, seed=seed)
    told, rows = np.zeros(0), list[dict[str, Any]]()
    for t in range(max(ROUNDS) + 1):
        ahead = outlook(study.history, study.recipe) if t in ROUNDS else None
        trials = study.ask(BATCH)
        values = np.array([task.f(trial.point) for trial in trials])
        if ahead is not None:
            verdict = verdict_on(ahead, study.recipe, {}, None)
            (gain,) = expected_gains(ahead, [[trial.point for trial in trials]])
            best = float(told.max())
            row = {"problem": name, "seed": seed, "told": len(told), "said": verdict.chance}
            row |= {"left": task.optimum - best > verdict.worth, "stop": verdict.stop}
            row |= {"expected": gain.gain / task.range}
            row |= {"seen": max(0.0, float(values.max()) - best) / task.range}
            rows.append(row)
        study.tell(trials, (values + task.noise * noise.standard_normal(BATCH)).tolist())
        told = np.append(told, values)
    return rows


def gains_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Batches by what was expected of them."""
    expected, seen = (np.array([row[name] for row in rows]) for name in ("expected", "seen"))
    yield "expected gain, of the range | batches | mean expected | mean seen | share that gained"
    yield "---|---|---|---|---"
    for low, high in pairwise(EDGES):
        some = (expected >= low) & (expected < high)
        if some.any():
            yield (
                f"{low:g} to {high:g} | {some.sum()} | {expected[some].mean():.2g} | "
                f"{seen[some].mean():.2g} | {(seen[some] > 0.0).mean():.0%}"
            )


def chances_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """How often something better was left, by the probability said; then wrong stops.

    The standard error is that of the difference: over runs, since those of one run are alike, and
    at least what chance leaves if what was said is true.
    """
    yield "said | times | mean said | true | difference in standard errors"
    yield "---|---|---|---|---"
    said, left = (np.array([row[name] for row in rows], dtype=float) for name in ("said", "left"))
    runs = np.unique([f"{row['problem']} {row['seed']}" for row in rows], return_inverse=True)[1]
    for low, high in pairwise(SAID):
        some = np.flatnonzero((said >= low) & (said < high))
        if len(some):
            miss = left[some] - said[some]
            by_run = np.bincount(runs[some], miss)
            chance = np.sqrt((said[some] * (1.0 - said[some])).sum())
            error = max(float(np.sqrt(np.square(by_run).sum())), float(chance)) / len(some)
            off = miss.mean() / error if error > 0.0 else 0.0
            yield (
                f"{low:g} to {min(high, 1.0):g} | {len(some)} | {said[some].mean():.3f} | "
                f"{left[some].mean():.3f} | {off:+.1f}"
            )
    stops = np.array([row["stop"] for row in rows], dtype=bool)
    wrong = int(left[stops].sum())
    yield f"told to stop: {stops.sum()} of {len(rows)}; wrongly: {wrong}"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seen against expected, and means by what was expected."""
    import matplotlib.pyplot as plt

    expected, seen = (np.array([row[name] for row in rows]) for name in ("expected", "seen"))
    least = 1e-5
    figure, axes = plt.subplots(figsize=(6.0, 5.0))
    axes.loglog(
        np.maximum(expected, least), np.maximum(seen, least), ".", color="#8fb4cc", markersize=4
    )
    bins = [(expected >= a) & (expected < b) for a, b in pairwise(EDGES)]
    means = [(expected[b].mean(), seen[b].mean()) for b in bins if b.sum() >= 5]
    axes.loglog(*np.maximum(np.array(means).T, least), "o-", color="#c2571a", label="means by bin")
    axes.loglog([least, 1.0], [least, 1.0], color="#444444", linewidth=1.0, label="as foretold")
    axes.set_xlabel("expected gain of the batch, share of the range")
    axes.set_ylabel("gain seen, share of the range")
    axes.set_title("Did batches gain what was foretold?")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what is missing, print the tables, draw the picture if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seeds", type=int, default=0, help="of each function of the race")
    parser.add_argument("--drawn", type=int, default=0, help="functions of each dimension")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    done = {(row["problem"], row["seed"]) for row in read(args.path)}
    cells = [
        *product(RACE, range(args.first, args.first + args.seeds)),
        *product(DRAWN, range(args.first, args.first + args.drawn)),
    ]
    cells = sorted((c for c in cells if c not in done), key=lambda cell: cell[1])
    for count, total, left in append_rows(race, cells, args.path, args.workers) if cells else ():
        if count % 10 == 0:
            print(f"{count} of {total}, {left:.0f} s left", flush=True)
    rows = read(args.path)
    drawn = [row for row in rows if row["problem"] in DRAWN]
    raced = [row for row in rows if row["problem"] in RACE]
    for words, some in (("drawn from the model", drawn), ("of the race", raced)):
        print(words, *chances_table(some), *gains_table(some), "", sep="\n")
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
