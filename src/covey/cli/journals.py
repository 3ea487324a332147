"""`covey journal verify` and `covey journal repair`."""

from __future__ import annotations

from pathlib import Path

from covey.cli.exits import ExitCode, Stop
from covey.cli.voice import put, put_json, say
from covey.errors import several
from covey.journal import read, repair


def verify(path: Path, as_json: bool) -> None:
    """Say whether every line verifies."""
    contents = read(path, prefix=True)
    damage = contents.damage
    if as_json:
        fields = {
            "path": str(path),
            "events": len(contents.events),
            "bytes": contents.size,
            "torn_bytes": len(contents.torn),
            "damage": None if damage is None else {"line": damage.line, "byte": damage.offset},
        }
        put_json("covey.journal.verify/1", fields)
    else:
        verify = "verifies" if len(contents.events) == 1 else "verify"
        events = several(len(contents.events), "event")
        put(f"{path}: {events} in {contents.size} bytes {verify}")
    if contents.torn:
        say(
            f"a torn line of {several(len(contents.torn), 'byte')} at the end was never "
            "acknowledged; the next write sets it aside."
        )
    if damage is not None:
        raise damage


def mend(path: Path, out: Path, as_json: bool, dry_run: bool) -> None:
    """Write what precedes the damage to a new file; the old one stays as it is."""
    contents = read(path, prefix=True) if dry_run else repair(path, out)
    if not as_json:
        verb = "would be written" if dry_run else "written"
        put(f"{several(len(contents.events), 'event')} {verb} to {out}")
    else:
        fields = {"path": str(path), "out": str(out), "events": len(contents.events)}
        put_json("covey.journal.repair/1", {**fields, "dry_run": dry_run})
    if contents.damage is None and not contents.torn:
        say("the journal was whole; the copy is the same.")
    elif contents.damage is not None:
        say(f"what follows line {contents.damage.line - 1} is not in it, and still in {path}.")
    if dry_run and out.exists():
        raise Stop(ExitCode.CONFLICT, f"{out} exists already; name another file.")
