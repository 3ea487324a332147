"""File system primitives of logs and evaluations: whole files, locks, flushes, clear errors.

Also `Descriptor` and `Mutex`, which are safe across a fork, the refusal of network drives, and
`write_whole`, which replaces a file in one step.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from glob import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from covey.errors import CoveyError, JournalError

_log = logging.getLogger("covey")
_PATIENCE = 5.0  # seconds of waiting for a lock before a warning
_LOCKS = Path("/proc/locks")
# Windows has no flock but locks of a range of bytes, and no O_DIRECTORY. Where there are neither
# locks, two writers are noticed, but not serialised.
_fcntl: ModuleType | None = import_module("fcntl") if find_spec("fcntl") else None
_msvcrt: ModuleType | None = import_module("msvcrt") if find_spec("msvcrt") else None
_BYTE = 2**31 - 2  # what Windows locks, beyond the end: nobody can read what is locked there
_POLL = 0.02  # seconds between two tries there, where nothing waits in the kernel
_DIRECTORY: int | None = getattr(os, "O_DIRECTORY", None)
# Errors of file systems that cannot flush a folder at all.
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
_STAGED = ".new-"  # suffix of a file's name until it is complete
_STALE = 60.0  # seconds after which no writer is still creating a journal
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Of a file whose name another user may have taken: no link is followed, no pipe is waited for.
BESIDE = _FLAGS | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


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

    After a long wait a warning names the holder, and the wait goes on.
    """
    try:
        take_lock(fd, path)
        yield
    finally:
        unlock(fd)


def take_lock(fd: int, path: Path) -> None:
    """Wait for the file's lock, and hold it for as long as the file is open."""
    if try_lock(fd):
        return
    with warning_late(lambda: _warn_of_lock(fd, path)):
        if _fcntl is not None:
            _fcntl.flock(fd, _fcntl.LOCK_EX)
            return
        while not try_lock(fd):
            time.sleep(_POLL)


