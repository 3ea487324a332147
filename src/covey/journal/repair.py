"""Repair: what precedes the damage, in a new file; the damaged one is never touched."""

from __future__ import annotations

import os
from pathlib import Path

from covey.errors import JournalError
from covey.journal.disk import publish, reporting
from covey.journal.journal import read
from covey.journal.lines import Contents


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
