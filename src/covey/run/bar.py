"""A progress bar for a run: on a terminal by rich, in a notebook as a line that changes."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from covey.errors import brief, duration

if TYPE_CHECKING:
    from covey.run.plan import Plan, Progress

_WORDS = 100  # characters of what looks wrong
_WIDTH = 240  # pixels of the bar in a notebook


def progress_words(progress: Progress, *, waiting: bool = False) -> str:
    """How far a run is, in a line."""
    best = "-" if progress.best is None else f"{progress.best:.6g}"
    parts = [
        f"{progress.done}/{progress.total} done",
        f"{progress.running} running",
        f"{progress.failed} failed",
        f"best {best}",
    ]
    parts += [] if progress.spent is None else [f"{progress.spent:g} spent"]
    parts += [] if progress.left is None else [f"about {duration(progress.left)} left"]
    said = ", ".join(parts)
    said += f"; waiting for {progress.waiting_for}" if waiting else ""
    return f"{said}; {brief(progress.trouble, _WORDS)}" if progress.trouble else said


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows what is displayed."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and hasattr(running, "kernel")


@contextmanager
def with_bar(plan: Plan) -> Iterator[Plan]:
    """The plan, which shows its progress as it wants to: with ``progress`` None only if watched."""
    where: Callable[[], Any] | None = None
    if plan.progress is not False and plan.watch is None and in_notebook():
        where = _Notebook
    elif plan.progress or (plan.progress is None and plan.watch is None and _terminal()):
        where = _Bar
    if where is None:
        yield replace(plan, progress=False if plan.progress is False else None)
        return
    display = where()
    given = plan.watch

    def watch(progress: Progress) -> None:
        display.show(progress)
        if given is not None:
            given(progress)

    try:
        yield replace(plan, watch=watch, progress=True)
    finally:
        display.close()


def _terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class _Bar:
    """A bar on standard error, with what is logged meanwhile above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        words = TextColumn("{task.fields[words]}", markup=False)
        columns = (BarColumn(bar_width=24), TimeElapsedColumn(), words)
        self._bar = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
        self._task = self._bar.add_task("", total=None, words="")
        self._bar.start()

    def show(self, progress: Progress) -> None:
        """Move it."""
        done, total = progress.done, progress.total or None
        self._bar.update(self._task, completed=done, total=total, words=progress_words(progress))

    def close(self) -> None:
        """Leave it as it is."""
        self._bar.stop()


class _Notebook:
    """A bar and a line below a cell, replaced with each change."""

    def __init__(self) -> None:
        tools: Any = import_module("IPython.display")
        self._html = tools.HTML
        self._handle = tools.display(tools.HTML(""), display_id=True)
        self._last = ""

    def show(self, progress: Progress) -> None:
        """Replace it, if something has changed."""
        share = progress.done / progress.total if progress.total else 0.0
        page = (
            f'<progress value="{share:.4f}" max="1" style="width:{_WIDTH}px"></progress> '
            f"<code>{html.escape(progress_words(progress))}</code>"
        )
        if page != self._last and self._handle is not None:
            self._last = page
            self._handle.update(self._html(page))

    def close(self) -> None:
        """Leave it as it is."""