def try_lock(fd: int) -> bool:
    """Take the file's lock for as long as it is open, unless another process has it."""
    try:
        if _fcntl is not None:
            _fcntl.flock(fd, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        elif _msvcrt is not None:
            os.lseek(fd, _BYTE, os.SEEK_SET)
            _msvcrt.locking(fd, _msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # the second is what Windows says
        return False
    return True


def unlock(fd: int) -> None:
    """Free the file's lock, if it is held."""
    if _fcntl is not None:
        _fcntl.flock(fd, _fcntl.LOCK_UN)
    elif _msvcrt is not None:
        os.lseek(fd, _BYTE, os.SEEK_SET)
        with suppress(PermissionError):  # it was not locked
            _msvcrt.locking(fd, _msvcrt.LK_UNLCK, 1)


def is_locked(fd: int) -> bool:
    """Whether another process has the file's lock; this call keeps none."""
    try:
        if _fcntl is not None:
            _fcntl.flock(fd, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
        elif not try_lock(fd):  # Windows cannot share a lock
            return True
    except BlockingIOError:
        return True
    unlock(fd)
    return False


def hold(path: Path) -> int:
    """Return a descriptor that holds the lock of a file of ours, for as long as it is open."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | BESIDE, 0o600)
    if try_lock(fd):
        return fd
    os.close(fd)
    raise OSError(errno.EAGAIN, "another process has the lock", str(path))


def lock_is_held(path: Path) -> bool | None:
    """Whether another process has the lock of a file; None if there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | BESIDE)
    except FileNotFoundError:
        return None
    try:
        return is_locked(fd)
    finally:
        os.close(fd)


@contextmanager
def warning_late(warn: Callable[[], None]) -> Iterator[None]:
    """Warn of a long wait from a second thread: waiting in the kernel is fair, polling is not."""
    timer = threading.Timer(_PATIENCE, warn)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _warn_of_lock(fd: int, path: Path) -> None:
    _log.warning(
        "%s is locked by %s; waiting until it is free. Nothing is written meanwhile, and Ctrl-C "
        "ends the wait.",
        *(path, holder_of(fd) or "another process"),
    )


def holder_of(fd: int) -> str | None:
    """The process that holds the file's lock, where the system tells (Linux)."""
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
        except OSError:  # it has just ended, or is not visible here
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


def write_at(fd: int, offset: int, data: bytes) -> None:
    """Write at a place in an open file; Windows has no `os.pwrite`."""
    os.lseek(fd, offset, os.SEEK_SET)
    os.write(fd, data)


def is_at(fd: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def write_once(fd: int, data: bytes) -> None:
    """Write in one call; a short write is an error."""
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
    """Remove the names a published file was staged under, which a killed writer may have left.

    They are links to the same file that nobody reads: the writer is dead, or about to remove them.
    """
    for staged in path.parent.glob(f"{escape(path.name)}{_STAGED}*"):
        with suppress(FileNotFoundError):
            if os.path.samestat(staged.lstat(), path.stat()):
                staged.unlink()


def remove_staged(path: Path) -> None:
    """Remove what writers that were killed while they created a journal have left beside it.

    Only plain files of ours, a minute old: creating one takes milliseconds, and a writer that was
    suspended finds its file gone and reports that.
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
    """Flush a folder, to make a new name durable: flushing a file does not flush its name."""
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
    """Give a finished file its name, unless that exists."""
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
    """As `_name`, where there are no hard links (exFAT, some network drives)."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | _FLAGS, 0o666))
    try:
        staged.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


# Open files and locks, which a forked child must not keep.


class Descriptor:
    """An open file; closed by ``close``, when it is garbage-collected, and in every forked child.

    A lock lives as long as any copy of the descriptor it was taken on. A worker that was forked
    from a study would keep the journal locked after the study was killed.
    """

    __slots__ = ("__weakref__", "close", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.close = weakref.finalize(self, os.close, fd)  # a second call does nothing
        _open.add(self)


_open: weakref.WeakSet[Descriptor] = weakref.WeakSet()


def _close_all() -> None:
    for descriptor in list(_open):
        descriptor.close()


class Mutex:
    """A reentrant lock between threads; free in every forked child.

    There the thread that held it does not exist, and would never release it.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self.renew()
        _mutexes.add(self)

    def renew(self) -> None:
        """Make it free, whoever holds it."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # in a child that was forked while it was held
            self._lock.release()


_mutexes: weakref.WeakSet[Mutex] = weakref.WeakSet()


def _renew_all() -> None:
    for mutex in list(_mutexes):
        mutex.renew()


_at_fork: Callable[..., None] | None = getattr(os, "register_at_fork", None)
if _at_fork is not None:  # Windows does not fork
    _at_fork(after_in_child=_close_all)
    _at_fork(after_in_child=_renew_all)


# Network drives, where locks and appends of several machines cannot be relied on.

FORCE = "COVEY_NETWORK_JOURNAL"
"""Environment variable that, set to 1, allows a journal on a network drive."""

# Lustre, GPFS, BeeGFS and CephFS are not among them: they keep POSIX locks and appends across
# machines (Lustre when it is mounted with `flock`).
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "davfs")
_NETWORK_FUSE = ("sshfs", "s3fs", "gcsfuse", "rclone", "davfs2", "curlftpfs", "smbnetfs")
_MOUNTS = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # blanks, tabs, newlines and backslashes of a path


def refuse_network(path: Path) -> None:
    """Raise JournalError if the path lies on a network drive, unless that is forced."""
    if os.environ.get(FORCE) == "1":
        return
    kind = drive_kind(path)
    if kind in _NETWORK or kind.removeprefix("fuse.") in _NETWORK_FUSE:
        raise JournalError(
            f"{path} lies on a network drive ({kind}), where locks and appends of several machines "
            f"cannot be relied on. Put the journal on a local disk, or set {FORCE}=1 if only one "
            "machine at a time will ever write to it."
        )


def drive_kind(path: Path) -> str:
    """The type of the file system a path lies on; empty where the system does not say."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return ""
    return _kind_in(mounts, path.resolve())


def _kind_in(mounts: Iterable[str], path: Path) -> str:
    """The type of the deepest mount that holds the path; the last of several at one place."""
    found, depth = "", -1
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[1]))
        if path.is_relative_to(place) and len(place.parts) >= depth:
            found, depth = fields[2], len(place.parts)
    return found


# Files for people to read, written as a whole or not at all.


def write_whole(path: Path, text: str | bytes) -> None:
    """Write a file so that a reader finds the old text or the new one, never a part.

    A link stays a link, and its target is replaced; a file keeps its mode. A device or a pipe is
    written into, not replaced.

    Raises:
        OSError: It could not be written; what was there is as it was.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as sink:
            sink.write(data)
        return
    place = Path(os.path.realpath(path))
    # An unpredictable name that must be free: no link is ever written through.
    draft = place.with_name(f".covey-{os.urandom(8).hex()}.tmp")
    file = draft.open("xb")
    try:
        with file:
            if mode is not None:
                draft.chmod(stat.S_IMODE(mode) & 0o777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)  # once it is closed: Windows renames no open file
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


# Times, as journals and locks hold them.


def now(unit: str = "milliseconds") -> str:
    """The time as text, in UTC."""
    return datetime.now(UTC).isoformat(timespec=unit)


def time_of(said: object) -> datetime | None:
    """The time that a line says; None if it is none, as another program may have written it.

    >>> time_of("2026-11-15T12:47:55.433+00:00").hour, time_of("noon"), time_of(None)
    (12, None, None)
    """
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None
    if found is None or found.tzinfo is UTC:
        return found
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
