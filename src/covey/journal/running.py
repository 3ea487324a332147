"""Running: the lock that a run holds for its life, so that no second one starts beside it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from covey.errors import JournalConflict
from covey.journal.descriptor import Descriptor
from covey.journal.disk import reporting, try_lock


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


def _holder(fd: int) -> str:
    try:
        who = json.loads(os.pread(fd, 4096, 0))
        return f"process {who['pid']} on {who['host']}, since {who['since']}"
    except (ValueError, KeyError, TypeError):  # it has only just begun to write
        return "another process"
