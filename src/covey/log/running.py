"""The locks beside a journal: `running`, held by a run while it lasts, and `asking`, by an ask."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from covey.disk import (
    BESIDE,
    Descriptor,
    forget_staged,
    is_locked,
    lock_is_held,
    now,
    read_at,
    reporting,
    take_lock,
    try_lock,
    write_at,
)
from covey.errors import JournalConflict, JournalError

_LOOKS, _MOMENT = 20, 0.01  # how often a lock that is held is tried again, and after how long
_MOST = 4096  # bytes of the entry
_WORDS = 240  # characters of why a run ended
_SIGNED = b'{"pid": '  # how the entry of the lock's holder begins


def lock_path(journal: Path) -> Path:
    """The path of a journal's lock file; it may stay behind, only the lock on it counts."""
    journal = journal.resolve()  # a link and what it leads to share one lock
    return journal.with_name(f"{journal.name}.lock")


@contextmanager
def running(journal: Path, since: str = "") -> Iterator[None]:
    """Hold the right to run a journal; the kernel takes it back when the process ends.

    Args:
        journal: which.
        since: when the run began, in ISO format; empty: now.

    Raises:
        JournalConflict: Another run holds it; the message says which.
        JournalError: The lock file cannot be written safely, or the journal has several names
            (hard links), each of which would have a lock of its own.
    """
    path = lock_path(journal)
    with reporting(f"lock {path}"):
        file = Descriptor(_opened(path))
    try:
        with reporting(f"lock {path}"):
            _require_ours(path, os.fstat(file.fd), journal)
            if not _taken(file.fd):
                raise JournalConflict(
                    f"{journal} is being run by {_holder(file.fd)}. Join it (--join, or "
                    "join=True), wait for it, stop it, or use another journal."
                )
            _require_lock(path, file.fd)
            _require_one_name(journal)
            began = since or now("seconds")
            who = {"pid": os.getpid(), "host": socket.gethostname(), "since": began}
            os.ftruncate(file.fd, 0)
            write_at(file.fd, 0, json.dumps(who).encode())
        yield
    finally:
        file.close()


def turn_path(journal: Path) -> Path:
    """The path of the file whose lock is the turn to ask; it is empty, and may stay behind."""
    journal = journal.resolve()  # a link and what it leads to share one turn
    return journal.with_name(f"{journal.name}.ask")


def is_asked(journal: Path) -> bool:
    """Whether somebody has the turn to choose a batch now."""
    with suppress(OSError):  # there are no turns
        return bool(lock_is_held(turn_path(journal)))
    return False


@contextmanager
def asking(journal: Path) -> Iterator[None]:
    """Wait for a turn to choose a batch, and hold it; writers do not need it.

    The turn is a lock (`turn_path`). The kernel frees it when the process ends. Where there can be
    no such file, there are no turns: of two asks at once the one that writes first is first, and
    the other has to choose again.
    """
    path = turn_path(journal)
    try:
        file = Descriptor(os.open(path, os.O_RDONLY | os.O_CREAT | BESIDE, 0o666))
    except OSError:  # another user's folder, or a link
        yield
        return
    try:
        with reporting(f"wait for {path}"):
            take_lock(file.fd, path)
        yield
    finally:
        file.close()


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that runs a journal; 0 if it has just begun and not written its entry yet."""

    pid: int
    host: str
    since: str  # a time in ISO format
    plan: Mapping[str, Any] = field(default_factory=dict)  # what it does, by `note_plan`
    ended: str = ""  # when it ended, in ISO format; empty while it runs, and if it was killed
    why: str = ""  # it ended, by `note_end`

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        return f"process {self.pid} on {self.host}, since {self.since}"


def holder(journal: Path) -> Holder | None:
    """The process that runs a journal now, or None; the check does not disturb it."""
    try:
        fd = os.open(lock_path(journal), os.O_RDONLY | BESIDE)
    except OSError:  # there is none, it is a link, or it may not be read
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        who = _holder(fd)
        # Trying the lock holds it for a moment, in which a run that starts would be refused; so it
        # is not tried where it is known to be free.
        return None if _gone(who) or not is_locked(fd) else who
    finally:
        os.close(fd)


def last_run(journal: Path) -> Holder | None:
    """The last process that has run a journal, whether it still does or not; None if unknown."""
    try:
        fd = os.open(lock_path(journal), os.O_RDONLY | BESIDE)
    except OSError:
        return None
    try:
        who = _holder(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else Holder(0, "", "")
        return who if who.pid else None
    finally:
        os.close(fd)


def note_plan(journal: Path, plan: Mapping[str, Any]) -> None:
    """Write beside the holder's name what its run does, for whoever asks; only the holder may.

    It is no part of the study: what cannot be written, or is too long, is left out.
    """
    _note(journal, {"plan": dict(plan)})


def note_end(journal: Path, why: str) -> None:
    """Write beside the holder's name when its run ended, and why; only the holder may."""
    ended = now("seconds")
    words = " ".join(why.split())
    short = words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"
    _note(journal, {"ended": ended, "why": short})


