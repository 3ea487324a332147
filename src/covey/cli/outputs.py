"""Outputs: the files that commands write. Nothing is written over that could be lost.

One rule for all of them. A file is replaced where it holds nothing, where it holds what would be
written now, or where it says only what the study says too (each command knows its own files).
Whatever else is there is somebody's work: it is kept, and the command says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from covey.cli.exits import ExitCode, Stop
from covey.files import write_whole

_JOURNAL = b'{"covey":'  # how every journal begins
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")


def never(_file: BinaryIO) -> bool:
    """Of files that cannot be made again."""
    return False


@dataclass(frozen=True)
class Output:
    """A file to write, and what may be in it already."""

    path: Path
    kept: tuple[Path, ...] = ()  # what the command reads, and must not write over
    ours: Callable[[BinaryIO], bool] = never  # whether all that a file says can be made again
    hint: str = "Move it away, or name another file."

    def require_place(self) -> None:
        """Refuse a path where no file can be, or where a file is that is still needed."""
        path = self.path
        if not path.name or path.is_dir():
            raise Stop(ExitCode.USAGE, f"{path} is a folder; name a file to write to.")
        if not path.parent.is_dir():
            raise Stop(ExitCode.CONFLICT, f"there is no folder {path.parent}; make it first.")
        for other in self.kept:
            if _same(path, other):
                raise Stop(
                    ExitCode.USAGE, f"{path} is {other}, which is still needed; name another."
                )

    def require_csv(self) -> None:
        """Refuse a name that a spreadsheet would not open as what it is."""
        if self.path.suffix.lower() in _WORKBOOKS:
            raise Stop(
                ExitCode.USAGE,
                f"{self.path} would be a workbook, and covey writes CSV; name it "
                f"{self.path.with_suffix('.csv').name}, which a spreadsheet opens as well.",
            )

    def require_free(self, text: str | None = None) -> None:
        """Refuse a place where something is that could be lost; ``text`` is what will be there."""
        self.require_place()
        if not self.path.is_file():
            return
        try:
            with self.path.open("rb") as file:
                journal = file.read(len(_JOURNAL)) == _JOURNAL
                file.seek(0)
                free = not journal and (self._is_same(file, text) or self.ours(file))
        except OSError as error:
            why = error.strerror or error
            raise Stop(ExitCode.FAILED, f"cannot read {self.path}: {why}.") from error
        if journal:
            raise Stop(
                ExitCode.CONFLICT,
                f"{self.path} is a journal, which nothing is written over; name another file.",
            )
        if not free:
            raise Stop(
                ExitCode.CONFLICT,
                f"{self.path} holds something that may be nowhere else, and is kept. {self.hint}",
            )

    def write(self, text: str) -> None:
        """Write the file whole, unless something has come there that could be lost."""
        self.require_free(text)
        try:
            write_whole(self.path, text)
        except OSError as error:
            why = error.strerror or error
            raise Stop(ExitCode.FAILED, f"cannot write {self.path}: {why}.") from error

    def _is_same(self, file: BinaryIO, text: str | None) -> bool:
        """Whether the file is empty, or is the text that will be written."""
        data = (text or "").encode()
        same = file.read(len(data) + 1) in (b"", data)
        file.seek(0)
        return same


def _same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also one that is yet to be made."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)
