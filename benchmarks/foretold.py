"""Did batches gain what `Study.advice` foretold? Expected against seen gains, over a race.

    python -m benchmarks.foretold RESULTS.jsonl --seeds 5 --workers 2
    python -m benchmarks.foretold RESULTS.jsonl --plot foretold.png

Before each batch its expected gain is taken from the model; after it, the gain is by how much the
best noise-free value got better. Both are shares of the function's range.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.problems import problem
from benchmarks.race.runner import append_rows, read
from covey.gains import expected_gains
from covey.learn import LastModel

PROBLEMS = ("branin2", "cosines2", "levy4", "michalewicz5", "hartmann6", "mixed-hartmann6")
EDGES = np.array([0.0, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, np.inf])


def race(cell: tuple[str, int, int], rounds: int) -> list[dict[str, Any]]:
    """One row a batch that a model chose: of a problem, a batch size and a seed."""
    name, batch, seed = cell
    task = problem(name)
    noise = np.random.default_rng([seed, batch, 7])
    study = covey.Study(task.space, seed=seed)
    best, rows = -np.inf, []
    for t in range(rounds):
        recipe, known = study.recipe, study.history
        trials = study.ask(batch)
        expected = None
        if study.history.models is not None:
            points = [trial.point for trial in trials]
            (gain,) = expected_gains(LastModel(recipe).of(known), known, recipe, [points])
            expected = gain.gain / task.range
        values = np.array([task.f(trial.point) for trial in trials])
        study.tell(trials, (values + task.noise * noise.standard_normal(batch)).tolist())
        seen = max(0.0, float(values.max()) - best) / task.range
        best = max(best, float(values.max()))
        if expected is not None:
            told = {"problem": name, "batch": batch, "seed": seed, "round": t}
            rows.append({**told, "expected": expected, "seen": seen})
    return rows


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
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
    order = [np.argsort(np.argsort(x)) for x in (expected, seen)]
    yield f"rank correlation: {np.corrcoef(*order)[0, 1]:.2f}"


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
    """Run what is missing, print the table, draw the picture if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    done = {(row["problem"], row["batch"], row["seed"]) for row in read(args.path)}
    names = [f"{name}{noise}" for name in PROBLEMS for noise in ("", "~10%")]
    cells = [c for c in product(names, (4, 8), range(args.seeds)) if c not in done]
    if cells:
        work = partial(race, rounds=args.rounds)
        for count, total, left in append_rows(work, cells, args.path, args.workers):
            if count % 10 == 0:
                print(f"{count} of {total}, {left:.0f} s left", flush=True)
    rows = read(args.path)
    noisy = [row for row in rows if "~" in row["problem"]]
    for words, some in (("noise-free", [r for r in rows if r not in noisy]), ("noise 10 %", noisy)):
        print(words)
        print("\n".join(table(some)))
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
