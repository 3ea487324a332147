"""`Workdir`: the folder of one evaluation, all that its process and the runner share.

task.json    what to do, with point.pkl and the packed call   written by the runner
alive        locked while the process lives; its pid, host and start       by the process
computing    locked until f has returned: what follows does not count for its time limit
result.json  the outcome, by rename: whole or not there       by the process
stopped      why it was told to end, if it was                by the runner
log          what it printed; its runner keeps the last 64 kB, and cuts it when it has twice that

Also private files, and start times and groups of processes.
Unpickling runs code, so the folder, and those above it that we made, belong to one user alone.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from covey.disk import BESIDE, hold, lock_is_held, sync_directory, write_whole
from covey.errors import WorkFolderError
from covey.run.task import Outcome, Task, python_version

TAIL = 65_536  # bytes of a log that are kept
UNWRITTEN = 75  # exit status of an evaluation that could not write its result
_SHORT = (errno.EMFILE, errno.ENFILE)  # too few descriptors, for the moment
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WHY = 16  # bytes reserved in `stopped`, so that filling it in needs no disk space
_OWNER = "owner"  # a file in a temporary folder, locked while its run lives
_NEW = 60.0  # seconds within which a living run has locked its folder


class Workdir:
    """The folder of one evaluation; methods read and write its files and keep no state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._task = folder / "task.json"
        self._alive = folder / "alive"
        self._computing = folder / "computing"
        self._result = folder / "result.json"
        self._stopped = folder / "stopped"

    def prepare(self, task: Task, call: Path) -> None:
        """Make the folder and write the task; the packed call is shared by all tasks."""
        import cloudpickle

        self.folder.mkdir(mode=0o700, parents=True)
        write_private(self.folder / "point.pkl", cloudpickle.dumps(dict(task.point)))
        written = {
            "id": task.id,
            "attempt": task.attempt,
            "name": task.name,
            "seed": task.seed,
            "timeout": task.timeout,
            "slot": task.slot,
            "call": str(call),
            "path": sys.path,
            "python": python_version(),
        }
        write_private(self._task, json.dumps(written).encode())
        write_private(self._stopped, b" " * _WHY)

    def read(self) -> Task | Outcome:
        """The task; or the outcome ``lost`` if it cannot be read here.

        Raises:
            WorkFolderError: Other users can write here, and unpickling would run their code.
        """
        check_private(self.folder)
        written = json.loads(read_private(self._task))
        name = written["name"]
        if written["python"] != python_version():
            reason = (
                f"f was packed by Python {written['python']} and this is {python_version()}; use "
                "the same on both sides"
            )
            return Outcome(name, "lost", reason=reason)
        sys.path[:] = written["path"]
        try:
            point = pickle.loads(read_private(self.folder / "point.pkl"))
            call = pickle.loads(read_private(Path(written["call"])))
        except WorkFolderError:
            raise
        except Exception as error:  # importing a module may raise anything
            reason = f"f cannot be loaded in its process ({type(error).__name__}: {error})"
            return Outcome(name, "lost", reason=reason)
        seed, timeout, slot = written["seed"], written["timeout"], written["slot"]
        return Task(written["id"], written["attempt"], name, point, seed, timeout, call, slot)

    def lock(self) -> tuple[int, int]:
        """Descriptors that hold the locks of ``alive`` and ``computing``, for the process.

        Taken before the process starts, so that it is never running without them.
        """
        alive = hold(self._alive)
        try:
            return alive, hold(self._computing)
        except BaseException:
            os.close(alive)
            raise

    def begin(self) -> None:
        """Write pid, host and start of this process; while the disk is full, wait for space."""
        who = {
            "pid": os.getpid(),
            "started": start_time(os.getpid()),
            "host": os.uname().nodename,
        }
        when_there_is_room(
            lambda: self._alive.write_text(
                # The monotonic clock counts alike in all processes of a machine.
                json.dumps({**who, "since": time.time(), "clock": time.monotonic()})
            )
        )

    @property
    def locked(self) -> bool:
        """Whether an evaluation runs here."""
        return lock_is_held(self._alive) or False

    @property
    def computed(self) -> bool:
        """Whether f has returned, although there may be no disk space for its result yet."""
        return lock_is_held(self._computing) is False

    @property
    def worker(self) -> dict[str, Any] | None:
        """The process that runs, or ran, here: pid, host, since, clock; None before it began."""
        try:
            who: dict[str, Any] = json.loads(self._alive.read_text())
        except (FileNotFoundError, ValueError):  # it may be about to write
            return None
        return who

    def finish(self, outcome: Outcome) -> None:
        """Write the result durably; while the disk is full, wait for space."""
        data = json.dumps({**asdict(outcome), "log": ""}).encode()

        def publish() -> None:
            write_whole(self._result, data)
            sync_directory(self.folder)

        when_there_is_room(publish)  # hours of work may be in it

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return self._result.exists()

    @property
    def stopped(self) -> str:
        """Why it was told to end; empty if it was not."""
        try:
            return self._stopped.read_text().strip("\0 ")
        except FileNotFoundError:
            return ""

    def stop(self, why: str) -> None:
        """Write down why it is told to end, for a later runner to know."""
        with suppress(OSError):  # it is stopped even if the disk is full
            fd = os.open(self._stopped, os.O_WRONLY | os.O_CREAT | BESIDE, 0o600)
            try:
                os.write(fd, why.encode().ljust(_WHY))
            finally:
                os.close(fd)

    def result(self) -> Outcome | None:
        """The outcome, with the end of its log; None if there is no result."""
        try:
            written: Mapping[str, Any] = json.loads(self._result.read_text())
        except FileNotFoundError:
            return None
        return Outcome(**{**written, "log": tail(self.log)})


