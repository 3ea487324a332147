"""What a durable log needs of a file system: whole files, locks, flushes, and plain errors."""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from covey.errors import CoveyError, JournalError

_log = logging.getLogger("covey")
_PATIENCE = 5.0  # seconds of waiting for a lock after which it is worth a word
_LOCKS = Path("/proc/locks")
# Windows has no flock (there two writers are noticed, but not serialised) and no O_DIRECTORY.
_fcntl: ModuleType | None = import_module("fcntl") if find_spec("fcntl") else None
_DIRECTORY: int | None = getattr(os, "O_DIRECTORY", None)
# What a file system says that cannot flush a folder at all; there is then nothing to wait for.
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
_STAGED = ".new-"  # follows the name of a file until it is whole
_STALE = 60.0  # seconds after which nobody is still creating a journal
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def reporting(what: str) -> Iterator[None]:
    """Turn an error of the operating system into a JournalError that says what was tried."""
    try:
        yield
    except CoveyError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise JournalError(f"cannot {what}: {reason}.") from error


@contextmanager
def locked(fd: int, path: Path) -> Iterator[None]:
    """Hold the file's lock; the kernel frees it when the holder dies, so none goes stale.

    Whoever waits for long is told for whom, and goes on waiting.
    """
    if _fcntl is None:
        yield
        return
    try:
        if not try_lock(fd):
            with _told_after(_PATIENCE, fd, path):
                _fcntl.flock(fd, _fcntl.LOCK_EX)
        yield
    finally:
        _fcntl.flock(fd, _fcntl.LOCK_UN)


def try_lock(fd: int) -> bool:
    """Take the file's lock for as long as it is open, unless somebody else has it."""
    if _fcntl is None:
        return True
    try:
        _fcntl.flock(fd, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(fd: int) -> bool:
    """Whether somebody else has the file's lock; it is free again when this returns."""
    if _fcntl is None:
        return False
    try:
        _fcntl.flock(fd, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    _fcntl.flock(fd, _fcntl.LOCK_UN)
    return False


@contextmanager
def _told_after(seconds: float, fd: int, path: Path) -> Iterator[None]:
    """Warn of a lock, from a thread beside: to wait in the kernel is fair, to try again is not."""
    warn = threading.Timer(seconds, _warn_of_lock, (fd, path))
    warn.daemon = True
    warn.start()
    try:
        yield
    finally:
        warn.cancel()


def _warn_of_lock(fd: int, path: Path) -> None:
    _log.warning(
        "%s is locked by %s; waiting until it is free. Nothing is written meanwhile, and Ctrl-C "
        "ends the wait.",
        *(path, holder_of(fd) or "another process"),
    )


def holder_of(fd: int) -> str | None:
    """Who holds the file's lock, where the system says so (Linux)."""
    try:
        found, lines = os.fstat(fd), _LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:  # such as "4: FLOCK  ADVISORY  WRITE 4711 fd:01:1234567 0 EOF"
        fields = line.split()
        if len(fields) < 6 or fields[1] != "FLOCK" or not fields[5].endswith(f":{found.st_ino}"):
            continue
        pid = fields[4]
        try:
            name = Path("/proc", pid, "comm").read_text().strip()
        except OSError:  # it has just ended, or lives where we cannot see it
            return f"process {pid}" if int(pid) > 0 else None
        return f"process {pid} ({name})"
    return None


def open_existing(path: Path, mode: int) -> int:
    """Open a regular file; a descriptor is not inherited by other programs."""
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise JournalError(f"there is no journal at {path}.") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise JournalError(f"{path} is {kind}; a journal is a file.")
    return os.open(path, mode | _FLAGS)


def is_at(fd: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def write_once(fd: int, data: bytes) -> None:
    """Write in one call; a short write is an error, as the next one would only say why."""
    written = os.write(fd, data)
    if written != len(data):
        raise OSError(
            errno.ENOSPC, f"only {written} of {len(data)} bytes were taken; the disk may be full"
        )


def publish(path: Path, data: bytes) -> None:
    """Create a file that appears whole and durable, or not at all; never replaces one."""
    if path.is_dir():
        raise JournalError(f"{path} is a directory; name a file for the journal.")
    if not path.parent.is_dir():
        raise JournalError(f"{path.parent} is no directory; create it before the journal.")
    staged = path.with_name(f"{path.name}{_STAGED}{os.urandom(4).hex()}")
    try:
        _write_new(staged, data)
        _name(staged, path)
    finally:
        staged.unlink(missing_ok=True)
    try:
        sync_directory(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def forget_staged(path: Path) -> None:
    """Take away the names a published file was staged under, which a kill may have left.

    They lead to the very same file, and nobody looks for them: whoever published it is dead, or
    about to take them away.
    """
    for staged in path.parent.glob(f"{escape(path.name)}{_STAGED}*"):
        with suppress(FileNotFoundError):
            if os.path.samestat(staged.lstat(), path.stat()):
                staged.unlink()


def remove_staged(path: Path) -> None:
    """Remove what writers that were killed while they created a journal have left beside it.

    Only plain files of ours, a minute old: who creates one takes milliseconds, and if it was only
    asleep it finds its file gone and says so.
    """
    digits = "[0-9a-f]" * 8
    for staged in path.parent.glob(f"{escape(path.name)}{_STAGED}{digits}"):
        with suppress(OSError):
            found = staged.lstat()
            ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
            if stat.S_ISREG(found.st_mode) and ours and time.time() - found.st_mtime > _STALE:
                staged.unlink()


def keep_aside(path: Path, data: bytes) -> Path:
    """Save bytes beside a file, as ``<name>.torn-<n>`` with the first free n."""
    n = 1
    while (aside := path.with_name(f"{path.name}.torn-{n}")).exists():
        n += 1
    _write_new(aside, data)
    sync_directory(path.parent)
    return aside


def sync_directory(path: Path) -> None:
    """Make a new name durable: flushing a file does not flush the name it goes by."""
    if _DIRECTORY is None:
        return
    fd = os.open(path, os.O_RDONLY | _DIRECTORY | _FLAGS)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(fd)


def _write_new(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666)
    try:
        try:
            write_once(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _name(staged: Path, path: Path) -> None:
    """Give a finished file its name, unless the name is taken."""
    try:
        try:
            os.link(staged, path)
        except FileExistsError:
            raise
        except OSError:
            _claim(staged, path)
    except FileExistsError as error:
        raise JournalError(
            f"{path} exists already; continue it with Study.load, or choose another name."
        ) from error


def _claim(staged: Path, path: Path) -> None:
    """The same where there are no hard links (exFAT, some network drives)."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | _FLAGS, 0o666))
    try:
        staged.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
