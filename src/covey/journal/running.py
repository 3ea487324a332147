"""Running: the lock that a run holds for its life, so that no second one starts beside it."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from covey.errors import JournalConflict
from covey.journal.descriptor import Descriptor
from covey.journal.disk import is_locked, reporting, try_lock


def lock_path(journal: Path) -> Path:
    """Where the lock of a journal is kept; the file may stay behind, only the lock counts."""
    journal = journal.resolve()  # a link and what it leads to share one lock
    return journal.with_name(f"{journal.name}.lock")


@contextmanager
def running(journal: Path) -> Iterator[None]:
    """Hold the right to run a journal; the kernel takes it back when the process ends.

    Raises:
        JournalConflict: Another run holds it; the message says which.
    """
    path = lock_path(journal)
    with reporting(f"lock {path}"):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        file = Descriptor(fd)
    try:
        with reporting(f"lock {path}"):
            if not try_lock(fd):
                raise JournalConflict(
                    f"{journal} is being run by {_holder(fd)}. Wait for it, stop it, or use "
                    "another journal."
                )
            since = datetime.now(UTC).isoformat(timespec="seconds")
            who = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(who).encode(), 0)
        yield
    finally:
        file.close()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs a journal; process 0 where it has only just begun and not signed yet."""

    pid: int
    host: str
    since: str  # a time in ISO format

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        return f"process {self.pid} on {self.host}, since {self.since}"


def holder(journal: Path) -> Holder | None:
    """Who runs a journal now; None if nobody does. Looking takes nothing from anybody."""
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(lock_path(journal), flags)
    except OSError:  # there is none, or it is not for our eyes
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        who = _holder(fd)
        # To try the lock is to hold it for a moment, in which a run that starts would be refused:
        # not where it is known to be free.
        return None if _gone(who) or not is_locked(fd) else who
    finally:
        os.close(fd)


def _holder(fd: int) -> Holder:
    try:
        who = json.loads(os.pread(fd, 4096, 0))
        return Holder(int(who["pid"]), str(who["host"]), str(who["since"]))
    except (ValueError, KeyError, TypeError):  # it has only just begun to write
        return Holder(0, "", "")


def _gone(who: Holder) -> bool:
    """Whether the process is known to have ended: it was on this machine, and is no more."""
    if os.name != "posix" or who.pid <= 0 or who.host != socket.gethostname():
        return False
    try:
        os.kill(who.pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is somebody else's
        return False
    return False
