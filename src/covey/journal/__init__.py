"""The durable log of a study: one file, one line per event."""

from covey.journal.descriptor import Mutex
from covey.journal.journal import Journal, read
from covey.journal.lines import FORMAT, Contents
from covey.journal.network import drive_kind
from covey.journal.repair import repair
from covey.journal.running import Holder, holder, lock_path, running

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
