"""A word on how far a long reading has come."""

from __future__ import annotations

import logging
import time

_log = logging.getLogger("covey")


class Tally:
    """Counts rows as they are read; after two seconds, then four, then eight, it says how many."""

    def __init__(self, what: str) -> None:
        self.rows = 0
        self._what = what
        self._began = time.monotonic()
        self._next = 2.0

    def add(self, rows: int) -> None:
        """So many more have been read."""
        self.rows += rows
        spent = time.monotonic() - self._began
        if spent >= self._next:
            self._next = 2.0 * spent
            _log.info("reading %s: %d rows so far, in %.0f s", self._what, self.rows, spent)
