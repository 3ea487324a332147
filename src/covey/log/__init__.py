"""The durable log of a study: a journal file with one line per event.

log.py has the `Log` protocol and `Logbook`, which commits events; header.py the header.
"""

from covey.disk import Mutex, drive_kind
from covey.log.journal import FORMAT, Contents, Journal, read, repair
from covey.log.running import Holder, holder, lock_path, running

__all__ = [
    "FORMAT",
    "Contents",
    "Holder",
    "Journal",
    "Mutex",
    "drive_kind",
    "holder",
    "lock_path",
    "read",
    "repair",
    "running",
]
