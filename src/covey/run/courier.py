"""Courier: one evaluation on a worker of a cluster, in a process of its own there.

In a process, so that it can be stopped: the threads of a Dask worker cannot, and a worker of Ray
that is killed takes its log with it. If the worker dies, the process dies too.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from covey.run.call import Call, pack
from covey.run.process import Process
from covey.run.task import Outcome, Task
from covey.run.workplace import Workplace, write_private

_SHORT, _LONG = 0.005, 0.1  # seconds between two looks


class Parcels:
    """Packs a call once, however many tasks have it."""

    def __init__(self) -> None:
        self._last: tuple[Call, bytes] | None = None

    def of(self, call: Call) -> bytes:
        """The packed call."""
        if self._last is None or self._last[0] is not call:
            self._last = call, pack(call)
        return self._last[1]


class _Absent:
    """Stands for a call that travels apart from its task."""

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        return Outcome(task.name, "lost", reason=f"there is no call in {folder}")


def labelled(task: Task) -> bytes:
    """A task without its call."""
    import cloudpickle

    return bytes(cloudpickle.dumps(replace(task, call=_Absent())))


def deliver(
    label: bytes, parcel: bytes, grace: float, wanted: Callable[[], bool] = lambda: True
) -> list[dict[str, Any]]:
    """Evaluate on this machine; its outcomes as plain dicts.

    Args:
        label: the task, by `labelled`.
        parcel: the call, by `Parcels`.
        grace: seconds between asking it to end and killing it.
        wanted: whether anybody still waits for it.
    """
    task: Task = pickle.loads(label)
    with tempfile.TemporaryDirectory(prefix="covey-", ignore_cleanup_errors=True) as folder:
        call = Path(folder) / "call.pkl"
        write_private(call, parcel)
        place = Workplace(Path(folder) / "work")
        process = Process.start(task, place, call, grace, tied=True)
        try:
            return _attended(process, wanted)
        except BaseException:  # Ray stops a task by raising in it
            process.stop()
            process.wait(grace)
            process.stop()
            process.wait(1.0)
            raise


def _attended(process: Process, wanted: Callable[[], bool]) -> list[dict[str, Any]]:
    pause = _SHORT
    while True:
        outcomes = process.check()
        if outcomes:
            return [asdict(outcome) for outcome in outcomes]
        if not process.stopping and not wanted():
            process.stop()
        time.sleep(pause)
        pause = min(1.5 * pause, _LONG)
