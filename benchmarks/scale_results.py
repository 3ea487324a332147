"""Seconds and memory of asks after many results, as one Markdown table.

Each size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeVar, get_args

import numpy as np

from covey import Pool, Study
from covey.arrays import Array, one_thread
from covey.gp import Recall, View, fit_best
from covey.learn import observations

T = TypeVar("T")

SIZES = (1000, 2000, 5000, 10000)
HEAD = (
    "| results | fit | condition | first ask | of it: fit, belief, choose | second ask | peak GB |"
)


def objective(x: Array, rng: np.random.Generator) -> Array:
    """A smooth function of six variables that do not matter equally, with noise of sd 0.1."""
    smooth = np.sin(4.0 * x @ np.linspace(1.0, 0.2, x.shape[1])) + np.square(x - 0.5).sum(axis=1)
    return smooth + 0.1 * rng.standard_normal(len(x))


def told_study(n: int, candidates: int) -> tuple[Study, np.random.Generator]:
    """A study of a pool in 6-d with n results, and so many rows that have none."""
    rng = np.random.default_rng(0)
    rows = rng.random((n + candidates, 6))
    pool = Pool(rows)
    study = Study(pool, seed=0)
    study.add([pool.point(i) for i in range(n)], objective(rows[:n], rng))
    return study, rng


def timed(work: Callable[[], T]) -> tuple[T, tuple[float, float]]:
    """What it made, and its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    return made, (time.perf_counter() - wall, time.process_time() - cpu)


def learn(study: Study) -> tuple[tuple[float, float], tuple[float, float]]:
    """Seconds of the fit alone, all views of it, and of conditioning on all results."""
    history, recipe = study.history, study.recipe
    seen = [(view, observations(history, recipe, view=view)) for view in get_args(View)]
    views = [data for view, data in seen if data.view == view]
    rng = np.random.default_rng(0)
    with one_thread():
        (data, models), fit = timed(lambda: fit_best(views, recipe.gp, rng))
        _, condition = timed(lambda: Recall().condition(models, data))
    return fit, condition


def measure(n: int, candidates: int, k: int, strategy: str) -> dict[str, Any]:
    """One row: fit, condition, an ask, and an ask after the results of the first."""
    study, rng = told_study(n, candidates)
    fit, condition = learn(study)
    batch, first = timed(lambda: study.ask(k, strategy=strategy))
    account: Any = study.diagnostics
    study.tell(batch, objective(study.space.encode([t.point for t in batch]), rng))
    _, second = timed(lambda: study.ask(k, strategy=strategy))
    stages = [account.seconds[stage] for stage in ("fit", "belief", "choose")]
    return {
        "n": n,
        "fit": fit,
        "condition": condition,
        "first": first,
        "stages": stages,
        "second": second,
        "peak": peak_gigabytes(),
    }


def peak_gigabytes() -> float:
    """Most memory this process has held."""
    import resource

    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def line(row: dict[str, Any]) -> str:
    """A row of the table: wall seconds, CPU seconds in brackets."""

    def cell(name: str) -> str:
        wall, cpu = row[name]
        return f"{wall:.3g} ({cpu:.3g})"

    stages = ", ".join(f"{spent:.3g}" for spent in row["stages"])
    cells = (cell("fit"), cell("condition"), cell("first"), stages, cell("second"))
    return f"| {row['n']} | {' | '.join(cells)} | {row['peak']:.2f} |"


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of results")
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--alone", type=int, help="measure this size here, and print it as JSON")
    return parser.parse_args()


def main() -> None:
    """Measure size by size and print as rows come."""
    wanted = arguments()
    options = (wanted.candidates, wanted.batch, wanted.strategy)
    if wanted.alone is not None:
        print(json.dumps(measure(wanted.alone, *options)))
        return
    about = ", ".join(f"{name} {version(name)}" for name in ("covey", "numpy", "scipy"))
    print(f"{about}, Python {platform.python_version()}, {platform.machine()}", file=sys.stderr)
    print(f"ask({wanted.batch}) over {wanted.candidates} candidates, 6-d, {wanted.strategy};")
    print("wall seconds (CPU seconds)\n")
    print(f"{HEAD}\n|{'---|' * HEAD.count(' | ')}---|")
    for n in wanted.sizes:
        command = [sys.executable, "-m", "benchmarks.scale_results", "--alone", str(n)]
        names = ("--candidates", "--batch", "--strategy")
        for name, value in zip(names, options, strict=True):
            command += [name, str(value)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(line(json.loads(done.stdout)), flush=True)


if __name__ == "__main__":
    main()
