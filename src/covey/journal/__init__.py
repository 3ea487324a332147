"""The durable log of a study: one file, one line per event."""

from covey.journal.journal import Journal, read
from covey.journal.lines import FORMAT, Contents

__all__ = ["FORMAT", "Contents", "Journal", "read"]
