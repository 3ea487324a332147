"""Resources: what an ask may use of the machine. Not logged: another machine has others."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypedDict, TypeVar

import numpy as np

from covey.arrays import Array, free_memory, is_host, placed
from covey.errors import StrategyError

Precision = Literal["float64", "float32"]

MEMORY = 2 * 2**30  # bytes over the pool itself, unless the user says otherwise
_LEAST = 64 * 2**20
_UNITS = {"": 1, "b": 1} | {
    unit: base**power
    for power, letter in enumerate("kmgt", start=1)
    for unit, base in ((f"{letter}b", 1000), (f"{letter}ib", 1024))
}


class ResourceOptions(TypedDict, total=False):
    """How `Study` takes them."""

    device: str
    memory: int | str | None
    precision: Precision


@dataclass(frozen=True, slots=True)
class Resources:
    """Where candidates are kept and looked at, and how much memory that may take.

    Attributes:
        device: "cpu", or one of torch's, such as "cuda" (extra ``torch``).
        memory: bytes, or "8 GiB", for what grows with pool and batch, over the pool itself; None
            is 2 GiB on the host and half of what is free on a GPU.
        precision: "float32" is twice as fast on a GPU, and good to three digits or so.
        seconds: that an ask may take, about; None: as many as it needs.

    >>> Resources(memory="512 MiB").bytes
    536870912
    """

    device: str = "cpu"
    memory: int | str | None = None
    precision: Precision = "float64"
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.precision not in ("float64", "float32"):
            raise StrategyError(f'precision is "float64" or "float32"; got {self.precision!r}.')
        if self.memory is not None and _bytes(self.memory) < _LEAST:
            raise StrategyError(f"memory must be at least 64 MiB; got {self.memory!r}.")
        self.place(np.zeros((1, 1)))  # a device that is not there is better known before an ask

    @property
    def bytes(self) -> int:
        """Bytes an ask may take."""
        if self.memory is not None:
            return _bytes(self.memory)
        return MEMORY if self.on_host else free_memory(self.device) // 2

    @property
    def on_host(self) -> bool:
        """Whether NumPy does all the work."""
        return self.device == "cpu" and self.precision == "float64"

    def place(self, at: Array) -> Array:
        """Coordinates (n, d), moved to where they are looked at."""
        return at if self.on_host else placed(at, self.device, self.precision)


def _bytes(memory: int | str) -> int:
    """A size as a number.

    >>> _bytes("1.5 GiB"), _bytes(10**9)
    (1610612736, 1000000000)
    """
    if isinstance(memory, int) and not isinstance(memory, bool):
        return memory
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", str(memory).lower())
    if found is None or found[2] not in _UNITS or found[1].count(".") > 1 or found[1] == ".":
        raise StrategyError(f'memory is a number of bytes, or such as "8 GiB"; got {memory!r}.')
    return int(float(found[1]) * _UNITS[found[2]])


# Work on many rows, chunk by chunk, on all cores.
#
# A chunk is worked on by one thread, and chunks do not depend on the number of threads; so
# neither do results, to the last bit.

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
def reporting_chunks(report: Report) -> Iterator[None]:
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
