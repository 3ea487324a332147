"""Workplace: the folder of one evaluation, the only thing its process and the runner share.

task.json    what to do, with point.pkl and the packed call   written by the runner
alive        locked for as long as the process lives; who and since when   by the process
result.json  what came of it, by rename: whole or not there   by the process
stopped      why it was told to end, if it was                by the runner
log          what it printed; the last 64 kB are kept
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from covey.run.call import python_version
from covey.run.task import Outcome, Task

TAIL = 65_536  # bytes of a log that are kept
UNWRITTEN = 75  # exit status of an evaluation that could not write its result
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Workplace:
    """One folder; every method reads or writes the files in it, and nothing is remembered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._task = folder / "task.json"
        self._alive = folder / "alive"
        self._result = folder / "result.json"
        self._stopped = folder / "stopped"

    def prepare(self, task: Task, call: Path) -> None:
        """Make the folder and write down what to do; the packed call is shared by all tasks."""
        import cloudpickle

        self.folder.mkdir(mode=0o700, parents=True)
        (self.folder / "point.pkl").write_bytes(cloudpickle.dumps(dict(task.point)))
        written = {
            "id": task.id,
            "attempt": task.attempt,
            "name": task.name,
            "seed": task.seed,
            "timeout": task.timeout,
            "call": str(call),
            "path": sys.path,
            "python": python_version(),
        }
        self._task.write_text(json.dumps(written))

    def read(self) -> Task | Outcome:
        """What to do; or, where it cannot be read here, that it is lost."""
        written = json.loads(self._task.read_text())
        name = written["name"]
        if written["python"] != python_version():
            reason = (
                f"f was packed by Python {written['python']} and this is {python_version()}; use "
                "the same on both sides"
            )
            return Outcome(name, "lost", reason=reason)
        sys.path[:] = written["path"]
        try:
            point = pickle.loads((self.folder / "point.pkl").read_bytes())
            call = pickle.loads(Path(written["call"]).read_bytes())
        except Exception as error:  # what a foreign module may raise when it is imported
            reason = f"f cannot be loaded in its process ({type(error).__name__}: {error})"
            return Outcome(name, "lost", reason=reason)
        seed, timeout = written["seed"], written["timeout"]
        return Task(written["id"], written["attempt"], name, point, seed, timeout, call)

    def lock(self) -> int:
        """A descriptor that holds the lock of ``alive``, to be inherited by the process.

        Taken before there is a process, so that there is no moment at which it runs unseen.
        """
        import fcntl

        fd = os.open(self._alive, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    def begin(self) -> None:
        """Say who is at work here, and since when."""
        who = {
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "since": time.time(),
            "clock": time.monotonic(),  # counts alike in all processes of a machine
        }
        self._alive.write_text(json.dumps(who))

    @property
    def locked(self) -> bool:
        """Whether a process is at work here."""
        import fcntl

        try:
            fd = os.open(self._alive, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    @property
    def worker(self) -> dict[str, Any] | None:
        """Who is, or was, at work here: pid, host, since, clock; None before it began."""
        try:
            who: dict[str, Any] = json.loads(self._alive.read_text())
        except (FileNotFoundError, ValueError):  # it may be about to write
            return None
        return who

    def finish(self, outcome: Outcome) -> None:
        """Write the result down, durably; while the disk is full, wait for room."""
        data = json.dumps({**asdict(outcome), "log": ""}).encode()
        while True:
            try:
                _publish(self._result, data)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                time.sleep(1.0)  # hours of work may be in it
            else:
                return

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return self._result.exists()

    @property
    def stopped(self) -> str:
        """Why it was told to end; empty if it was not."""
        try:
            return self._stopped.read_text()
        except FileNotFoundError:
            return ""

    def stop(self, why: str) -> None:
        """Write down why it is told to end, or a later runner would take the end for its own."""
        with suppress(OSError):  # a full disk is no reason to let it run
            self._stopped.write_text(why)

    def result(self) -> Outcome | None:
        """What came of it, with the end of its log; None if there is no result."""
        try:
            written: Mapping[str, Any] = json.loads(self._result.read_text())
        except FileNotFoundError:
            return None
        return Outcome(**{**written, "log": tail(self.log)})

    def trim(self) -> None:
        """Keep only the end of the log."""
        trim(self.log)


def tail(path: Path) -> str:
    """The last 64 kB of a file, empty if there is none."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - TAIL))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def trim(path: Path) -> None:
    """Keep only the last 64 kB of a file."""
    with suppress(OSError):  # a log is not worth an error
        if path.stat().st_size > TAIL:
            short = path.with_name(f"{path.name}.new")
            short.write_text(tail(path))
            short.replace(path)


def environment(task: Task) -> dict[str, str]:
    """The environment of an evaluation: ours, and which one it is."""
    seed = str(task.seed % 2**32)
    own = {"COVEY_TRIAL": str(task.id), "COVEY_SEED": str(task.seed), "PYTHONHASHSEED": seed}
    return {**os.environ, **own}


def _publish(path: Path, data: bytes) -> None:
    """Write a file that appears whole and durable."""
    new = path.with_name(f"{path.name}.new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
