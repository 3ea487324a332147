"""Voice: data goes to stdout, talk to stderr."""

from __future__ import annotations

import contextlib
import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def put(text: str) -> None:
    """The result of the command in words, on stdout."""
    _write(printable(text))


def put_exactly(text: str) -> None:
    """The result as a program will read it (a sheet, a path), on stdout.

    As it is into a file or a pipe; but no control characters to a terminal, which obeys them.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        text = printable(text)
    _write(text)


def _write(text: str) -> None:
    if sys.stdout is None:  # closed by whoever started us
        return
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def put_json(schema: str, fields: Mapping[str, Any]) -> None:
    """Data as one JSON object; ``schema`` names its shape."""
    text = json.dumps({"schema": schema, **fields}, allow_nan=False, default=str)
    _write(text.replace("\x7f", "\\u007f"))  # the one control character that JSON leaves as it is


def say(text: str) -> None:
    """Talk: anything else, on stderr; nobody has to listen."""
    mutter(printable(text) + "\n")


def mutter(text: str) -> None:
    """Write to stderr, whether or not it is still there: work must not end for want of a reader."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def printable(text: str) -> str:
    r"""The text without control characters, which names may carry and terminals obey.

    >>> printable("a\x1b[31mb")
    'a[31mb'
    """
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")


def number(value: Any) -> str:
    """A value for people: four significant digits.

    >>> number(0.0123456), number("adam"), number(None)
    ('0.01235', 'adam', '')
    """
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows in columns, for people; numbers to four digits."""
    cells = [[printable(name) for name in names], *([number(v) for v in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)
