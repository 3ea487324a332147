"""Platter: a disk that can lose its power, refuse a call, or see its writer die.

It stands between `os` and the file system, for one folder. The rules are those of POSIX, at their
worst: bytes are safe once an fsync of their file has returned, names once one of their folder has.
An fsync that fails drops what it should have written, and the next one does not know (as Linux
does).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CALLS = ("open", "write", "fsync", "ftruncate", "link", "replace", "unlink")


class Died(BaseException):
    """The process is gone: nothing it would have done next happens."""


class Platter:
    """What is on disk, whatever the cache says; ``calls`` counts what touches it."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.before: Callable[[str], int | str | None] = lambda name: None  # an error to raise
        self.after: Callable[[], None] = lambda: None
        self._dead = self._paused = False
        self._dirty: dict[int, list[tuple[int, int]]] = {}  # inode -> bytes only in the cache
        self._names = self._listing()
        self._bytes = {i: (folder / name).read_bytes() for name, i in self._names.items()}
        self._real = {name: getattr(os, name) for name in CALLS}
        for name in CALLS:
            patch.setattr(os, name, self._wrap(name))

    def _listing(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self.folder.iterdir()}

    def _wrap(self, name: str) -> Callable[..., Any]:
        act = getattr(self, f"_{name}", self._real[name])

        def call(*args: Any, **options: Any) -> Any:
            if self._paused:
                return self._real[name](*args, **options)
            if self._dead:
                raise Died
            self.calls.append(name)
            fault = self.before(name)
            if fault == "short" and name == "write":
                return act(args[0], args[1][: len(args[1]) // 2])
            if fault is not None:
                self._fail(name, args, errno.EIO if fault == "short" else int(fault))
            result = act(*args, **options)
            self.after()
            return result

        return call

    def _fail(self, name: str, args: tuple[Any, ...], number: int) -> None:
        if name == "write":  # some of it arrives before the error
            self._write(args[0], args[1][: len(args[1]) // 2])
        if name == "fsync":
            self._dirty.pop(os.fstat(args[0]).st_ino, None)
        raise OSError(number, os.strerror(number))

    def _open(self, path: Any, flags: int, *rest: Any, **options: Any) -> int:
        fd: int = self._real["open"](path, flags, *rest, **options)
        if flags & os.O_EXCL:
            self._bytes[os.fstat(fd).st_ino] = b""
        return fd

    def _write(self, fd: int, data: bytes) -> int:
        start = os.lseek(fd, 0, os.SEEK_CUR)
        count: int = self._real["write"](fd, data)
        self._dirty.setdefault(os.fstat(fd).st_ino, []).append((start, start + count))
        return count

    def _fsync(self, fd: int) -> None:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            self._names = self._listing()
            return
        self._bytes[found.st_ino] = self._flushed(found.st_ino, self._dirty.pop(found.st_ino, []))

    def _flushed(self, inode: int, ranges: list[tuple[int, int]]) -> bytes:
        """The file on disk, once these bytes of the cache have reached it too."""
        names = [name for name, found in self._listing().items() if found == inode]
        if not names:
            return self._bytes.get(inode, b"")
        now = (self.folder / names[0]).read_bytes()
        flushed = bytearray(self._bytes.get(inode, b"")[: len(now)].ljust(len(now), b"\0"))
        for start, end in ranges:
            flushed[start:end] = now[start:end]
        return bytes(flushed[: len(now)])

    # ------------------------------------------------------------ what a test does with it

    def die(self) -> None:
        """End the process here: raise this on every call until it is revived."""
        self._dead = True
        raise Died

    def revive(self) -> None:
        """A new process; the cache has outlived the old one."""
        self._dead = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Look on without being seen."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def pull_the_plug(self, into: Path, arrived: str = "nothing") -> None:
        """What the next boot finds, by name; some of what was never flushed may have arrived."""
        into.mkdir()
        for name, inode in self._names.items():
            (into / name).write_bytes(self._found(inode, arrived))

    def _found(self, inode: int, arrived: str) -> bytes:
        dirty = self._dirty.get(inode, [])
        if arrived == "nothing" or not dirty:
            return self._bytes.get(inode, b"")
        halves = [(start, (start + end) // 2, end) for start, end in dirty]
        return self._flushed(
            inode,
            {
                "all": dirty,
                "the size only": [],
                "the first half": [(start, half) for start, half, _ in halves],
                "the second half": [(half, end) for _, half, end in halves],
            }[arrived],
        )
