"""Where a cluster could win: machines of a few cores each, against one such machine.

A machine is a worker bound to cores of its own by `taskset`, with so much memory for V, the m x n
matrix of what m results explain at n rows. The process that asks, and the scheduler, share the
first machine with its worker. One machine alone is the same process without a cluster. Where V does
not fit, it is worked out anew for each pass, while enough machines keep it. The seconds are those
of one ask that has results, without its fit, which no cluster shares; dealing out the rows is in
them. It prints a Markdown table, line by line as it comes.

python contrib/covey-dask/benchmarks/machines.py             # sixteen cores; ten minutes or so
python contrib/covey-dask/benchmarks/machines.py --cores 1 --machines 1 2 --pools 20000:100:1
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
from typing import Any, NamedTuple

import numpy as np

import covey
from covey_dask import DaskProposer

DIMENSION, PICKS = 6, 50
STRATEGIES = ("auto", "ucb-dpp-max")
SHARE = 3  # V may take one part in three of the memory
# By Dask's own setting workers give memory back at once, which doubles the time of a pass.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}


def objective(x: np.ndarray) -> np.ndarray:
    """Waves shorter than the looks lie apart: any row may still be the best."""
    turns = np.random.default_rng(5).normal(0.0, 12.0, (64, x.shape[1]))
    return np.cos(x @ turns.T + np.arange(64.0)).sum(axis=1) / 8.0


class Setting(NamedTuple):
    """A pool of rows, results told from elsewhere in its cube, and GiB for V on one machine."""

    rows: int
    results: int
    memory: float

    @staticmethod
    def of(text: str) -> Setting:
        """ROWS:RESULTS:GIB."""
        rows, results, memory = text.split(":")
        return Setting(int(rows), int(results), float(memory))

    @property
    def machines_needed(self) -> int:
        """To hold V of all rows."""
        return -(-8 * self.rows * self.results * SHARE // int(self.memory * 2**30))


def study_of(setting: Setting, strategy: str) -> covey.Study:
    """The pool and its results."""
    pool = covey.Pool(np.random.default_rng(1).random((setting.rows, DIMENSION)))
    memory = int(setting.memory * 2**30)
    study = covey.Study(pool, strategy=strategy, seed=0, memory=memory)
    at = np.random.default_rng(2).random((setting.results, DIMENSION))
    study.add([{f"x{j}": float(v) for j, v in enumerate(row)} for row in at], objective(at))
    return study


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


def ask(machines: int, cores: int, setting: Setting, strategy: str) -> dict[str, Any]:
    """One batch: its seconds without the fit, and its points."""
    study = study_of(setting, strategy)
    with (
        cluster(machines, cores) as client,
        DaskProposer(study, client) if client else nullcontext(),
    ):
        began = time.perf_counter()
        batch = study.ask(PICKS)
        took = time.perf_counter() - began
    spent = study.diagnostics.seconds if study.diagnostics else {}
    points = [list(trial.point.values()) for trial in batch]
    return {"seconds": took - spent.get("fit", 0.0), "batch": points}


def asked_apart(cores: int, machines: int, setting: Setting, strategy: str) -> dict[str, Any]:
    """`ask` in a process of its own, on the first machine."""
    command = [sys.executable, __file__, "--one", json.dumps([machines, cores, setting, strategy])]
    first = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    done = subprocess.run(
        ["taskset", "--cpu-list", first, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(settings: list[Setting], machines: list[int], cores: int) -> Iterator[str]:
    """A row for each pool and strategy, cell by cell."""
    heads = " | ".join(f"{m} machine{'s' if m > 1 else ''}" for m in machines)
    yield f"| rows | results | V fits on | strategy | alone | {heads} | same batch |\n"
    yield "|---" * (6 + len(machines)) + "|\n"
    for setting in settings:
        for strategy in STRATEGIES:
            need = setting.machines_needed
            yield f"| {setting.rows} | {setting.results} | {need} | {strategy} |"
            batches = []
            for count in (0, *machines):
                one = asked_apart(cores, count, setting, strategy)
                batches.append(one["batch"])
                yield f" {one['seconds']:.1f} s |"
            yield f" {'yes' if all(b == batches[0] for b in batches) else 'no'} |\n"


def main() -> None:
    """Print the table as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pools",
        type=Setting.of,
        nargs="+",
        default=[Setting(10**6, 300, 6.0), Setting(10**7, 100, 4.0)],
        help="each as ROWS:RESULTS:GIB of memory on one machine",
    )
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--cores", type=int, default=2, help="of one machine")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one:
        machines, cores, setting, strategy = json.loads(wanted.one)
        print(json.dumps(ask(machines, cores, Setting(*setting), strategy)))
        return
    have, need = len(os.sched_getaffinity(0)), max(wanted.machines) * wanted.cores
    if have < need:
        parser.error(
            f"{max(wanted.machines)} machines of {wanted.cores} cores need {need} cores, and here "
            f"are {have}; ask for fewer (--machines) or smaller ones (--cores)."
        )
    about = ", ".join(f"{name} {version(name)}" for name in ("covey", "numpy", "distributed"))
    print(f"{about}, {platform.machine()}; machines of {wanted.cores} cores, {DIMENSION} inputs,")
    print(f"B = {PICKS}\n")
    for part in table(wanted.pools, wanted.machines, wanted.cores):
        print(part, end="", flush=True)


if __name__ == "__main__":
    main()
