"""The verdict of a check. Mutants must be caught by it, and not by some other error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck

from covey.errors import JournalError
from covey.log.journal import read

SCALE = float(os.environ.get("COVEY_RELIABILITY", "1"))
"""1 for the counts of every change, 10 for those of a night."""


PLAIN: dict[str, Any] = {
    "report_multiple_bugs": False,  # so that a verdict comes out as itself
    "suppress_health_check": [HealthCheck.too_slow],  # the machine may have other things to do
}
"""How hypothesis runs the checks."""


class Broken(AssertionError):  # noqa: N818 - the adjective says it
    """A promise was broken."""


def demand(held: object, promise: str, *details: object) -> None:
    """Raise Broken unless the promise was kept."""
    if not held:
        raise Broken(": ".join([promise, *map(str, details)]))


def stored(path: Path) -> list[dict[str, Any]]:
    """The events of a journal that anybody must be able to read."""
    try:
        return read(path).events
    except JournalError as error:
        raise Broken(f"the journal cannot be read: {error}") from error


def times(count: int) -> int:
    """A count of the plan, at the scale wanted."""
    return max(1, round(SCALE * count))
