"""Work on many rows, chunk by chunk, on all cores.

A chunk is worked on by one thread, and chunks do not depend on the number of threads; so neither
do results, to the last bit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from covey.arrays import Array, is_host

Made = TypeVar("Made")

Report = Callable[[int], None]
"""Is told how many rows were worked on since it was told last."""

_report: ContextVar[Report | None] = ContextVar("report", default=None)

# Entries of an (m, chunk) block that stay in a core's cache, and that keep a GPU busy. With four
# times as many on the host, kernels were seen to take three times as long.
CACHE, _CARD = 2**17, 2**27


def each_chunk(work: Callable[[slice], Made], rows: Array, per_row: int) -> Iterator[Made]:
    """What the work makes of each chunk of the rows, in order, if a row takes so many entries.

    Only a few chunks are ahead of the one that is being read, so memory stays bounded.
    """
    size = max(64, (CACHE if is_host(rows) else _CARD) // max(1, per_row))
    starts = range(0, max(1, len(rows)), size)  # of no rows one chunk, so that nobody has to ask
    parts = [slice(low, min(low + size, len(rows))) for low in starts]
    made = side_by_side(work, parts) if is_host(rows) else map(work, parts)
    tell = _report.get()
    for part, one in zip(parts, made, strict=True):
        if tell is not None:
            tell(part.stop - part.start)
        yield one


def side_by_side(work: Callable[[slice], Made], parts: Sequence[slice]) -> Iterator[Made]:
    """What the work makes of each part, in order: each by one thread, on all cores."""
    workers = min(cores(), len(parts))
    if workers <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="covey") as pool:
        ahead = deque(pool.submit(work, part) for part in parts[: 2 * workers])
        try:
            for i in range(len(parts)):
                made = ahead.popleft().result()
                if i + 2 * workers < len(parts):
                    ahead.append(pool.submit(work, parts[i + 2 * workers]))
                yield made
        finally:  # an interrupt does not wait for what is queued
            for future in ahead:
                future.cancel()


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Have the chunks worked on inside reported."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
