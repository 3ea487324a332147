"""Files for people to read: written whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old text or the new one, never a part.

    A link stays a link, and what it leads to is replaced; a file keeps its mode. What is no plain
    file (a device, a pipe) is written into: to put a file in its place would destroy it.

    Raises:
        OSError: It could not be written; what was there is as it was.
    """
    data = text.encode("utf-8")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as sink:
            sink.write(data)
        return
    place = Path(os.path.realpath(path))
    # A name that nobody can foresee, and only if it is free: no link is ever written through.
    draft = place.with_name(f".covey-{secrets.token_hex(8)}.tmp")
    with draft.open("xb") as file:
        try:
            if mode is not None:
                draft.chmod(stat.S_IMODE(mode) & 0o777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(place)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
