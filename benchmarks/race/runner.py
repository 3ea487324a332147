"""Running the race: one line a batch, appended as runs end, so that it resumes."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.race.optimisers import enter, version_of
from benchmarks.race.problems import Unsupported, problem

Cell = TypeVar("Cell")


@dataclass(frozen=True)
class Run:
    """One optimiser on one problem from one first batch."""

    optimiser: str
    problem: str
    batch: int
    seed: int
    rounds: int


def spread(at: np.ndarray) -> float:
    """Least distance between two points of a batch, in the unit cube: nought is a collapse."""
    gaps = np.linalg.norm(at[:, None] - at, axis=2)
    return float(gaps[np.triu_indices(len(at), 1)].min()) if len(at) > 1 else float("nan")


def race(run: Run) -> Iterator[dict[str, Any]]:
    """The rows of one run: round 0 is the shared first batch."""
    task = problem(run.problem)
    noise = np.random.default_rng([run.seed, run.batch, 7])
    optimiser = enter(run.optimiser, task, run.seed)
    points, best, total = task.first_batch(run.batch, run.seed), -np.inf, 0.0
    wall = cpu = 0.0
    for t in range(run.rounds + 1):
        if t:
            wall, cpu = -time.perf_counter(), -time.process_time()
            points = optimiser.ask(run.batch)
            wall, cpu = wall + time.perf_counter(), cpu + time.process_time()
        values = np.array([task.f(point) for point in points])
        best = max(best, float(values.max()))
        total += float((task.optimum - values).sum())
        looks = values + task.noise * noise.standard_normal(len(values))
        optimiser.tell(points, looks.tolist())
        yield {
            **asdict(run),
            "round": t,
            "regret": task.optimum - best,
            "cumulative": total,
            "range": task.range,
            "spread": spread(task.space.encode(points)),
            "ask_s": round(wall, 4),
            "ask_cpu_s": round(cpu, 4),
            "version": version_of(run.optimiser),
        }


def finished(path: Path) -> set[Run]:
    """Runs whose last round is in the file (or that cannot be run)."""
    done = set()
    for row in read(path):
        if row["round"] == row["rounds"] or "unsupported" in row:
            done.add(Run(*(row[name] for name in Run.__dataclass_fields__)))
    return done


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of results; a line cut off by a stop is passed over."""
    if not path.exists():
        return []
    rows = []
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        text = file.read()
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def _whole(run: Run) -> list[dict[str, Any]]:
    try:
        return list(race(run))
    except Unsupported as reason:
        return [{**asdict(run), "round": 0, "unsupported": str(reason)}]
    except Exception as error:  # a peer that fails is a result, and is tried again next time
        return [{**asdict(run), "round": 0, "error": repr(error)}]


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes; a stop does not wait for what is queued."""
    pool = ProcessPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_all(runs: list[Run], path: Path, workers: int) -> Iterator[tuple[int, int, float]]:
    """Run what is missing; yields how many are done, of how many, and the seconds left."""
    done = finished(path)
    yield from append_rows(_whole, [run for run in runs if run not in done], path, workers)


def append_rows(
    work: Callable[[Cell], list[dict[str, Any]]], missing: Sequence[Cell], path: Path, workers: int
) -> Iterator[tuple[int, int, float]]:
    """Write the rows of each cell as it ends; yields how many did, of how many, seconds left."""
    os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")})
    start = time.perf_counter()
    torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a") as out, _pool(workers) as pool:
        out.write("\n" if torn else "")  # or the next row would be lost with the torn one
        futures = [pool.submit(work, cell) for cell in missing]
        for count, future in enumerate(as_completed(futures), start=1):
            out.write("".join(json.dumps(row) + "\n" for row in future.result()))
            out.flush()
            left = (time.perf_counter() - start) / count * (len(missing) - count)
            yield count, len(missing), left


def by_cell(path: Path, kind: type[Cell]) -> dict[Cell, dict[str, Any]]:
    """The rows of a file by their cell, a NamedTuple; the last of several wins."""
    names = kind._fields  # type: ignore[attr-defined]
    return {kind(*(row[name] for name in names)): row for row in read(path)}


def add_missing(
    work: Callable[[Cell], list[dict[str, Any]]], wanted: Sequence[Cell], path: Path, workers: int
) -> None:
    """Run the cells that a file has no rows of, and say how far it is.

    A packed file (.gz) holds kept results: nothing is added to it.
    """
    if path.suffix == ".gz" or not wanted:
        return
    done = by_cell(path, type(wanted[0]))
    missing = [cell for cell in wanted if cell not in done]
    for count, total, left in append_rows(work, missing, path, workers):
        if count % 10 == 0:
            print(f"{count} of {total}, {left:.0f} s left", flush=True)
