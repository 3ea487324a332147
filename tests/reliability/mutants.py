"""The deliberate defects. Each is a small mistake that somebody could make in good faith."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import covey.log.log as book_module
from covey import disk
from covey import disk as descriptor
from covey.errors import JournalError
from covey.history import codec
from covey.log import journal
from covey.log import journal as lines
from covey.log.journal import Journal
from covey.log.log import Logbook

Patch = pytest.MonkeyPatch
DEFECTS: dict[str, Callable[[Patch], None]] = {}


@contextmanager
def planted(defect: str | None) -> Iterator[None]:
    """Run the body against a journal with this defect; None for the journal as it is."""
    with Patch.context() as patch:
        if defect is not None:
            DEFECTS[defect](patch)
        yield


def _defect(name: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def enter(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        DEFECTS[name] = plant
        return plant

    return enter


def _nothing(*_: Any) -> None:
    return None


# ---------------------------------------------------------------- writing


@_defect("ack before write")
def _(patch: Patch) -> None:
    real = Journal.append

    def append(self: Journal, event: Any, after: int | None = None) -> int:
        # Two behind: one alone is mostly in the cache already when a slow fsync is killed.
        kept = vars(self).setdefault("kept", [])
        kept.append(event)
        if len(kept) > 2:
            real(self, kept.pop(0))
        return self.seq + len(kept)

    patch.setattr(Journal, "append", append)


@_defect("errors swallowed")
def _(patch: Patch) -> None:
    real = Journal._commit

    def commit(self: Journal, line: bytes) -> None:
        try:
            real(self, line)
        except OSError:
            return

    patch.setattr(Journal, "_commit", commit)


@_defect("short write believed")
def _(patch: Patch) -> None:
    patch.setattr(journal, "write_once", os.write)


@_defect("no fsync")
def _(patch: Patch) -> None:
    patch.setattr(Journal, "_sync", _nothing)


@_defect("no directory fsync")
def _(patch: Patch) -> None:
    patch.setattr(disk, "sync_directory", _nothing)


@_defect("no fsync of what is read")
def _(patch: Patch) -> None:
    patch.setattr(journal, "_flush", lambda fd, path: disk.sync_directory(path.parent))


@_defect("no fsync of what others wrote")
def _(patch: Patch) -> None:
    real = Journal.read

    def read(self: Journal, since: int) -> list[dict[str, Any]]:
        with Patch.context() as inner:
            inner.setattr(Journal, "_sync", _nothing)
            return real(self, since)

    patch.setattr(Journal, "read", read)


@_defect("no directory fsync of what is read")
def _(patch: Patch) -> None:
    patch.setattr(journal, "sync_directory", _nothing)


@_defect("fsync again after it failed")
def _(patch: Patch) -> None:
    def sync(self: Journal) -> None:
        try:
            os.fsync(self._fd)
        except OSError:
            os.fsync(self._fd)

    patch.setattr(Journal, "_sync", sync)


@_defect("no roll back")
def _(patch: Patch) -> None:
    patch.setattr(Journal, "_roll_back", _nothing)


@_defect("a failed roll back forgotten")
def _(patch: Patch) -> None:
    def roll_back(self: Journal) -> None:
        try:
            os.ftruncate(self._fd, self._good)
        except OSError:
            self._good = os.fstat(self._fd).st_size

    patch.setattr(Journal, "_roll_back", roll_back)


@_defect("no tail repair")
def _(patch: Patch) -> None:
    def append_blindly(self: Journal) -> None:
        self._good = os.fstat(self._fd).st_size

    patch.setattr(Journal, "_require_at_end", append_blindly)


@_defect("torn bytes thrown away")
def _(patch: Patch) -> None:
    patch.setattr(journal, "keep_aside", lambda path, data: path)


@_defect("position moves in two steps")
def _(patch: Patch) -> None:
    def commit(self: Journal, line: bytes) -> None:
        try:
            os.lseek(self._fd, self._good, os.SEEK_SET)
            disk.write_once(self._fd, line)
            self._sync()
        except BaseException:
            self._roll_back()
            raise
        self.seq += 1
        self._good += len(line)

    commit.__code__ = commit.__code__.replace(co_filename=journal.__file__)
    patch.setattr(Journal, "_commit", commit)


# ---------------------------------------------------------------- locks


@_defect("no lock")
def _(patch: Patch) -> None:
    real = Journal._require_at_end

    def require_at_end(self: Journal) -> None:
        real(self)
        time.sleep(0.001)  # as on a machine with a core for each writer

    patch.setattr(journal, "locked", lambda *_: nullcontext())
    patch.setattr(Journal, "_require_at_end", require_at_end)


@_defect("lock file")
def _(patch: Patch) -> None:
    """A file that is there while somebody writes, and stays when they die."""

    @contextmanager
    def locked(fd: int, path: Path) -> Iterator[None]:
        path = path.with_name(f"{path.name}.busy")
        while True:
            try:
                path.touch(exist_ok=False)
                break
            except FileExistsError:
                time.sleep(0.002)
        yield
        path.unlink()

    patch.setattr(journal, "locked", locked)


@_defect("children keep the lock")
def _(patch: Patch) -> None:
    class Forgetful:
        def add(self, _: object) -> None:
            return

        def __iter__(self) -> Iterator[object]:
            return iter(())

    patch.setattr(descriptor, "_open", Forgetful())


@_defect("a lock for each name")
def _(patch: Patch) -> None:
    module = import_module("covey.log.running")  # the package has a function of this name
    patch.setattr(module, "folder_of", lambda path: path.with_name(f"{path.name}.runs"))


# ---------------------------------------------------------------- reading


@_defect("no checksum")
def _(patch: Patch) -> None:
    def trusting(line: bytes, where: lines.Where) -> Any:
        try:
            return json.loads(line)
        except ValueError as error:
            raise JournalError(where) from error

    patch.setattr(lines, "_unseal", trusting)


def _parse_without_numbers(source: Any, seq: int, size: int, name: str) -> Any:
    events: list[dict[str, Any]] = []
    for line in source:
        if not line.endswith(b"\n"):
            return events, size, line
        events.append(lines._unseal(line, lines.Where(name, len(events) + 2, size)))
        size += len(line)
    return events, size, b""


@_defect("no seq")
def _(patch: Patch) -> None:
    for module in (lines, journal):
        patch.setattr(module, "parse_events", _parse_without_numbers)


@_defect("a lost newline is a torn line")
def _(patch: Patch) -> None:
    patch.setattr(lines, "_require_torn", _nothing)


@_defect("no newline needed")
def _(patch: Patch) -> None:
    real = lines.parse_events

    def parse(source: Any, seq: int, size: int, name: str) -> Any:
        whole = (line if line.endswith(b"\n") else line + b"\n" for line in source)
        kept = (line for line in whole if lines._SEALED.search(line[-lines._SEAL_SIZE :]))
        return real(kept, seq, size, name)

    patch.setattr(lines, "parse_events", parse)


@_defect("order by time")
def _(patch: Patch) -> None:
    real = lines.parse

    def parse(stream: Any, name: str) -> lines.Contents:
        contents = real(stream, name)
        return replace(contents, events=sorted(contents.events, key=lambda event: event["at"]))

    patch.setattr(journal, "parse", parse)


@_defect("newest first")
def _(patch: Patch) -> None:
    real = lines.parse

    def parse(stream: Any, name: str) -> lines.Contents:
        contents = real(stream, name)
        return replace(contents, events=contents.events[::-1])

    patch.setattr(journal, "parse", parse)


@_defect("headers are trusted")
def _(patch: Patch) -> None:
    patch.setattr("covey.log.header.require_study", _nothing)


@_defect("network drives accepted")
def _(patch: Patch) -> None:
    patch.setattr(journal, "refuse_network", _nothing)


@_defect("a new journal replaces an old one")
def _(patch: Patch) -> None:
    patch.setattr(journal, "publish", lambda path, data: path.write_bytes(data))


# ---------------------------------------------------------------- the study's log


@_defect("asks do not know of each other")
def _(patch: Patch) -> None:
    patch.setattr(Journal, "asking", lambda self: nullcontext())
    patch.setattr(Logbook, "_overtaken", _nothing)


@_defect("no keys")
def _(patch: Patch) -> None:
    real = Logbook.commit
    patch.setattr(
        Logbook,
        "commit",
        lambda self, event, key=None, *since, **more: real(self, event, None, *since, **more),
    )


@_defect("keys not replayed")
def _(patch: Patch) -> None:
    patch.setattr(book_module, "_key_in", _nothing)


@_defect("a key says nothing of its kind")
def _(patch: Patch) -> None:
    def made_by(self: Logbook, key: str, _: Any) -> Any:
        sent = self._messages.get(key)
        return None if sent is None else [self.history.trial(i) for i in sent.made]

    patch.setattr(Logbook, "made_by", made_by)


@_defect("events of others passed over")
def _(patch: Patch) -> None:
    real = Logbook._replayed

    def replayed(self: Logbook, lines: Any) -> Any:
        before = self.state.seq
        return real(self, lines[bool(before) :])._replace(seq=before + len(lines))

    patch.setattr(Logbook, "_replayed", replayed)


@_defect("believed before it is written")
def _(patch: Patch) -> None:
    real = Logbook._append

    def append(self: Logbook, event: Any, key: str | None, since: int) -> Any:
        try:
            return real(self, event, key, since)
        except JournalError as error:
            if type(error) is JournalError:
                self.state = self.state._replace(history=self.history.then(event))
            raise

    patch.setattr(Logbook, "_append", append)


@_defect("rounded numbers")
def _(patch: Patch) -> None:
    real = codec.event_to_json

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.12g}")
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return value

    def to_json(*args: Any) -> dict[str, Any]:
        return {name: rounded(value) for name, value in real(*args).items()}

    patch.setattr(book_module, "event_to_json", to_json)


@_defect("no standard errors")
def _(patch: Patch) -> None:
    real = codec._is_empty

    def unsaid(value: object) -> bool:
        return real(value) or (isinstance(value, tuple) and None in value)

    patch.setattr(codec, "_is_empty", unsaid)


# ---------------------------------------------------------------- evaluating


@_defect("waiting counts")
def _(patch: Patch) -> None:
    patch.setattr("covey.run.workdir.Workdir.computed", False)


# ---------------------------------------------------------------- watching


@_defect("the rest takes as long as it took so far")
def _(patch: Patch) -> None:
    """A pace that counts what is still at work as if it had ended just now."""
    module = import_module("covey.run.standing")
    real = module.Tempo.left

    def left(self: Any, elapsed: Any, queued: int, later: int) -> float:
        one = max([self.one, *elapsed])
        return real(replace(self, one=one), [0.0] * len(elapsed), queued, later)

    patch.setattr(module.Tempo, "left", left)
