"""`Journal`: the log of a study as a file; an event is on disk before `append` returns.

Also the line format with checksums, `read` without a lock, and `repair`.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from covey.disk import (
    Descriptor,
    Mutex,
    is_at,
    keep_aside,
    locked,
    now,
    open_existing,
    publish,
    refuse_network,
    reporting,
    sync_directory,
    write_once,
)
from covey.errors import JournalConflict, JournalDamaged, JournalError
from covey.log.running import Runs, asking, running

# The format of a journal: lines with checksums, written, read and verified.
#
# The first line is a header, ``{"covey":1,"min_reader":1,...,"created":...,"crc":"xxxxxxxx"}``;
# each further line is an event, ``{"seq":1,"at":...,...,"crc":"xxxxxxxx"}``, numbered without
# gaps. The crc is the CRC-32 of the line's bytes before ``,"crc"``; the newline is the commit
# mark. Lines are ASCII (other letters are escaped), so that no editor can re-encode a line and
# break its checksum.
#
# What follows the last newline is a torn line: it was never acknowledged, and is no part of the
# log. Anything else that does not verify is damage, and is reported by line and byte.

FORMAT = 1  # what this covey writes, and the newest it can read

_log = logging.getLogger("covey")
_MAGIC = b'{"covey":'
_SEAL = b',"crc":"%08x"}\n'
_SEAL_SIZE = len(_SEAL % 0)
_read = json.JSONDecoder().decode  # json.loads would detect the encoding of each line first
_SEALED = re.compile(rb',"crc":"[0-9a-f]{8}"\}')


@dataclass(frozen=True, slots=True)
class Where:
    """A line of a journal."""

    file: str
    line: int
    offset: int  # its first byte


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal file holds: a header, events, and perhaps a torn line."""

    header: dict[str, Any]
    events: list[dict[str, Any]]
    size: int  # bytes up to and including the last good newline
    torn: bytes  # a line without a newline that follows it
    damage: JournalDamaged | None = None  # the damage at which reading stopped, if there is some


def header_line(fields: Mapping[str, Any]) -> bytes:
    """The first line of a new journal."""
    _refuse_reserved(fields, ("covey", "min_reader", "created", "crc"))
    return _seal({"covey": FORMAT, "min_reader": FORMAT, **fields, "created": now()})


def event_line(seq: int, event: Mapping[str, Any]) -> bytes:
    """The line of event number ``seq``; its time is now, unless the event says ``at``."""
    _refuse_reserved(event, ("seq", "crc"))
    return _seal({"seq": seq, "at": now(), **event})


def parse_prefix(stream: BinaryIO, name: str) -> Contents:
    """Verify a journal up to its end, or to the first line that does not verify."""
    contents = _header(stream, name)
    events, size = contents.events, contents.size
    for line in stream:
        try:
            added, size, torn = parse_events([line], len(events), size, name)
        except JournalDamaged as damage:
            return Contents(contents.header, events, size, b"", damage)
        events += added
        if torn:
            return Contents(contents.header, events, size, torn)
    return Contents(contents.header, events, size, b"")


def parse(stream: BinaryIO, name: str) -> Contents:
    """Verify a whole journal; ``name`` is what errors call it."""
    contents = _header(stream, name)
    return Contents(contents.header, *parse_events(stream, 0, contents.size, name))


def _header(stream: BinaryIO, name: str) -> Contents:
    start = stream.read(len(_MAGIC))
    if not start:
        raise JournalError(f"{name} is empty, so it is no journal; delete it to start a new one.")
    if not _MAGIC.startswith(start):
        raise JournalError(f"{name} is not a covey journal: it starts with {start!r}.")
    line = start + stream.readline()
    if not line.endswith(b"\n"):
        raise JournalError(
            f"{name} has no complete header: it was cut short while it was created, and holds no "
            "event. Delete it to start a new one."
        )
    _refuse_newer(line, name)
    return Contents(_unseal(line, Where(name, 1, 0)), [], len(line), b"")


