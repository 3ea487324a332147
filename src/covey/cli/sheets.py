"""Sheets: tables of points and results as CSV, safe to open in a spreadsheet and to read back."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.cli.exits import ExitCode, Stop, sentence
from covey.errors import several

COLUMNS = ("id", "status", "value", "sem", "origin")
"""Columns that are not parameters."""

_MOST = 2**26  # bytes of a sheet, a million rows; a device or a pipe may have no end
# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")


@dataclass(frozen=True)
class Row:
    """One line of a sheet, and where it stands."""

    cells: dict[str, str]
    where: str  # file:line

    def error(self, message: str) -> Stop:
        """An error about this line."""
        return Stop(ExitCode.INVALID, f"{self.where}: {sentence(message)} Nothing was recorded.")


def write(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """CSV text: numbers exactly, text so that no spreadsheet takes it for a formula."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow([_cell(name) for name in names])
    for row in rows:
        sheet.writerow([_cell(row.get(name)) for name in names])
    return out.getvalue()


def read(path: str) -> tuple[list[str], list[Row]]:
    """Column names and rows of a CSV file; "-" is stdin."""
    text = _text(path)
    name = "stdin" if path == "-" else path
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader if any(c.strip() for c in line)]
    except csv.Error as error:
        raise Stop(ExitCode.INVALID, f"{name}:{reader.line_num}: not CSV ({error}).") from error
    if not lines:
        raise Stop(ExitCode.INVALID, f"{name} is empty; its first line names the columns.")
    names = [_plain(cell.strip()) for cell in lines[0][1]]
    if len(names) == 1 and ";" in names[0]:
        raise Stop(
            ExitCode.INVALID,
            f"{name} separates its columns by semicolons; save it with commas, and with a point "
            "in decimal numbers.",
        )
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise Stop(ExitCode.INVALID, f"{name} has two columns named {sorted(twice)[0]!r}.")
    return names, [_row(names, line, f"{name}:{n}") for n, line in lines[1:]]


def heading(name: str, taken: Sequence[str] = COLUMNS) -> str:
    """The column of a parameter; one that bears the name of another column is ``point.<name>``."""
    return f"point.{name}" if name in taken else name


def require_free(path: Path, kept: Iterable[Path] = ()) -> None:
    """Refuse to write where nothing can be written, or over what must be kept."""
    if not path.name or path.is_dir():
        raise Stop(ExitCode.USAGE, f"{path} is a folder; name a file to write to.")
    if not path.parent.is_dir():
        raise Stop(ExitCode.CONFLICT, f"there is no folder {path.parent}; make it first.")
    for other in kept:
        if path.exists() and other.exists() and path.samefile(other):
            raise Stop(ExitCode.USAGE, f"{path} is {other}, which is still needed; name another.")


def save(path: Path, text: str) -> None:
    """Write a file whole, or not at all; what is no plain file is written into."""
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        staged = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            staged.write_text(text, encoding="utf-8")
            if path.exists():
                staged.chmod(path.stat().st_mode & 0o777)
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"cannot write {path}: {error.strerror or error}.") from error


def holds_values(path: Path) -> bool:
    """Whether somebody has begun to fill in the column value."""
    if not path.is_file():
        return False
    try:
        names, rows = read(str(path))
    except Stop:
        return False  # no sheet of ours
    return "value" in names and any(row.cells["value"] for row in rows)


def bounded(path: str | Path, most: int) -> bytes:
    """What a file holds, a pipe or a device too; "-" is stdin. More than ``most`` bytes is refused.

    Raises:
        OSError: It cannot be read.
    """
    if path == "-":
        data = sys.stdin.buffer.read(most + 1)
    else:
        with Path(path).open("rb") as stream:
            data = stream.read(most + 1)
    if len(data) > most:
        raise Stop(
            ExitCode.INVALID,
            f"{'stdin' if path == '-' else path} is larger than {most / 2**20:.0f} MiB; is it the "
            "file you meant?",
        )
    return data


def _text(path: str) -> str:
    try:
        return bounded(path, _MOST).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise Stop(ExitCode.CONFLICT, f"there is no file {path}.") from error
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Stop(ExitCode.INVALID, f"{path} is not UTF-8 text; save it as UTF-8.") from error


def _row(names: list[str], line: list[str], where: str) -> Row:
    if len(line) != len(names):
        raise Stop(
            ExitCode.INVALID,
            f"{where}: {several(len(line), 'cell')}, but {several(len(names), 'column')}. Nothing "
            "was recorded.",
        )
    cells = {n: _plain(cell.strip()) for n, cell in zip(names, line, strict=True)}
    return Row(cells, where)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
