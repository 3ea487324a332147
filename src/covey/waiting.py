"""Waiting for an ask: what it will cost, and a bar with the time left, for those who look on."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from covey.chunks import reporting
from covey.cost import OPEN_CANDIDATES, Cost, Size, estimate
from covey.haste import FIRST
from covey.header import Recipe
from covey.history import History
from covey.space import Pool

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from covey.propose import Request

LONG = 5.0  # seconds: shorter asks are not worth a bar
_OFTEN = 0.2  # seconds between two looks at the bar
_GLANCE = 1e-7  # seconds for a candidate that no model looks at


def cost_of(history: History, recipe: Recipe, request: Request) -> Cost:
    """About what an ask would cost: no more than its time budget, if it has one."""
    space, use = recipe.space, request.resources
    many, searched = (space.size, 0) if isinstance(space, Pool) else (OPEN_CANDIDATES, space.width)
    if not request.strategy.needs_model:
        return Cost(many * _GLANCE * (1 + searched), 16.0 * many * (1 + searched))
    many = many if history.told else min(many, max(FIRST, 10 * request.k))
    size = Size(many, len(history.told), request.k, max(1, recipe.gp.samples), searched)
    cost = estimate(size, use.bytes)
    if not use.on_host:
        # On a device the pass is next to nothing: what takes time is the fit, and that is here.
        cost = replace(cost, seconds=estimate(replace(size, candidates=0), use.bytes).seconds)
    most = math.inf if use.seconds is None else use.seconds
    return replace(cost, seconds=min(cost.seconds, most))


@contextmanager
def waiting(
    estimated: Callable[[], Cost], words: str, *, progress: bool | None = None
) -> Iterator[None]:
    """Show a bar on the terminal while inside, if it will be long.

    ``progress``: True shows it in any case, False never, None where errors go to a terminal. Where
    nobody looks on nothing is estimated, which may take a moment.
    """
    looked_at = sys.stderr.isatty() if progress is None else progress
    cost = estimated() if looked_at else None
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
        with reporting(_Ticker(bar, task, cost.seconds)):
            yield


class _Ticker:
    """Moves the bar whenever some rows are done, by the clock and the estimate.

    The estimate is stretched where it proves too short: a bar that is full and goes on is no use.
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
