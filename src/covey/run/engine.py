"""Engine: a courier. It carries tasks away and brings outcomes back, and decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from covey.run.task import Outcome, Task


@runtime_checkable
class Engine(Protocol):
    """Evaluates tasks somewhere.

    The log knows of a task before `submit` hears of it. Whether to try again, and what an outcome
    means, is decided by who calls.
    """

    @property
    def slots(self) -> int | None:
        """How many tasks at once; None: give it all, it queues them itself."""
        ...

    def submit(self, task: Task) -> None:
        """Start it, or put it in a queue; a task that cannot be started is lost, not an error."""
        ...

    def poll(self, seconds: float) -> list[Outcome]:
        """What ended meanwhile, waiting at most so long for the first.

        Who polls again has written down what the last poll said, which may now be forgotten.

        A task that runs longer than its ``timeout``, counted from its own start, is timed out. If
        a result of it comes all the same, that is a second outcome of the same name.
        """
        ...

    def cancel(self, names: Collection[str]) -> None:
        """Stop these; asked a second time, kill them at once. They come back as lost, by `poll`."""
        ...

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Look for tasks of an earlier life; those still known will have an outcome by `poll`."""
        ...

    def close(self) -> None:
        """Let go of everything; what runs and can be adopted later goes on running."""
        ...
