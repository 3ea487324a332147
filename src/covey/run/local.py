"""Local: each evaluation in a process of its own on this machine, found again after a crash."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from covey.errors import StrategyError
from covey.run.call import Call, pack
from covey.run.process import GRACE, Process
from covey.run.task import Outcome, Task
from covey.run.workplace import Workplace

_KEPT = ("failed", "timed-out")  # whose logs somebody may want to read
_SHORT, _LONG = 0.005, 0.1  # seconds between two looks: short at first, for quick evaluations


class LocalEngine:
    """As many processes at a time as there are slots.

    A process that is killed harms no other. With a folder, evaluations outlive the runner, and the
    next one finds them there; without, they end with it.

    Args:
        slots: how many at once.
        folder: where evaluations keep their files; None: a temporary one.
        grace: seconds between asking an evaluation to end and killing it.
    """

    def __init__(self, slots: int, folder: Path | None = None, *, grace: float = GRACE) -> None:
        if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
            raise StrategyError(f"workers must be a whole number >= 1; got {slots!r}.")
        self.slots = slots
        self._lasting = folder is not None
        self._folder = None if folder is None else folder.absolute()
        self._grace = grace
        self._open: dict[str, Process] = {}
        self._ready: list[Outcome] = []
        self._said: list[str] = []  # by the last poll; perhaps not in the log yet
        self._packed: tuple[Call, Path] | None = None

    def submit(self, task: Task) -> None:
        """Start its process."""
        try:
            place = Workplace(self._place() / task.name)
            call = self._parcel(task.call)
            tied = not self._lasting
            process = Process.start(task, place, call, self._grace, tied=tied)
        except OSError as error:
            reason = f"it could not be started: {error}"
            self._ready.append(Outcome(task.name, "lost", reason=reason))
            return
        self._open[task.name] = process

    def poll(self, seconds: float) -> list[Outcome]:
        """What ended meanwhile, waiting at most so long for the first."""
        self._forget()
        until = time.monotonic() + seconds
        pause = _SHORT
        while True:
            found, self._ready = self._ready, []
            for name, process in list(self._open.items()):
                outcomes = process.check()
                if outcomes:
                    found += outcomes
                    del self._open[name]
                    if not any(outcome.status in _KEPT for outcome in outcomes):
                        self._said.append(name)
            left = until - time.monotonic()
            if found or left <= 0.0:
                return found
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, _LONG)

    def cancel(self, names: Collection[str]) -> None:
        """Ask these to end; asked again, they are killed at once."""
        for name in names:
            if name in self._open:
                self._open[name].stop()

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Take over those that have a result or still run."""
        if self._folder is None:
            return set()
        for task in tasks:
            process = Process.adopt(task, Workplace(self._folder / task.name), self._grace)
            if process is not None:
                self._open[task.name] = process
        self._said = [name for name in self._said if name not in self._open]  # not in the log
        return {task.name for task in tasks if task.name in self._open}

    def close(self) -> None:
        """Let go; what was cancelled is killed, and what nobody could find again too."""
        ending = [p for p in self._open.values() if p.stopping or not self._lasting]
        for process in ending:
            process.stop()
            process.stop()
        for process in ending:
            process.wait(1.0)
        for process in self._open.values():
            process.leave()
        self._open.clear()
        if not self._lasting and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _forget(self) -> None:
        """Remove the folders of what the last poll said: who polls again has written it down.

        Not in `close`, which also comes when the log has failed.
        """
        for name in self._said:
            if self._folder is not None:
                shutil.rmtree(self._folder / name, ignore_errors=True)
        self._said.clear()

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="covey-"))
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return self._folder

    def _parcel(self, call: Call) -> Path:
        """The packed call, written once and shared."""
        if self._packed is None or self._packed[0] is not call or not self._packed[1].exists():
            data = pack(call)
            path = self._place() / f"call-{hashlib.sha256(data).hexdigest()[:16]}.pkl"
            new = path.with_name(f"{path.name}.new")
            new.write_bytes(data)
            new.replace(path)
            self._packed = call, path
        return self._packed[1]
