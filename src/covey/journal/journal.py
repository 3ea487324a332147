"""Journal: append to the log, and acknowledge nothing before it is on disk."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

from covey.errors import JournalConflict, JournalError
from covey.journal.descriptor import Descriptor, Mutex
from covey.journal.disk import (
    is_at,
    keep_aside,
    locked,
    open_existing,
    publish,
    reporting,
    sync_directory,
    write_once,
)
from covey.journal.lines import (
    Contents,
    event_line,
    header_line,
    parse,
    parse_events,
    parse_prefix,
)
from covey.journal.network import refuse_network

_log = logging.getLogger("covey")


def read(path: str | os.PathLike[str], *, prefix: bool = False) -> Contents:
    """Read and verify a journal, without a lock and without changing anything.

    Args:
        path: where it is.
        prefix: stop at the first damaged line, and say so in ``damage``, instead of raising.

    Raises:
        JournalDamaged: Line n at byte m does not verify.
        JournalError: It is not a journal, or cannot be read.
    """
    path = Path(path).absolute()
    with reporting(f"read {path}"):
        fd = open_existing(path, os.O_RDONLY)
        try:
            with _reader(fd, 0) as stream:
                return (parse_prefix if prefix else parse)(stream, str(path))
        finally:
            os.close(fd)


class Journal:
    """One journal file, open for appending in this process.

    ``header`` and ``events`` are what was read when it was opened; ``seq``, the number of the last
    event, moves on with every append while ``events`` stays.
    """

    def __init__(self, path: Path, fd: int, contents: Contents) -> None:
        self.path = path
        self.header = contents.header
        self.events = contents.events
        self.seq = len(contents.events)
        self._file = Descriptor(fd)
        self._fd = fd
        self._good = contents.size  # the file is known, and valid, up to this byte
        self._pid = os.getpid()
        self._broken: str | None = None
        self._mutex = Mutex()  # flock does not part threads that share one descriptor
        self._busy = False
        self._held = False

    @classmethod
    def create(cls, path: str | os.PathLike[str], header: Mapping[str, Any]) -> Journal:
        """Start a new journal; it appears whole and durable, or not at all.

        Raises:
            JournalError: The path exists already, or cannot be written.
        """
        path = Path(path).absolute()
        line = header_line(header)
        with reporting(f"create {path}"):
            refuse_network(path)
            publish(path, line)
            # What others may have appended by now is left unread, and so found by our append.
            contents = parse(io.BytesIO(line), str(path))
            return cls(path, open_existing(path, os.O_RDWR), contents)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Journal:
        """Open an existing journal and read its events; a torn last line is left where it is.

        Raises:
            JournalError: It is missing, not a journal, damaged, or written by a newer covey.
        """
        path = Path(path).absolute()
        with reporting(f"open {path}"):
            refuse_network(path)
            fd = open_existing(path, os.O_RDWR)
            try:
                with locked(fd, path):  # or a write that is about to be rolled back would be read
                    contents = _contents(fd, path)
                    _flush(fd, path)
                if contents.torn:
                    _log.warning(
                        "%s ends in %d bytes that were never acknowledged; they are not read, and "
                        "the next write sets them aside",
                        path,
                        len(contents.torn),
                    )
                return cls(path, fd, contents)
            except BaseException:
                os.close(fd)
                raise

    def append(self, event: Mapping[str, Any]) -> int:
        """Write one event and return its number; once this returns, the event is on disk.

        Raises:
            JournalConflict: Somebody else has appended since; nothing was written.
            JournalError: The event could not be written.
        """
        with self._turn("write to"):
            line = event_line(self.seq + 1, event)
            self._settle()
            self._commit(line)
            return self.seq

    def catch_up(self) -> list[dict[str, Any]]:
        """The events that others have appended since this journal was read or last appended to.

        From here on they count as read: the next append follows on them.
        """
        with self._turn("read"):
            self._require_whole()
            with _reader(self._fd, self._good) as rest:
                added, size, _ = parse_events(rest, self.seq, self._good, str(self.path))
            if added:
                self._sync()  # whoever wrote them may have died before they were on disk
            self.seq, self._good = self.seq + len(added), size
            return added

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all others from writing for as long as this takes, and not only for one append.

        They wait. The kernel frees the lock if this process dies inside.
        """
        self._require_own_process()
        with self._mutex, ExitStack() as stack:
            with reporting(f"lock {self.path}"):
                self._require_usable()
                stack.enter_context(self._lock())
            self._held, before = True, self._held
            try:
                yield
            finally:
                self._held = before

    def close(self) -> None:
        """Release the file; closing twice is harmless."""
        with self._mutex:
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r}, seq={self.seq})"

    @contextmanager
    def _turn(self, what: str) -> Iterator[None]:
        """Have the file to oneself: of all threads, of all processes, of all signal handlers."""
        self._require_own_process()  # first: a child may have inherited a mutex that is held
        with self._mutex, reporting(f"{what} {self.path}"):
            self._require_usable()
            self._busy = True
            try:
                with self._lock():
                    yield
            finally:
                self._busy = False

    def _lock(self) -> AbstractContextManager[None]:
        """The lock of the file; to take it twice would be to give it back too soon."""
        return nullcontext() if self._held else locked(self._fd, self.path)

    def _require_own_process(self) -> None:
        if os.getpid() != self._pid:
            raise JournalError(
                f"{self.path}: this journal was opened by process {self._pid} and cannot be used "
                f"in its child {os.getpid()}; append in the parent, or open it again here."
            )

    def _require_usable(self) -> None:
        if self._broken is not None:
            raise JournalError(f"{self.path}: {self._broken} Open the journal again to go on.")
        if not self._file.close.alive:
            raise JournalError(f"{self.path}: this journal was closed; open it again to go on.")
        if self._busy:  # only the thread whose turn it is can come here
            raise JournalError(f"{self.path}: a signal handler cannot use it while it is in use.")

    def _settle(self) -> None:
        """Make sure that the file ends where our knowledge of it ends."""
        if self._require_whole() > self._good:
            self._resolve()

    def _require_whole(self) -> int:
        """The size of the file, if it is still ours and holds all that we know of."""
        if not is_at(self._fd, self.path):
            raise JournalError(
                f"{self.path} was deleted, moved or replaced while in use; nothing was written."
            )
        size = os.fstat(self._fd).st_size
        if size < self._good:
            raise JournalError(
                f"{self.path} has shrunk from {self._good} to {size} bytes: somebody cut off "
                "events that were acknowledged. Nothing was written; restore it from a copy."
            )
        return size

    def _resolve(self) -> None:
        """Cut off a torn line; refuse to go on where somebody else has appended events."""
        with _reader(self._fd, self._good) as rest:
            added, _, torn = parse_events(rest, self.seq, self._good, str(self.path))
        if added:
            raise JournalConflict(
                f"{self.path}: somebody else has added {len(added)} event(s) since it was read; "
                "nothing was written. Load the study again and repeat."
            )
        aside = keep_aside(self.path, torn)
        os.ftruncate(self._fd, self._good)
        _log.warning(
            "%s: cut off a torn line of %d bytes at byte %d; it was never acknowledged, and is "
            "kept in %s.",
            *(self.path, len(torn), self._good, aside.name),
        )

    def _commit(self, line: bytes) -> None:
        try:
            os.lseek(self._fd, self._good, os.SEEK_SET)
            write_once(self._fd, line)
            self._sync()
        except BaseException:  # an interrupt too: the caller will not know of the event
            self._roll_back()
            raise
        # In one step: an interrupt between the two would make the file look damaged.
        self.seq, self._good = self.seq + 1, self._good + len(line)

    def _sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError:
            # The kernel may have dropped the pages and will not say so twice: a second fsync
            # that succeeds proves nothing. The line is still cut off by the caller, or a reader
            # would take it from the cache for an event on disk.
            self._broken = "an earlier write could not be flushed to disk."
            raise

    def _roll_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._good)
        except OSError:
            self._broken = "an earlier write failed and could not be undone."


def _reader(fd: int, offset: int) -> io.BufferedReader:
    os.lseek(fd, offset, os.SEEK_SET)
    return open(fd, "rb", closefd=False)


def _contents(fd: int, path: Path) -> Contents:
    with _reader(fd, 0) as stream:
        return parse(stream, str(path))


def _flush(fd: int, path: Path) -> None:
    """Put on disk what was just read; a writer killed before its flush left it in the cache.

    It will be believed, a repeated key even acknowledged, though nothing of ours is written.
    """
    os.fsync(fd)
    sync_directory(path.resolve().parent)
