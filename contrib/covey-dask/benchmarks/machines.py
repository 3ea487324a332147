"""Where a cluster could win: machines of a few cores each, against one such machine.

A machine is a worker bound to cores of its own by `taskset`, with so much memory for V. The process
that asks, and the scheduler, share the first machine with its worker. One machine alone is the same
process without a cluster. "large": V of the whole pool is twice what one machine may hold, so that
it is worked out anew for each pass, while two machines or more keep it. It prints a Markdown table.

python contrib/covey-dask/benchmarks/machines.py             # sixteen cores; half an hour or more
python contrib/covey-dask/benchmarks/machines.py --cores 1 --machines 1 2 --rows 20000  # it runs
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.metadata import version
from typing import Any

import numpy as np

import covey
from covey_dask import DaskProposer

DIMENSION, RESULTS, PICKS = 6, 500, 50
STRATEGIES = ("auto", "ucb-dpp-max")
ROOM = "2 GiB"  # for V on one machine, where it is not the point
# By Dask's own setting workers give memory back at once, which doubles the time of a pass.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}


def objective(x: np.ndarray) -> np.ndarray:
    """Waves shorter than the looks lie apart: any row may still be the best."""
    turns = np.random.default_rng(5).normal(0.0, 12.0, (64, x.shape[1]))
    return np.cos(x @ turns.T + np.arange(64.0)).sum(axis=1) / 8.0


def study_of(rows: int, strategy: str, memory: int | str) -> covey.Study:
    """A pool, and results from elsewhere in its cube."""
    pool = covey.Pool(np.random.default_rng(1).random((rows, DIMENSION)))
    study = covey.Study(pool, strategy=strategy, seed=0, memory=memory)
    at = np.random.default_rng(2).random((RESULTS, DIMENSION))
    study.add([{f"x{j}": float(v) for j, v in enumerate(row)} for row in at], objective(at))
    return study


def half_of_v(rows: int) -> int:
    """Bytes, of 8 · n · m; a study takes no less than 64 MiB."""
    return max(4 * rows * RESULTS, 2**26)


@contextmanager
def cluster(machines: int, cores: int) -> Iterator[Any]:
    """A client of so many workers, each bound to cores of its own; None without any."""
    if not machines:
        yield None
        return
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        made = stack.enter_context(
            LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
        )
        for machine in range(machines):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", made.scheduler_address]
            options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--memory-limit", "0"]
            process = subprocess.Popen(
                [*bound(machine, cores), *worker, *options],
                env={**os.environ, **MALLOC},
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        client = stack.enter_context(Client(made))
        client.wait_for_workers(machines, timeout=60)
        yield client


def bound(machine: int, cores: int) -> list[str]:
    """What binds a command to the cores of a machine."""
    mine = sorted(os.sched_getaffinity(os.getppid()))[machine * cores : (machine + 1) * cores]
    return ["taskset", "--cpu-list", ",".join(map(str, mine))]


def ask(machines: int, cores: int, rows: int, strategy: str, memory: int | str) -> dict[str, Any]:
    """Two batches; of the second the seconds without its fit, which no cluster shares."""
    study = study_of(rows, strategy, memory)
    with (
        cluster(machines, cores) as client,
        DaskProposer(study, client) if client else nullcontext(),
    ):
        first = study.ask(PICKS)
        began = time.perf_counter()
        second = study.ask(PICKS)
        took = time.perf_counter() - began
    spent = study.diagnostics.seconds if study.diagnostics else {}
    points = [list(trial.point.values()) for trial in (*first, *second)]
    return {"seconds": took - spent.get("fit", 0.0), "batch": points}


def asked_apart(cores: int, *what: Any) -> dict[str, Any]:
    """`ask` in a process of its own, on the first machine."""
    told = json.dumps([what[0], cores, *what[1:]])
    command = [sys.executable, __file__, "--one", told]
    first = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    done = subprocess.run(
        ["taskset", "--cpu-list", first, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: list[int], machines: list[int], cores: int) -> Iterator[str]:
    """A line for each pool and strategy."""
    heads = " | ".join(f"{m} machine{'s' if m > 1 else ''}" for m in machines)
    yield f"| rows | V | strategy | alone | {heads} | same batch |"
    yield "|---" * (5 + len(machines)) + "|"
    for n in rows:
        for what, memory in (("fits", ROOM), ("large", half_of_v(n))):
            for strategy in STRATEGIES:
                alone = asked_apart(cores, 0, n, strategy, memory)
                each = [asked_apart(cores, m, n, strategy, memory) for m in machines]
                cells = " | ".join(f"{one['seconds']:.1f} s" for one in (alone, *each))
                same = all(one["batch"] == alone["batch"] for one in each)
                yield f"| {n} | {what} | {strategy} | {cells} | {'yes' if same else 'no'} |"


def main() -> None:
    """Print the table as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--cores", type=int, default=2, help="of one machine")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one:
        print(json.dumps(ask(*json.loads(wanted.one))))
        return
    have, need = len(os.sched_getaffinity(0)), max(wanted.machines) * wanted.cores
    if have < need:
        parser.error(
            f"{max(wanted.machines)} machines of {wanted.cores} cores need {need} cores, and here "
            f"are {have}; ask for fewer (--machines) or smaller ones (--cores)."
        )
    about = ", ".join(f"{name} {version(name)}" for name in ("covey", "numpy", "distributed"))
    print(f"{about}, {platform.machine()}; machines of {wanted.cores} cores, {DIMENSION} inputs,")
    print(f"{RESULTS} results, B = {PICKS}\n")
    for line in table(wanted.rows, wanted.machines, wanted.cores):
        print(line, flush=True)


if __name__ == "__main__":
    main()
