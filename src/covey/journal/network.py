"""Network drives: where locks and appends of several machines cannot be relied on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from covey.errors import JournalError

FORCE = "COVEY_NETWORK_JOURNAL"
"""Environment variable that, set to 1, allows a journal on a network drive."""

# Not among them: Lustre, GPFS, BeeGFS, CephFS. They keep POSIX locks and appends across machines
# (Lustre when it is mounted with `flock`).
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "davfs")
_NETWORK_FUSE = ("sshfs", "s3fs", "gcsfuse", "rclone", "davfs2", "curlftpfs", "smbnetfs")
_MOUNTS = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # blanks, tabs, newlines and backslashes of a path


def refuse_network(path: Path) -> None:
    """Raise JournalError if the path lies on a network drive, unless that is forced."""
    if os.environ.get(FORCE) == "1":
        return
    kind = drive_kind(path)
    if kind in _NETWORK or kind.removeprefix("fuse.") in _NETWORK_FUSE:
        raise JournalError(
            f"{path} lies on a network drive ({kind}), where locks and appends of several machines "
            f"cannot be relied on. Put the journal on a local disk, or set {FORCE}=1 if only one "
            "machine at a time will ever write to it."
        )


def drive_kind(path: Path) -> str:
    """The type of the file system a path lies on; empty where the system does not say."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return ""
    return _kind_in(mounts, path.resolve())


def _kind_in(mounts: Iterable[str], path: Path) -> str:
    """Of the mounts a path lies under, the deepest; the last of several at one place."""
    found, depth = "", -1
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[1]))
        if path.is_relative_to(place) and len(place.parts) >= depth:
            found, depth = fields[2], len(place.parts)
    return found
