"""Budgets of an ask: memory and device, an estimate of its cost, its time limit, a progress bar.

`Resources` is what the user allows, `estimate` predicts seconds and bytes, `TimeLimit` drops
candidates to end in time, `progress_bar` shows a bar. Nothing of it is logged, as it depends on the
machine.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from covey.arrays import (
    CACHE,
    MEMORY,
    Array,
    cholesky,
    cores,
    free_memory,
    one_thread,
    plus_diagonal,
    reporting_chunks,
    to_device,
)
from covey.design import most_candidates
from covey.errors import StrategyError
from covey.gp.fit import MANY
from covey.history import History
from covey.kernels import Matern52
from covey.large.lowrank import SHARE, StreamedRows
from covey.selection import Strategy, TimeLimited
from covey.space import Pool

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from covey.candidates import Candidates
    from covey.learn import Recipe
    from covey.propose import Request


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


# The estimated cost of an ask.

# Costs are in terms, a term being one multiplication of a triangular solve. A candidate costs m²
# for m results, plus _ROW + _KERNEL m for its kernel values, which are computed twice; a fit costs
# _FIT for each result. Fitted to runs with m from 100 to 10,000 (our choice).
_ROW, _KERNEL, _FIT = 66_000.0, 92.0, 8e7
_COLUMN, _COLUMN_BYTES = 1.2e7, 2e5  # terms and bytes per input to search a continuous space
_PICKS = 1.5  # terms per candidate and squared batch size, where greedy reads the whole pool
_PICK = 2000.0  # terms per pick and candidate on the short list, of which there are at most _LISTED
_LISTED = 16_384
_LITTLE, _TYPICAL = 2e10, 5e-11  # terms below which no speed is measured; typical seconds a term
OPEN_CANDIDATES, _OPEN_PER_POINT = 4000, 16  # of an ask in a continuous space: about, and a point
_PROBE_ROWS, _PROBE_RESULTS = 4096, 512  # size of the speed measurement


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers that decide the cost of an ask."""

    candidates: int
    results: int
    batch: int
    members: int = 1  # draws of the hyper-parameters
    searched: int = 0  # encoded inputs, where candidates are searched for in a continuous space


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated seconds and bytes, right to a factor of two or so on an idle machine.

    >>> print(Cost(83.0, 3 * 2**29))
    about 80 s and 1.5 GiB
    """

    seconds: float
    bytes: float

    def __str__(self) -> str:
        seconds = self.seconds if self.seconds >= 0.1 else 0.1
        digits = max(0, int(np.floor(np.log10(seconds))))
        rounded = round(seconds, -digits) if seconds >= 1.0 else round(seconds, 1)
        return f"about {rounded:g} s and {self.bytes / 2**30:.1f} GiB"


def estimate(size: Size, memory: int) -> Cost:
    """The cost of an ask on the host that may take ``memory`` bytes."""
    m = max(1, size.results)
    terms = _learning(m, size.members) + size.candidates * _looking(m, size)
    terms += _COLUMN * size.searched + _PICK * size.batch * min(size.candidates, _LISTED)
    whole = 8.0 * size.members * m * size.candidates
    # Rows V that do not fit are streamed in chunks; those of a region or short list are held.
    held = whole if whole <= memory / SHARE else min(whole, memory / 8.0)
    held += 8.0 * size.members * m * m
    # A short ask is not worth measuring the machine for.
    speed = second_per_term() if terms > _LITTLE else _TYPICAL
    held += 80.0 * size.candidates + _COLUMN_BYTES * size.searched
    return Cost(terms * speed, held)


def affordable(size: Size, seconds: float) -> int:
    """The number of candidates that an ask can evaluate in so many seconds, after the fit."""
    # In a pool few of the candidates are on the short list; of a search all of them are.
    choosing = _PICK * size.batch if size.searched else 0.0
    terms = _looking(max(1, size.results), size) + choosing
    return int(seconds / (terms * second_per_term()))


def _looking(m: int, size: Size) -> float:
    """Terms per candidate and core: the variance pass, and columns of the covariance."""
    whole = m * m + 2.0 * (_ROW + _KERNEL * m) + _PICKS * size.batch**2
    return size.members * whole / cores()


def _learning(m: int, members: int) -> float:
    """Terms of the fit, and of conditioning on all results where the fit took a subset."""
    return members * (_FIT * min(m, MANY) + (m**3 / 3.0 if m > MANY else 0.0))


@cache
def second_per_term() -> float:
    """Seconds a term on one core of this machine: a small variance pass, timed once a process."""
    rng = np.random.default_rng(0)
    seen, at = rng.random((_PROBE_RESULTS, 4)), rng.random((_PROBE_ROWS, 4))
    kernel = Matern52((0.5,) * 4)
    factor = cholesky(plus_diagonal(kernel(seen, seen), 0.01))
    layer = StreamedRows(kernel, seen, factor, at, 0)
    times = []
    with one_thread():
        for _ in range(3):
            began = time.perf_counter()
            layer.survey(np.ones(len(seen)))
            times.append(time.perf_counter() - began)
    terms = _PROBE_ROWS * (_PROBE_RESULTS**2 + _ROW + _KERNEL * _PROBE_RESULTS)
    chunks = -(-_PROBE_ROWS * _PROBE_RESULTS // CACHE)
    return min(times) * min(cores(), chunks) / terms


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

    def thinned(self, candidates: Candidates, size: Size, rng: np.random.Generator) -> Candidates:
        """A random subset that can be evaluated in time on the host; all if there is no limit.

        Of a search, the points that were climbed to stay.
        """
        if self.use.seconds is None or not self.use.on_host:
            return candidates
        most = max(_LEAST, 10 * size.batch, affordable(size, _SHARE * self.left))
        return thin(candidates, most, rng, _CLIMBED if size.searched else 0)

    def apply(self, strategy: Strategy) -> Strategy:
        """The strategy limited to the time left, if it is `TimeLimited`; else unchanged."""
        if self.use.seconds is None or not isinstance(strategy, TimeLimited):
            return strategy
        return strategy.within(self.left)


# The progress bar of an ask.

LONG = 5.0  # seconds above which an ask gets a bar
_OFTEN = 0.2  # seconds between two updates of the bar
_GLANCE = 1e-7  # seconds per candidate for a strategy that needs no model


def cost_of(history: History, recipe: Recipe, request: Request) -> Cost:
    """The estimated cost of an ask; no more seconds than its time limit, if it has one."""
    space, use = recipe.space, request.resources
    searched = 0 if isinstance(space, Pool) else space.width
    many = OPEN_CANDIDATES + _OPEN_PER_POINT * request.k
    many = space.size if isinstance(space, Pool) else many
    if not request.strategy.needs_model:
        return Cost(many * _GLANCE * (1 + searched), 16.0 * many * (1 + searched))
    results = len(history.counted if recipe.outcomes is None else history.told)
    many = many if results else min(many, most_candidates(request.k))
    members = max(1, recipe.gp.samples) * (
        1 if recipe.outcomes is None else len(recipe.outcomes.names)
    )
    size = Size(many, results, request.k, members, searched)
    cost = estimate(size, use.bytes)
    if not use.on_host:
        # On a device the pass takes next to no time; the fit, on the host, does.
        cost = replace(cost, seconds=estimate(replace(size, candidates=0), use.bytes).seconds)
    most = math.inf if use.seconds is None else use.seconds
    return replace(cost, seconds=min(cost.seconds, most))


@contextmanager
def progress_bar(
    estimated: Callable[[], Cost], words: str, *, progress: bool | None = None
) -> Iterator[None]:
    """Show a progress bar on the terminal inside, if the estimated time is above `LONG`.

    ``progress``: True shows it in any case, False never, None only if stderr is a terminal. Without
    a bar nothing is estimated, which may take a moment.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    cost = estimated() if shown else None
    if cost is None or (progress is None and cost.seconds <= LONG):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    console.print(f"{words}: {cost}", highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    left = TextColumn("{task.fields[left]}")
    with Progress(*columns, left, console=console, transient=True) as bar:
        task = bar.add_task(words, total=1.0, left="")
        with reporting_chunks(_Ticker(bar, task, cost.seconds)):
            yield


class _Ticker:
    """Moves the bar whenever a chunk is done, by the clock and the estimate.

    An estimate that proves too short is stretched, so that the bar is never full before the end.
    """

    def __init__(self, bar: Progress, task: TaskID, expected: float) -> None:
        self._bar, self._task, self._expected = bar, task, expected
        self._began = self._last = time.monotonic()

    def __call__(self, rows: int) -> None:
        del rows
        now = time.monotonic()
        if now - self._last < _OFTEN:
            return
        self._last, spent = now, now - self._began
        expected = max(self._expected, 1.15 * spent)
        left = f"about {max(1.0, expected - spent):.0f} s left"
        self._bar.update(self._task, completed=spent / expected, left=left)
