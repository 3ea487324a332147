"""`LocalEngine`: evaluations in processes (`Process`) of this machine, found after a crash."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from covey.errors import StrategyError, WorkFolderError, is_whole
from covey.run.process import GRACE, Process
from covey.run.reports import Shown
from covey.run.task import Call, Outcome, Task, pack
from covey.run.workdir import Workdir, check_private, make_temporary, write_private

_log = logging.getLogger("covey")

_SHORT, _LONG = 0.005, 0.1  # seconds between polls: short at first, for quick evaluations


class LocalEngine:
    """Runs evaluations in processes of this machine, as many at a time as there are slots.

    A process that is killed harms no other. With a folder, evaluations outlive the runner, and the
    next one finds them there; without, they end with it.

    Args:
        slots: how many at once.
        folder: where evaluations keep their files; None: a temporary one.
        grace: seconds between asking an evaluation to end and killing it.
    """

    def __init__(self, slots: int, folder: Path | None = None, *, grace: float = GRACE) -> None:
        if not is_whole(slots, 1):
            raise StrategyError(f"workers must be a whole number >= 1; got {slots!r}.")
        self.slots = slots
        self._lasting = folder is not None
        self._folder = None if folder is None else folder.absolute()
        self._grace = grace
        self._held: int | None = None  # descriptor that holds the lock of a temporary folder
        self._open: dict[str, Process] = {}
        self._ready: list[Outcome] = []
        self._said: list[tuple[str, int, Shown]] = []  # reports of those that have ended
        self._reported: list[str] = []  # by the last poll, as names; perhaps not in the log yet
        self._packed: tuple[Call, Path] | None = None

    def submit(self, task: Task) -> None:
        """Start its process.

        Raises:
            StrategyError: Its name is not one that `name_of` gives.
            WorkFolderError: The folder is not ours alone.
        """
        if not task.well_named:
            raise StrategyError(f"a task is named by covey.run.task.name_of; got {task.name!r}.")
        try:
            place = Workdir(self._place() / task.name)
            call = self._payload(task.call)
            tied = not self._lasting
            process = Process.start(task, place, call, self._grace, tied=tied)
        except WorkFolderError:
            raise
        except OSError as error:
            reason = f"it could not be started: {error}"
            self._ready.append(Outcome(task.name, "lost", reason=reason))
            return
        self._open[task.name] = process

    def poll(self, seconds: float) -> list[Outcome]:
        """Outcomes of tasks that have ended, waiting at most ``seconds`` for the first."""
        self._forget()
        until = time.monotonic() + seconds
        pause = _SHORT
        while True:
            found, self._ready = self._ready, []
            for name, process in list(self._open.items()):
                outcomes = process.check()
                if outcomes:
                    self._said += [(name, *said) for said in process.reports()]
                    found += [self._with_its_log(outcome, process) for outcome in outcomes]
                    del self._open[name]
                    if not any(_is_kept(outcome, process) for outcome in outcomes):
                        self._reported.append(name)
            left = until - time.monotonic()
            if found or left <= 0.0:
                return found
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, _LONG)

    def reports(self) -> list[tuple[str, int, Shown]]:
        """Intermediate values since the last call: name, step and value."""
        said, self._said = self._said, []
        for name, process in self._open.items():
            said += [(name, *found) for found in process.reports()]
        return said

    def cancel(self, names: Collection[str]) -> None:
        """Ask these to end; asked again, they are killed at once.

        One that has computed its result and only waits for disk space is left alone: the next
        run finds it.
        """
        for name in names:
            process = self._open.get(name)
            if process is not None and not (self._lasting and process.computed):
                process.stop()

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Take over the tasks that have a result or still run.

        Raises:
            WorkFolderError: The folder is not ours alone, or cannot be read.
        """
        if not self._lasting or self._folder is None or not self._folder.exists():
            return set()
        check_private(self._folder)
        for task in tasks:
            try:
                process = self._found(task)
            except OSError as error:
                raise WorkFolderError(f"{self._folder} cannot be read: {error}.") from error
            if process is not None:
                self._open[task.name] = process
        # What is adopted has no outcome in the log yet: it must not be forgotten.
        self._reported = [name for name in self._reported if name not in self._open]
        return {task.name for task in tasks if task.name in self._open}

    def tidy(self, told: Collection[str], *, calls: bool = True) -> None:
        """Remove what runs have left: folders of attempts whose trials are told, and packed calls.

        Folders in which an evaluation runs stay, and the packed calls with them.
        """
        if not self._lasting or self._folder is None or not self._folder.is_dir():
            return
        check_private(self._folder)
        idle = True
        for path in self._folder.iterdir():
            if _is_busy(path):
                idle = False
            elif path.name in told:
                shutil.rmtree(path, ignore_errors=True)  # follows no links
        for payload in self._folder.glob("call-*.pkl*") if idle and calls else ():
            payload.unlink(missing_ok=True)

    def busy(self) -> set[str]:
        """The names of all evaluations that run in its folder, whoever started them."""
        if not self._lasting or self._folder is None or not self._folder.is_dir():
            return set()
        return {path.name for path in self._folder.iterdir() if _is_busy(path)}

    def is_here(self, name: str) -> bool:
        """Whether an evaluation that was found runs on this machine, as far as it has said."""
        who = None if self._folder is None else Workdir(self._folder / name).worker
        return who is None or who["host"] == os.uname().nodename

    def close(self) -> None:
        """Stop watching; kill what was cancelled, and what no later run could find again."""
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
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _with_its_log(self, outcome: Outcome, process: Process) -> Outcome:
        """The outcome, naming the log file of a crash, which is kept."""
        crashed = outcome.status in ("killed", "lost")
        if not self._lasting or not crashed or not _is_kept(outcome, process):
            return outcome
        return replace(outcome, reason=f"{outcome.reason}; its log is {process.log}")

    def _forget(self) -> None:
        """Remove the folders of reported outcomes: the caller has logged them before polling again.

        Not done in `close`, which is also called when the log has failed.
        """
        for name in self._reported:
            if self._folder is not None:
                shutil.rmtree(self._folder / name, ignore_errors=True)
        self._reported.clear()

    def _found(self, task: Task) -> Process | None:
        """The process of an earlier run's task; None for a name of another form."""
        if self._folder is None or not task.well_named:
            _log.error(
                "the log names an evaluation of trial %d %r, which is no name that Covey gives; it "
                "is not looked for, and begins again. Check where this log comes from.",
                *(task.id, task.name),
            )
            return None
        place = Workdir(self._folder / task.name)
        try:
            check_private(place.folder)
        except FileNotFoundError:
            return None
        except WorkFolderError as error:
            _log.error("%s The folder is not opened, and trial %d begins again.", error, task.id)
            return None
        return Process.adopt(task, place, self._grace)

    def _place(self) -> Path:
        if self._folder is None:
            self._folder, self._held = make_temporary()
        with suppress(FileExistsError):  # a file in its place is refused below
            self._folder.mkdir(mode=0o700, exist_ok=True)
        check_private(self._folder)
        return self._folder

    def _payload(self, call: Call) -> Path:
        """The file of the packed call, written once for all tasks."""
        if self._packed is None or self._packed[0] is not call or not self._packed[1].exists():
            data = pack(call)
            path = self._place() / f"call-{hashlib.sha256(data).hexdigest()[:16]}.pkl"
            new = path.with_name(f"{path.name}.new")
            write_private(new, data)
            new.replace(path)
            self._packed = call, path
        return self._packed[1]


def _is_kept(outcome: Outcome, process: Process) -> bool:
    """Whether to keep its log: if it failed, was killed or was lost, and was not cancelled."""
    if outcome.status in ("killed", "lost"):
        return bool(outcome.log.strip()) and not process.cancelled
    return outcome.status != "succeeded"


def _is_busy(path: Path) -> bool:
    """Whether an evaluation runs in this folder; True if that cannot be told."""
    try:
        return path.is_dir() and Workdir(path).locked
    except OSError:
        return True
