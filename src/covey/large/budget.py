"""Budgets of an ask: memory and device, its time limit, a progress bar.

`Resources` is what the user allows, `TimeLimit` drops candidates to end in time, `progress_bar`
shows how far an ask is. Nothing of it is logged, as it depends on the machine.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from covey.arrays import MEMORY, Array, free_memory, reporting_chunks, to_device
from covey.errors import StrategyError
from covey.selection import Strategy, TimeLimited

if TYPE_CHECKING:
    from rich.progress import Progress

    from covey.candidates import Candidates


Precision = Literal["float64", "float32"]
_LEAST_BYTES = 64 * 2**20
_UNITS = {"": 1, "b": 1} | {
    unit: base**power
    for power, letter in enumerate("kmgt", start=1)
    for unit, base in ((f"{letter}b", 1000), (f"{letter}ib", 1024))
}


class ResourceOptions(TypedDict, total=False):
    """`Resources` as keyword arguments of `Study`."""

    device: str
    memory: int | str | None
    precision: Precision


@dataclass(frozen=True, slots=True)
class Resources:
    """The device, memory, precision and time that an ask may use.

    Attributes:
        device: "cpu", or a torch device such as "cuda" (extra ``torch``).
        memory: bytes, or "8 GiB", for arrays that grow with pool and batch, beside the pool itself;
            None is 2 GiB on the host and half of the free memory on a GPU.
        precision: "float32" is twice as fast on a GPU, and accurate to about three digits.
        seconds: time limit of an ask, about; None: no limit.

    >>> Resources(memory="512 MiB").bytes
    536870912
    """

    device: str = "cpu"
    memory: int | str | None = None
    precision: Precision = "float64"
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.device, str):
            raise StrategyError(f'device is a name such as "cpu" or "cuda"; got {self.device!r}.')
        if self.precision not in ("float64", "float32"):
            raise StrategyError(f'precision is "float64" or "float32"; got {self.precision!r}.')
        if self.memory is not None and _bytes(self.memory) < _LEAST_BYTES:
            raise StrategyError(f"memory must be at least 64 MiB; got {self.memory!r}.")
        self.place(np.zeros((1, 1)))  # raises now, not in an ask, if there is no such device

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
        """Coordinates (n, d), moved to the device."""
        return at if self.on_host else to_device(at, self.device, self.precision)


def _bytes(memory: int | str) -> int:
    """A memory size in bytes.

    >>> _bytes("1.5 GiB"), _bytes(10**9)
    (1610612736, 1000000000)
    """
    if isinstance(memory, int) and not isinstance(memory, bool):
        return memory
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", str(memory).lower())
    if found is None or found[2] not in _UNITS or found[1].count(".") > 1 or found[1] == ".":
        raise StrategyError(f'memory is a number of bytes, or such as "8 GiB"; got {memory!r}.')
    return int(float(found[1]) * _UNITS[found[2]])


# The time limit of an ask: candidates are dropped at random to end in time.

_SHARE = 0.7  # share of the time left that goes to the belief; the rest is for choosing
_LEAST = 2000  # candidates kept in any case, or ten for each point of the batch
_CLIMBED = 32  # the first of a search: among them all that were climbed to, which are kept


def thin(candidates: Candidates, most: int, rng: np.random.Generator, kept: int = 0) -> Candidates:
    """A random subset of ``most`` candidates, in order, the first ``kept`` among them.

    All of them if there are no more.
    """
    if most >= len(candidates):
        return candidates
    drawn = rng.choice(len(candidates) - kept, most - kept, replace=False)
    return candidates.some(np.concatenate([np.arange(kept), kept + np.sort(drawn)]))


@dataclass(frozen=True)
class TimeLimit:
    """The time limit of an ask that began at ``began``; without one nothing is dropped."""

    use: Resources
    began: float = field(default_factory=time.perf_counter)

    @property
    def left(self) -> float:
        """Seconds left, at least 0; infinite without a limit."""
        if self.use.seconds is None:
            return math.inf
        return max(0.0, self.use.seconds - (time.perf_counter() - self.began))

    def thinned(
        self,
        candidates: Candidates,
        k: int,
        work: Callable[[Candidates], object],
        rng: np.random.Generator,
        *,
        climbed: bool = False,
    ) -> Candidates:
        """A random subset that can be evaluated in time on the host; all if there is no limit.

        The time that ``work`` takes with the fewest candidates that may be left tells how many that
        is. In a search, those that were ``climbed`` to stay.
        """
        if self.use.seconds is None or not self.use.on_host:
            return candidates
        least, kept = max(_LEAST, 10 * k), _CLIMBED if climbed else 0
        few = thin(candidates, least, np.random.default_rng(0), kept)
        start = time.perf_counter()
        work(few)
        spent = max(time.perf_counter() - start, 1e-9)
        most = max(least, int(len(few) * _SHARE * self.left / spent))
        return thin(candidates, most, rng, kept)

    def apply(self, strategy: Strategy) -> Strategy:
        """The strategy limited to the time left, if it is `TimeLimited`; else unchanged."""
        if self.use.seconds is None or not isinstance(strategy, TimeLimited):
            return strategy
        return strategy.within(self.left)


# The progress bar of an ask.

LONG = 5.0  # seconds after which an ask gets a bar
_OFTEN = 0.2  # seconds between two updates of the bar


@contextmanager
def progress_bar(words: str, *, progress: bool | None = None) -> Iterator[None]:
    """Show elapsed time and chunks done on the terminal, once the work inside is found to be long.

    ``progress``: True shows it from the first chunk, False never, None only if stderr is a terminal
    and `LONG` seconds have passed.
    """
    if not (sys.stderr.isatty() if progress is None else progress):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    done = TextColumn("{task.completed:,.0f} chunks done")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), done)
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=console.is_terminal)
    counter = _ChunkCounter(bar, words, 0.0 if progress else LONG)
    try:
        with reporting_chunks(counter):
            yield
    finally:
        bar.stop()


class _ChunkCounter:
    """Counts the chunks that are done, and shows their number after so many seconds."""

    def __init__(self, bar: Progress, words: str, wait: float) -> None:
        self._bar, self._done, self._wait = bar, 0, wait
        self._task = bar.add_task(words, total=None)
        self._began = self._last = time.monotonic()

    def __call__(self, rows: int) -> None:
        del rows
        self._done += 1
        now = time.monotonic()
        if now - self._began < self._wait or now - self._last < _OFTEN:
            return
        self._last = now
        self._bar.start()
        self._bar.update(self._task, completed=self._done)
