"""The durable log of a study: a journal file with one line per event.

log.py has the `Log` protocol and `Logbook`, which commits events; header.py the header.
"""

from covey.disk import Mutex, drive_kind
from covey.log.journal import FORMAT, Contents, Journal, read, repair
from covey.log.running import Run, Runs, running, runs_of

__all__ = [
    "FORMAT",
    "Contents",
    "Journal",
    "Mutex",
    "Run",
    "Runs",
    "drive_kind",
    "read",
    "repair",
    "running",
    "runs_of",
]