def parse_events(
    lines: Iterable[bytes], seq: int, size: int, name: str
) -> tuple[list[dict[str, Any]], int, bytes]:
    """Verify the lines after event ``seq`` and byte ``size``: events, new size, torn rest."""
    events: list[dict[str, Any]] = []
    for line in lines:
        seq += 1
        where = Where(name, seq + 1, size)  # the header is line 1
        if not line.endswith(b"\n"):
            _require_torn(line, where)
            return events, size, line
        event = _unseal(line, where)
        if event.get("seq") != seq:
            raise _damaged(where, f"event {seq} was expected, this is {event.get('seq')!r}")
        events.append(event)
        size += len(line)
    return events, size, b""


def _seal(fields: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(fields, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise JournalError(f"this cannot be written as JSON: {error}.") from error
    body = text.encode("ascii").removesuffix(b"}")
    return body + _SEAL % zlib.crc32(body)


def _unseal(line: bytes, where: Where) -> dict[str, Any]:
    # The raw bytes are checked: to serialise again and compare would cost three times as much.
    body, seal = line[:-_SEAL_SIZE], line[-_SEAL_SIZE:]
    if seal != _SEAL % zlib.crc32(body):
        raise _damaged(where, "its checksum does not match")
    try:
        fields: dict[str, Any] = _read(body.decode("ascii") + "}")
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"it is not JSON ({error})") from error
    return fields


def _require_torn(line: bytes, where: Where) -> None:
    # A cut write is a beginning of one line. A whole sealed line with something else where its
    # newline should be was acknowledged and then damaged: to cut it off would lose an event.
    for match in _SEALED.finditer(line):
        end = match.end()
        if end < len(line) and line[match.start() : end] + b"\n" == _SEAL % zlib.crc32(
            line[: match.start()]
        ):
            raise _damaged(where, f"its newline became {line[end : end + 1]!r}")


def _refuse_newer(line: bytes, name: str) -> None:
    try:
        needed = json.loads(line).get("min_reader")
    except (ValueError, RecursionError, AttributeError):
        return  # damaged, which the checksum will show
    if isinstance(needed, int) and needed > FORMAT:
        raise JournalError(
            f"{name} was written by a newer covey: it needs one that reads format {needed}, this "
            f"one reads up to {FORMAT}. Upgrade it: pip install --upgrade covey."
        )


def _refuse_reserved(fields: Mapping[str, Any], reserved: tuple[str, ...]) -> None:
    taken = [name for name in reserved if name in fields]
    if taken:
        raise JournalError(f"the journal itself writes {', '.join(taken)}; use another name.")


def _damaged(where: Where, why: str) -> JournalDamaged:
    return JournalDamaged(
        f"{where.file}: line {where.line} (byte {where.offset}) is damaged: {why}. The lines "
        "before it are intact, and nothing was changed. Restore the file from a copy, read what "
        "precedes the damage with Study.load(path, read_only=True), or let `covey journal repair` "
        "write it to a new file.",
        where.line,
        where.offset,
    )


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
        self.path, self.name = path, str(path)
        self.header, self.events = contents.header, contents.events
        self.seq = len(contents.events)
        self._file, self._fd = Descriptor(fd), fd
        self._good = contents.size  # the file is known, and valid, up to this byte
        self._pid = os.getpid()
        self._broken: str | None = None
        self._mutex = Mutex()  # flock does not separate threads that share one descriptor
        self._busy = False
        self._asks, self._asking = Mutex(), False

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
            # Events that others have appended by now are left unread, so that `append` finds them.
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
                with locked(fd, path):  # or a line that is about to be rolled back might be read
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

    def append(self, event: Mapping[str, Any], after: int | None = None) -> int:
        """Write one event and return its number; once this returns, the event is on disk.

        It follows on event number ``after``; None is the last that was read here.

        Raises:
            JournalConflict: There are events after that one; nothing was written.
            JournalError: The event could not be written.
        """
        with self._exclusive("write to"):
            if after is not None and after > self.seq:
                self._catch_up()
            if after is not None and after != self.seq:
                raise _conflict(self.path, self.seq - after)
            line = event_line(self.seq + 1, event)
            self._require_at_end()
            self._commit(line)
            return self.seq

    def read(self, since: int) -> list[dict[str, Any]]:
        """The events after number ``since``; from here on all count as read."""
        with self._exclusive("read"):
            known = self._known()[since:] if since < self.seq else []
            unread = max(since - self.seq, 0)
            return known + self._catch_up()[unread:]

    def _catch_up(self) -> list[dict[str, Any]]:
        self._checked_size()
        with _reader(self._fd, self._good) as rest:
            added, size, _ = parse_events(rest, self.seq, self._good, str(self.path))
        if added:
            self._sync()  # their writer may have died before they were on disk
        self.seq, self._good = self.seq + len(added), size
        return added

    def _known(self) -> list[dict[str, Any]]:
        """The events up to the last that was read; those read at the opening are in memory."""
        if self.seq == len(self.events):
            return self.events
        return _contents(self._fd, self.path).events[: self.seq]

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Wait for a turn to choose a batch, and hold it; others can write meanwhile."""
        self._require_own_process()
        with self._asks:
            if self._asking:  # a nested ask, by a strategy or a signal handler
                yield
                return
            self._asking = True
            try:
                with asking(self.path):
                    yield
            finally:
                self._asking = False

    def running(self) -> AbstractContextManager[Runs]:
        """Hold the right to run this journal; see `covey.log.running`."""
        return running(self.path)

    def close(self) -> None:
        """Release the file; closing twice is harmless."""
        with self._mutex:
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r}, seq={self.seq})"

    @contextmanager
    def _exclusive(self, what: str) -> Iterator[None]:
        """Exclusive use of the file, among threads, processes and signal handlers."""
        self._require_own_process()  # first: a forked child may have inherited a held mutex
        with self._mutex, reporting(f"{what} {self.path}"):
            self._require_usable()
            self._busy = True
            try:
                with locked(self._fd, self.path):
                    yield
            finally:
                self._busy = False

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
        if self._busy:  # only reached by the thread that uses it
            raise JournalError(f"{self.path}: a signal handler cannot use it while it is in use.")

    def _require_at_end(self) -> None:
        """Raise unless the events read here are all there are; a torn line after them is cut."""
        if self._checked_size() > self._good:
            self._drop_torn_line()

    def _checked_size(self) -> int:
        """The size of the file; raises if it was replaced, or lost bytes that were read here."""
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

    def _drop_torn_line(self) -> None:
        """Cut the torn line off the file and keep it aside; raise if events were appended."""
        with _reader(self._fd, self._good) as rest:
            added, _, torn = parse_events(rest, self.seq, self._good, str(self.path))
        if added:
            raise _conflict(self.path, len(added))
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
        except BaseException:  # an interrupt too: the caller does not learn of the event
            self._roll_back()
            raise
        # In one step: an interrupt between the two would make the file look damaged.
        self.seq, self._good = self.seq + 1, self._good + len(line)

    def _sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError:
            # The kernel may have dropped the pages and reports that once: a second fsync that
            # succeeds proves nothing. The caller still cuts the line off, or a reader would
            # take it from the cache for an event on disk.
            self._broken = "an earlier write could not be flushed to disk."
            raise

    def _roll_back(self) -> None:
        try:
            os.ftruncate(self._fd, self._good)
        except OSError:
            self._broken = "an earlier write failed and could not be undone."


def _conflict(path: Path, count: int) -> JournalConflict:
    return JournalConflict(
        f"{path}: somebody else has added {count} event(s) since it was read; nothing was written. "
        "Load the study again and repeat."
    )


def _reader(fd: int, offset: int) -> io.BufferedReader:
    os.lseek(fd, offset, os.SEEK_SET)
    return open(fd, "rb", closefd=False)


def _contents(fd: int, path: Path) -> Contents:
    with _reader(fd, 0) as stream:
        return parse(stream, str(path))


def _flush(fd: int, path: Path) -> None:
    """Flush what was just read: a writer killed before its own flush left it in the cache.

    The study relies on it, and even acknowledges a repeated key, without writing anything.
    """
    os.fsync(fd)
    sync_directory(path.resolve().parent)


# Repair: copy what precedes the damage to a new file; the damaged one is never changed.


def repair(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Contents:
    """Write every line before the first damaged one to a new file; what that file holds.

    The header must be whole, since it says which study this is. Nothing is deleted or changed.

    Raises:
        JournalError: The header is damaged, or ``out`` exists already or cannot be written.
    """
    path, out = Path(path).absolute(), Path(out).absolute()
    if out == path:
        raise JournalError(f"{path} is never changed; name another file to write to.")
    contents = read(path, prefix=True)
    with reporting(f"write {out}"), path.open("rb") as file:
        publish(out, file.read(contents.size))
    return contents
