"""Asks of a long study while other processes write to its journal as fast as they can, as a table.

Each writer notes something about a trial, reads what the others wrote, and goes on. The asks are
those of one process, first alone, then beside the writers; a strategy that does not fit a model
leaves the journal the largest share of the time.
"""

from __future__ import annotations

import os

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS")})

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

import numpy as np

from covey import Real, Space, Study
from covey.errors import JournalConflict
from covey.log.journal import Journal

SPACE = Space({f"x{i}": Real(0.0, 1.0) for i in range(4)})
CELLS = ("asks", "answered", "median s", "slowest s", "median CPU s", "most CPU s", "conflicts")


class CountingJournal(Journal):
    """A journal that counts the events that could not be appended, as others were quicker."""

    conflicts = 0

    def append(self, event: Mapping[str, Any], after: int | None = None) -> int:
        """Append an event, or count that somebody else was quicker."""
        try:
            return super().append(event, after)
        except JournalConflict:
            self.conflicts += 1
            raise


class Asks(NamedTuple):
    """How long asks took, and how often they had to check and append their batch again."""

    wall: list[float]
    cpu: list[float]
    conflicts: int
    events: float  # written meanwhile by all, a second

    def row(self, name: str, count: int) -> str:
        """Return a row of the table."""
        times = (median(self.wall), max(self.wall), median(self.cpu), max(self.cpu))
        cells = [name, f"{len(self.wall)} of {count}", *(f"{seconds:.2f}" for seconds in times)]
        return f"| {' | '.join([*cells, str(self.conflicts), f'{self.events:.0f}'])} |"


def time_asks(study: Study, log: CountingJournal, strategy: str, count: int) -> Asks:
    """Ask for two points so many times."""
    seq, conflicts, began = log.seq, log.conflicts, time.perf_counter()
    wall, cpu = [], []
    for _ in range(count):
        start, worked = time.perf_counter(), time.process_time()
        study.ask(2, strategy=strategy)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - worked)
    events = (log.seq - seq) / (time.perf_counter() - began)
    return Asks(wall, cpu, log.conflicts - conflicts, events)


def begin(journal: Path, trials: int) -> None:
    """Start a study with so many results, a thousand an event."""
    study, rng = Study(SPACE, seed=0, journal=journal), np.random.default_rng(0)
    for first in range(0, trials, 1000):
        at = rng.random((min(1000, trials - first), SPACE.width))
        study.add(SPACE.decode(at), at.sum(axis=1))


def write(journal: Path, ready: Event, stop: Event, most: float) -> None:
    """Add notes until told to stop, and for so many seconds at most."""
    study, end = Study.load(journal), time.monotonic() + most
    ready.set()
    while not stop.is_set() and time.monotonic() < end:
        study.note([0], "seen")


@contextmanager
def writing(journal: Path, count: int, most: float) -> Iterator[None]:
    """Let so many processes write to a journal meanwhile."""
    spawn = multiprocessing.get_context("spawn")
    stop, ready = spawn.Event(), [spawn.Event() for _ in range(count)]
    writers = [spawn.Process(target=write, args=(journal, on, stop, most)) for on in ready]
    for writer in writers:
        writer.start()
    for on in ready:
        on.wait()
    try:
        yield
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def main() -> None:
    """Print the table: asks alone, asks beside writers, and the ratio of the slowest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60_000)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--asks", type=int, default=20)
    parser.add_argument("--strategy", default="random")
    parser.add_argument("--most", type=float, default=600.0, help="seconds that writers write")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # elsewhere may be memory
        journal = Path(folder) / "run.jsonl"
        begin(journal, chosen.trials)
        log = cast(CountingJournal, CountingJournal.open(journal))
        study = Study(SPACE, journal=log)
        time_asks(study, log, chosen.strategy, 1)
        alone = time_asks(study, log, chosen.strategy, chosen.asks)
        with writing(journal, chosen.writers, chosen.most):
            beside = time_asks(study, log, chosen.strategy, chosen.asks)
    print(f"| {' | '.join(CELLS)} | events/s |\n{'|---' * (len(CELLS) + 1)}|")
    print(alone.row("alone", chosen.asks))
    print(beside.row(f"beside {chosen.writers} writers", chosen.asks))
    for what, one, two in (("wall", alone.wall, beside.wall), ("CPU", alone.cpu, beside.cpu)):
        print(
            f"\nslowest beside writers over the median alone, {what}: {max(two) / median(one):.2f}"
        )


if __name__ == "__main__":
    main()
