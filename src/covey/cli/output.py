"""What commands print and write: results on stdout, messages on stderr, exit codes, files.

`put` and `put_json` print results, `say` prints messages, `ExitCode` and `code_of` give each error
its exit status, and `Output` writes a file, and replaces one only with --force.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from covey.disk import write_whole
from covey.errors import (
    CoveyError,
    ExhaustedError,
    HistoryError,
    JournalConflict,
    JournalDamaged,
    JournalMismatch,
    SpaceError,
    StrategyError,
)
from covey.tables import WHERE_OPEN


def put(text: str) -> None:
    """Print the result of the command, in words, on stdout."""
    _write(printable(text))


def put_exactly(text: str) -> None:
    """Print the result for a program to read (a sheet, a path) on stdout.

    Unchanged into a file or a pipe; without control characters on a terminal.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        text = printable(text)
    _write(text)


def _write(text: str) -> None:
    if sys.stdout is None:  # closed by the parent process
        return
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def put_json(schema: str, fields: Mapping[str, Any]) -> None:
    """Print the result as one JSON object; ``schema`` names its shape."""
    text = json.dumps({"schema": schema, **fields}, allow_nan=False, default=str)
    _write(text.replace("\x7f", "\\u007f"))  # the one control character that JSON leaves as it is


def say(text: str) -> None:
    """Print a message on stderr; a closed stderr is no error."""
    write_stderr(printable(text) + "\n")


def write_stderr(text: str) -> None:
    """Write to stderr; if it is closed, the work goes on all the same."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def printable(text: str) -> str:
    r"""The text without control characters, which names may carry and terminals obey.

    >>> printable("a\x1b[31mb")
    'a[31mb'
    """
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")


def table_cell(value: Any) -> str:
    """A value for people: four significant digits.

    >>> table_cell(0.0123456), table_cell("adam"), table_cell(None)
    ('0.01235', 'adam', '')
    """
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows in columns, for people; numbers to four digits."""
    cells = [
        [printable(name) for name in names],
        *([table_cell(v) for v in row] for row in rows),
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


# Exit codes, and which error has which.


class ExitCode(IntEnum):
    """The exit status of a command; part of the public interface."""

    OK = 0
    FAILED = 1  # it could not be done: a full disk, an evaluation, a missing package
    USAGE = 2  # the command line is wrong, or a question cannot be asked without a terminal
    CONFLICT = 3  # another process runs the study, or what was named does not exist
    INVALID = 5  # a file, a value or the configuration is wrong; nothing was recorded
    DAMAGED = 6  # the journal is damaged
    NOTHING = 7  # there was nothing to do: the space is exhausted, no batch is open
    INTERRUPTED = 130  # Ctrl-C


class Stop(CoveyError):  # noqa: N818 - the verb says it
    """Ends a command with a code and a reason."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: CoveyError) -> ExitCode:
    """The exit code of an error.

    >>> code_of(SpaceError("low > high")).name
    'INVALID'
    """
    if isinstance(error, Stop):
        return error.code
    for kind, code in (
        (JournalDamaged, ExitCode.DAMAGED),
        (JournalConflict, ExitCode.CONFLICT),
        (JournalMismatch, ExitCode.INVALID),
        (ExhaustedError, ExitCode.NOTHING),
        ((SpaceError, HistoryError, StrategyError), ExitCode.INVALID),
    ):
        if isinstance(error, kind):
            return code
    return ExitCode.FAILED


# Output files: a file that is there is kept, unless the user says --force.

_JOURNAL = b'{"covey":'  # how every journal begins
_WORKBOOKS = (".xlsm", ".xlsb", ".xls", ".ods", ".numbers")  # of .xlsx, which covey writes, more


@dataclass(frozen=True)
class Output:
    """A file to write."""

    path: Path
    kept: tuple[Path, ...] = ()  # files that the command reads and must not overwrite
    force: bool = False  # whether a file that is there is replaced

    def require_place(self) -> None:
        """Refuse a path where no file can be written, and a file that the command reads."""
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

    def require_sheet(self) -> None:
        """Refuse a file name that a spreadsheet would not open as what is written."""
        if self.path.suffix.lower() in _WORKBOOKS:
            names = [self.path.with_suffix(suffix).name for suffix in (".xlsx", ".csv")]
            raise Stop(
                ExitCode.USAGE,
                f"{self.path} would be another kind of workbook than covey writes; name it "
                f"{' or '.join(names)}.",
            )
        if self.path.suffix.lower() == ".xlsx":
            from covey.workbooks import require_openpyxl

            require_openpyxl(str(self.path))

    def require_free(self) -> None:
        """Refuse to replace a file, unless that is wanted; a journal is never replaced."""
        self.require_place()
        if not self.path.is_file():
            return
        try:
            with self.path.open("rb") as file:
                is_journal = file.read(len(_JOURNAL)) == _JOURNAL
        except OSError as error:
            why = error.strerror or error
            raise Stop(ExitCode.FAILED, f"cannot read {self.path}: {why}.") from error
        if is_journal:
            raise Stop(
                ExitCode.CONFLICT,
                f"{self.path} is a journal, which nothing is written over; name another file.",
            )
        if not self.force:
            raise Stop(
                ExitCode.CONFLICT,
                f"{self.path} exists and is kept; replace it with --force, or name another file.",
            )

    def write(self, text: str | bytes) -> None:
        """Write the whole file, or nothing if a file that is kept has appeared there."""
        self.require_free()
        try:
            write_whole(self.path, text)
        except OSError as error:
            why = f"cannot write {self.path}: {error.strerror or error}."
            locked = f" {WHERE_OPEN}" if isinstance(error, PermissionError) else ""
            raise Stop(ExitCode.FAILED, why + locked) from error


def _same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also one that is yet to be made."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)