def _note(journal: Path, more: Mapping[str, Any]) -> None:
    with suppress(OSError):
        fd = os.open(lock_path(journal), os.O_RDWR | BESIDE)
        try:
            who = _holder(fd)
            entry = {"pid": who.pid, "host": who.host, "since": who.since, "plan": dict(who.plan)}
            data = json.dumps({**entry, **more}).encode()
            if who.pid == os.getpid() and len(data) <= _MOST:
                write_at(fd, 0, data)
        finally:
            os.close(fd)


def _opened(path: Path) -> int:
    """The lock file, created if need be; a link is never followed, or its target is overwritten."""
    if path.is_symlink():
        raise _not_ours(path, "is a link")
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | BESIDE, 0o666)
    except OSError:
        if path.is_symlink():  # made just now
            raise _not_ours(path, "is a link") from None
        raise


def _taken(fd: int) -> bool:
    """Take the lock, unless a run has it: whoever looks (`holder`) has it for a moment only."""
    for _ in range(_LOOKS):
        if try_lock(fd):
            return True
        time.sleep(_MOMENT)
    return try_lock(fd)


def _require_ours(path: Path, found: os.stat_result, journal: Path) -> None:
    """Refuse a file that another user may have put there, or that has another name too."""
    if not stat.S_ISREG(found.st_mode):
        raise _not_ours(path, "is no plain file")
    if found.st_nlink > 1:
        raise _not_ours(path, f"is known by {found.st_nlink} names")
    trusted = {os.geteuid()} if hasattr(os, "geteuid") else {found.st_uid}
    if journal.exists():
        trusted.add(journal.stat().st_uid)
    if found.st_uid not in trusted:
        raise _not_ours(path, f"belongs to another user (uid {found.st_uid})")


def _require_lock(path: Path, fd: int) -> None:
    """Refuse to overwrite what no run wrote; a killed run may have left an incomplete entry."""
    start = read_at(fd, 0, len(_SIGNED))
    if not _SIGNED.startswith(start):
        raise _not_ours(path, "holds something else than a lock")


def _not_ours(path: Path, why: str) -> JournalError:
    return JournalError(
        f"{path} {why}, so it is left alone and nothing is run. A lock is a plain file that a run "
        "makes itself: move what is there away. Delete it if it is of no use."
    )


def _require_one_name(journal: Path) -> None:
    """Refuse hard links: a run by each name would hold a lock of its own beside the other."""
    journal = journal.resolve()
    if not journal.exists():
        return
    found = journal.stat()
    if found.st_nlink > 1:
        forget_staged(journal)
        found = journal.stat()
    if found.st_nlink > 1:
        raise JournalError(
            f"{journal} has {found.st_nlink} names (hard links), and two runs by two names would "
            f"not see each other. Delete the others (find / -inum {found.st_ino}), or run a copy."
        )


def _holder(fd: int) -> Holder:
    try:
        who = json.loads(read_at(fd, 0, _MOST))
        pid, host, since = int(who["pid"]), str(who["host"]), str(who["since"])
        plan = who.get("plan")
        end = str(who.get("ended", "")), str(who.get("why", ""))
        return Holder(pid, host, since, plan if isinstance(plan, dict) else {}, *end)
    except (ValueError, KeyError, TypeError):  # it has just begun to write
        return Holder(0, "", "")


def _gone(who: Holder) -> bool:
    """Whether the process is known to have ended: it was on this machine, and is no more."""
    if os.name != "posix" or who.pid <= 0 or who.host != socket.gethostname():
        return False
    try:
        os.kill(who.pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is another user's
        return False
    return False
