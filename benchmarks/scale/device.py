"""The stages of an ask on a device of torch's, beside the bytes they must move.

`python -m benchmarks.scale.device --device cuda` prints a table: each time is the median of five
after two to warm up, with the device waited for.
"""

from __future__ import annotations

import argparse
import operator
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.scale.problem import DIMENSION, RESULTS, looks, rows
from covey import Pool, Study, dpp
from covey.arrays import one_thread
from covey.catalog import STRATEGIES
from covey.gp import Model, Posterior, condition, observe
from covey.kernels import Matern52
from covey.large.budget import Resources


@dataclass(frozen=True)
class Stage:
    """Something that is done to a pool on a device."""

    name: str
    target: float  # seconds hoped for on an H200
    bytes: float  # that must be read or written at least once
    do: Callable[[], object]


def posterior(noise: float = 1e-4) -> Posterior:
    """A model of given hyper-parameters after the results: fits are not what is timed here."""
    x, values = looks("rough")
    data = observe(x, values, np.full(len(x), np.nan))
    kernel = Matern52((0.5,) * DIMENSION, 1.0)
    return condition((Model(kernel, noise, 0.0),), data)


def stages(n: int, use: Resources) -> list[Stage]:
    """Posterior, DPP-MAX and DPP-SAMPLE over the whole pool."""
    model, at = posterior(), use.place(rows(n))
    belief = model.belief(at, 1, use.bytes)
    width = 8 if use.precision == "float64" else 4
    covariances = RESULTS * n * width  # V, the largest thing there is

    def draw(k: int) -> list[int]:
        return dpp.prepare(belief.information(), k).draw(np.random.default_rng(0))

    return [
        Stage("posterior", 0.05, 2.0 * covariances, lambda: model.belief(at, 1, use.bytes).std),
        # A pass reads V once, and writes and reads a column of the kernel for each pick.
        Stage(
            "DPP-MAX, B = 100", 0.2, covariances + 2.0 * 99 * n * width, lambda: _max(belief, 99)
        ),
        # A walk reads single entries: of all rows only the diagonal.
        Stage("DPP-SAMPLE, B = 10", 0.2, 2.0 * n * width, lambda: draw(9)),
        Stage("DPP-SAMPLE, B = 100", 1.5, 2.0 * n * width, lambda: draw(99)),
    ]


def _max(belief: Any, k: int) -> list[int]:
    return dpp.maximize(belief.information(), k)


def seconds(do: Callable[[], object], wait: Callable[[], None], repeats: int) -> float:
    """Median of several, after two to warm up."""
    times = []
    for i in range(repeats + 2):
        wait()
        began = time.perf_counter()
        do()
        wait()
        if i > 1:
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def bandwidth(device: str, wait: Callable[[], None]) -> float:
    """Bytes a second of a copy from device to device, read and written."""
    import torch

    size = 2**28 if device != "cpu" else 2**24
    source = torch.zeros(size, dtype=torch.float64, device=device)
    target = torch.empty_like(source)
    return 2.0 * 8.0 * size / seconds(lambda: target.copy_(source), wait, 5)


def error(n: int, use: Resources) -> tuple[float, float, bool]:
    """Largest difference from NumPy of mean and deviation; whether MAX chooses the same rows."""
    model, some = posterior(), rows(n)
    ours, theirs = model.belief(some), model.belief(use.place(some), 1, use.bytes)
    mean = float(np.abs(ours.mean - theirs.mean).max())
    std = float(np.abs(ours.std - theirs.std).max())
    return mean, std, _max(ours, 9) == _max(theirs, 9)


def batch(strategy: str, **options: Any) -> list[Any]:
    """Twenty rows of 30,000, by a study of a few results."""
    pool = Pool(rows(30_000))
    study = Study(pool, seed=1, strategy=strategy, **options)
    values = np.sin(6.0 * pool.rows[:80]).sum(axis=1)
    study.add([pool.point(i) for i in range(80)], values)
    return [trial.point for trial in study.ask(20)]


def agreement(device: str) -> str:
    """How many picks of each strategy are those of NumPy, in double and in single precision."""
    lines = ["\n| strategy | the same of 20 | in float32 |", "|---|---|---|"]
    for name in STRATEGIES:
        here = batch(name)
        same = [
            sum(map(operator.eq, here, batch(name, device=device, precision=precision)))
            for precision in ("float64", "float32")
        ]
        lines.append(f"| {name} | {same[0]} | {same[1]} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Print the tables."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--n", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--precisions", nargs="+", default=["float64", "float32"])
    options = parser.parse_args(arguments)
    cuda = options.device.startswith("cuda")
    wait = torch.cuda.synchronize if cuda else lambda: None
    name = torch.cuda.get_device_name() if cuda else "torch on the host"
    copy = bandwidth(options.device, wait)
    say = sys.stdout.write
    say(f"{name}, torch {torch.__version__}; copies move {copy / 1e12:.2f} TB/s\n\n")
    say("| precision | n | stage | seconds | target at 1e6 | GB at least | of copy bandwidth |\n")
    say("|---|---|---|---|---|---|---|\n")
    with one_thread():
        for precision in options.precisions:
            use = Resources(options.device, precision=precision)
            for n in options.n:
                for stage in stages(n, use):
                    took = seconds(stage.do, wait, options.repeats)
                    share = stage.bytes / took / copy
                    say(
                        f"| {precision} | {n} | {stage.name} | {took:.3f} | {stage.target} | "
                        f"{stage.bytes / 1e9:.2f} | {100 * share:.1f} % |\n"
                    )
                    sys.stdout.flush()
        for precision in options.precisions:
            mean, std, same = error(20_000, Resources(options.device, precision=precision))
            say(
                f"\n{precision} against NumPy at 20,000 rows, noise 1e-4 of the amplitude: mean "
                f"within {mean:.1e}, deviation within {std:.1e}; MAX of 9 "
                f"{'the same' if same else 'differs'}.\n"
            )
    say(agreement(options.device))


if __name__ == "__main__":
    main(sys.argv[1:])
