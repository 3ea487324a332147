"""The format of a journal: sealed lines, read and verified; no file is touched here.

The first line is a header, ``{"covey":1,"min_reader":1,...,"created":...,"crc":"xxxxxxxx"}``; each
further line is an event, ``{"seq":1,"at":...,...,"crc":"xxxxxxxx"}``, numbered without gaps. The
crc is the CRC-32 of the line's bytes before ``,"crc"``; the newline is the commit mark. Lines are
ASCII (other letters are escaped), so that no editor can re-encode a line and break its seal.

What follows the last newline was never acknowledged: it is torn, and no part of the log. Anything
else that does not verify is damage, and is reported by line and byte.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO

from covey.errors import JournalDamaged, JournalError

FORMAT = 1  # what this covey writes, and the newest it can read

_MAGIC = b'{"covey":'
_SEAL = b',"crc":"%08x"}\n'
_SEAL_SIZE = len(_SEAL % 0)
_read = json.JSONDecoder().decode  # json.loads would first guess at the encoding of each line
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
    damage: JournalDamaged | None = None  # why reading stopped before the end, if it did


def header_line(fields: Mapping[str, Any]) -> bytes:
    """The first line of a new journal."""
    _refuse_reserved(fields, ("covey", "min_reader", "created", "crc"))
    return _seal({"covey": FORMAT, "min_reader": FORMAT, **fields, "created": _now()})


def event_line(seq: int, event: Mapping[str, Any]) -> bytes:
    """The line of event number ``seq``."""
    _refuse_reserved(event, ("seq", "at", "crc"))
    return _seal({"seq": seq, "at": _now(), **event})


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
        return  # damaged, which the checksum will say
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
