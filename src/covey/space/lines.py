"""Records of a CSV file, and the lines they begin on."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from covey.errors import SpaceError

Reader: TypeAlias = Any  # csv.reader, whose type has no public name


def start_of(file: Path) -> int:
    """The first byte of text, behind a byte order mark."""
    with file.open("rb") as stream:
        mark = codecs.BOM_UTF8
        return len(mark) if stream.read(len(mark)) == mark else 0


@contextmanager
def records(file: Path, start: int) -> Iterator[Reader]:
    """The records from a byte on, which must be the first of one; blank lines are empty lists."""
    with file.open("rb") as stream:
        stream.seek(start)
        try:
            yield csv.reader(io.TextIOWrapper(stream, encoding="utf-8", newline=""))
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{_undecodable(file)} is not CSV text in UTF-8 ({error.reason}); save the file "
                "as UTF-8"
            ) from error
        except csv.Error as error:
            raise SpaceError(
                f"{file} is not CSV text: {error}; look for a quote that is not closed"
            ) from error


def header_of(file: Path) -> list[str]:
    """The cells of the first record; none if there is none."""
    with records(file, start_of(file)) as reader:
        return next(filter(None, reader), [])


def line_of(file: Path, row: int) -> int | None:
    """The line, counted from 1, on which a row begins, counted from 0 behind the header.

    Reads the file again up to there, which only a mistake in it is worth; None if that fails.
    """
    before, left = 0, row + 1
    try:
        with records(file, start_of(file)) as reader:
            for record in reader:
                if record and not left:
                    return before + 1
                left -= bool(record)
                before = reader.line_num
    except (SpaceError, OSError):
        pass
    return None


def _undecodable(file: Path) -> str:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"line {number} of {file}"
    return str(file)  # changed meanwhile