def tail(path: Path) -> str:
    """The last 64 kB of a file, empty if there is none."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - TAIL))
            return stream.read().decode(errors="replace")
    except OSError as error:
        if error.errno in _SHORT:  # a later call may succeed
            raise
        return ""


def trim(path: Path, longest: int = TAIL) -> None:
    """Keep only the last 64 kB of a file that is longer than this.

    In place, for which a full disk has room; what is written at that moment may be left out.
    """
    with suppress(OSError):  # a log is not worth an error
        if path.stat().st_size <= longest:
            return
        with path.open("r+b") as stream:
            stream.seek(-TAIL, os.SEEK_END)
            end = stream.read(TAIL)
            stream.seek(0)
            stream.write(end)
            stream.truncate()


def make_temporary() -> tuple[Path, int]:
    """A temporary folder for evaluations, and the descriptor that holds its lock.

    Those of killed runs are removed first: ours, not locked, of this machine.
    """
    import tempfile

    for old in Path(tempfile.gettempdir()).glob("covey-*"):
        with suppress(OSError):  # another user's, or another process removes it
            check_private(old)
            owner = old / _OWNER
            new = time.time() - owner.lstat().st_mtime < _NEW
            here = owner.read_text() == os.uname().nodename
            if here and not new and lock_is_held(owner) is False:
                remove_temporary(old, others=True)
    folder = Path(tempfile.mkdtemp(prefix="covey-"))
    fd = hold(folder / _OWNER)
    os.write(fd, os.uname().nodename.encode())
    return folder, fd


def remove_temporary(folder: Path, *, others: bool = False) -> None:
    """Remove a temporary folder; unless ``others``, only if no evaluation has files in it."""
    if others:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError):
        if not any(path.is_dir() for path in folder.iterdir()):
            for path in (folder / _OWNER, *folder.glob("call*.pkl")):
                path.unlink(missing_ok=True)
            folder.rmdir()


def check_private(folder: Path) -> None:
    """Refuse a folder that other users may have written to.

    Raises:
        WorkFolderError: It is no folder, a link, another user's, or open to other users.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        what = "a link" if stat.S_ISLNK(found.st_mode) else "no folder"
    elif found.st_uid != os.geteuid():
        what = f"of user {found.st_uid}, and this is user {os.geteuid()}"
    elif found.st_mode & 0o077:
        what = f"open to others (mode {stat.S_IMODE(found.st_mode):o})"
    else:
        return
    raise WorkFolderError(
        f"{folder} is {what}. Evaluations keep pickles there, which are code, so it has to be a "
        "folder of your own with mode 700. Look who made it and remove it, or keep the journal "
        "in a folder, and on a disk, where only you can write."
    )


def write_private(path: Path, data: bytes) -> None:
    """Write a file that no other user can read or change."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BESIDE, 0o600)
    with open(fd, "wb") as stream:  # noqa: PTH123 - a descriptor, which Path cannot open
        stream.write(data)


def read_private(path: Path) -> bytes:
    """The content of a file that no other user can have changed.

    Checked on the open file, not by its name, which may lead elsewhere a moment later.

    Raises:
        WorkFolderError: It is another user's, others can write to it, or it is no plain file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | BESIDE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WorkFolderError(f"{path} is a link, and not followed.") from error
        raise
    with open(fd, "rb") as stream:  # noqa: PTH123 - a descriptor, which Path cannot open
        found = os.fstat(fd)
        plain = stat.S_ISREG(found.st_mode)
        if not plain or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise WorkFolderError(
                f"{path} is no file of your own that only you can write (user {found.st_uid}, mode "
                f"{stat.S_IMODE(found.st_mode):o}); it is code, and was not run. Look who made it, "
                "and remove it."
            )
        return stream.read()


def start_time(pid: int) -> str | None:
    """When a process began, as its system counts; None if there is none, or that is unknown.

    With the pid it identifies a process: a pid alone is given to another one later.
    """
    try:
        # The name, in brackets, may hold anything; what follows it are fields 3 and on.
        _, _, fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
        return fields.split()[19]
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None if Path("/proc/self/stat").exists() else _start_time_by_ps(pid)


def group_lives(leader: int) -> bool:
    """Whether a process of this group is alive; one that is dead and not waited for is not."""
    try:
        os.killpg(leader, 0)  # only asks
    except (ProcessLookupError, PermissionError):
        return False
    if not Path("/proc/self/stat").exists():
        return True
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            _, _, fields = entry.read_text(errors="replace").rpartition(")")
            state, _, group = fields.split()[:3]
            if int(group) == leader and state not in "ZX":
                return True
    return False


def _start_time_by_ps(pid: int) -> str | None:
    """For systems without /proc, such as macOS."""
    import subprocess

    words = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=5.0)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None


def when_there_is_room(write: Callable[[], object]) -> None:
    """Call ``write``; while the disk is full, wait and try again."""
    while True:
        try:
            write()
        except OSError as error:
            if error.errno not in _FULL:
                raise
            time.sleep(1.0)
        else:
            return


def environment(task: Task) -> dict[str, str]:
    """The environment of an evaluation: ours, with its trial, seed, slot and GPU."""
    seed = str(task.seed % 2**32)
    own = {"COVEY_TRIAL": str(task.id), "COVEY_SEED": str(task.seed), "PYTHONHASHSEED": seed}
    own |= {} if task.slot is None else {"COVEY_SLOT": str(task.slot)}
    own |= {} if task.gpu is None else {"CUDA_VISIBLE_DEVICES": task.gpu}
    return {**os.environ, **own}
