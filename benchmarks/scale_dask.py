"""Batches worked out by a Dask cluster, beside those of one machine, as Markdown tables.

pip install -e contrib/covey-dask                   # or PYTHONPATH=contrib/covey-dask/src
python -m benchmarks.scale_dask                     # pools of 100,000 rows: minutes
python -m benchmarks.scale_dask --sizes 20000       # to see that it runs
python -m benchmarks.scale_dask --only core-sets    # or asks
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.scale.problem import DIMENSION, RESULTS, rows, study
from covey import dpp
from covey.arrays import Array, Indices, one_thread
from covey.gp import Posterior
from covey.learn import understand
from covey_dask import DaskProposer
from covey_dask.coreset import Check, Chosen, check, core_set, merge

PICKS = 50
PARTS = (1, 2, 4, 8)
ASKS = ("auto", "ucb-dpp-max", "ucb-dpp-sample")
# By Dask's own setting workers give memory back at once, which doubles the time of a pass.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}


class Parts:
    """Parts of a pool, all of them here: what a cluster would find, without one."""

    def __init__(self, posterior: Posterior, at: Array, parts: list[Indices]) -> None:
        self.parts = parts
        self._kernels = tuple(model.kernel for model in posterior.models)
        self._beliefs = [posterior.belief(at[part]) for part in parts]

    def core_sets(self, size: int) -> Indices:
        """Greedy in each part."""
        pairs = zip(self.parts, self._beliefs, strict=True)
        return np.sort(np.concatenate([part[core_set(belief, size)] for part, belief in pairs]))

    def check(self, picks: Indices, chosen: Chosen) -> list[Check]:
        """Each part against the batch."""
        found = []
        for part, belief in zip(self.parts, self._beliefs, strict=True):
            mine = np.flatnonzero(np.isin(part, picks))
            one = check(self._kernels, belief, chosen, mine)
            found.append(Check(one.gains, np.where(one.where >= 0, part[one.where], -1)))
        return found


def dealt(at: Array, parts: int, how: str) -> list[Indices]:
    """At random, as `DaskProposer` does it; or sorted by a coordinate, as an adversary would."""
    order = np.random.default_rng(0).permutation(len(at)) if how == "random" else at[:, 0].argsort()
    return [np.sort(part) for part in np.array_split(order, parts)]


def core_sets(n: int) -> Iterator[str]:
    """What core-sets keep of greedy's log det, and how many checks make it greedy's batch."""
    made, at = study(n, "rough"), rows(n)
    posterior = understand(made.history, made.recipe, np.random.default_rng(0))
    belief = posterior.belief(at)
    kernel = belief.information()
    greedy = dpp.maximize(kernel, PICKS)
    best = dpp.log_determinant(kernel, greedy)
    rng = np.random.default_rng(1)
    for how in ("random", "sorted"):
        for parts in PARTS:
            crew = Parts(posterior, at, dealt(at, parts, how))
            plain, full = (merge(belief, PICKS, crew, checks) for checks in (0, 16))
            kept = dpp.log_determinant(kernel, plain.picks) / best
            some = np.concatenate([rng.choice(part, PICKS, replace=False) for part in crew.parts])
            picks = some[dpp.maximize(belief.on(some).information(), PICKS)]
            control = dpp.log_determinant(kernel, picks) / best
            same = "yes" if full.picks.tolist() == greedy else "no"
            yield (
                f"| {n} | {how} | {parts} | {kept:.5f} | {control:.3f} | {full.checks} | {same} |"
            )


def asks(n: int, workers: tuple[int, ...] = (1, 2)) -> Iterator[str]:
    """The second ask of a study, its fit apart, on one machine and on workers of the same."""
    for objective in ("smooth", "rough"):
        for strategy in ASKS:
            alone, seconds, stages = asked(n, objective, strategy, None)
            cells = [f"{seconds:.1f} ({stages})"]
            same = []
            for count in workers:
                batch, seconds, stages = asked(n, objective, strategy, count)
                same.append("yes" if batch == alone else "another draw")
                cells.append(f"{seconds:.1f} ({stages})")
            yield f"| {objective} | {strategy} | {n} | {' | '.join(cells)} | {', '.join(same)} |"


def asked(n: int, objective: str, strategy: str, workers: int | None) -> tuple[Any, float, str]:
    """Two batches, and of the second the seconds without the fit."""
    made = study(n, objective, strategy=strategy)
    with cluster(workers) as client, DaskProposer(made, client) if client else nullcontext():
        first = made.ask(PICKS)
        began = time.perf_counter()
        second = made.ask(PICKS)
        took = time.perf_counter() - began
    account: Any = made.diagnostics
    stages = [f"{stage} {account.seconds[stage]:.1f}" for stage in ("belief", "choose")]
    points = [trial.point for trial in (*first, *second)]
    return points, took - account.seconds["fit"], ", ".join(stages)


@contextmanager
def cluster(workers: int | None) -> Iterator[Any]:
    """A client of so many workers of one thread on this machine; None: nothing."""
    if workers is None:
        yield None
        return
    import dask
    from distributed import Client, LocalCluster

    quiet = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": MALLOC}),
        LocalCluster(n_workers=workers, threads_per_worker=1, **quiet) as made,
        Client(made) as client,
    ):
        yield client


def main() -> None:
    """Print the tables as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000])
    parser.add_argument("--only", choices=["core-sets", "asks"])
    wanted = parser.parse_args()
    about = ", ".join(f"{name} {version(name)}" for name in ("covey", "numpy", "distributed"))
    print(f"{about}, {os.cpu_count()} cores of {platform.machine()}, {DIMENSION} inputs,")
    print(f"{RESULTS} results, B = {PICKS}\n")
    if wanted.only != "asks":
        print("| n | dealt | parts | log det kept | by random rows | checks | same batch |")
        print("|---|---|---|---|---|---|---|")
        with one_thread():
            for n in wanted.sizes:
                for line in core_sets(n):
                    print(line, flush=True)
    if wanted.only != "core-sets":
        print("\n| objective | strategy | n | one machine | 1 worker | 2 workers | same batch |")
        print("|---|---|---|---|---|---|---|")
        for n in wanted.sizes:
            for line in asks(n):
                print(line, flush=True)


if __name__ == "__main__":
    main()
