"""What was asked and what was told: the only state of a study, as an append-only log."""

from covey.history.codec import event_from_json, event_to_json
from covey.history.events import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Dispatched,
    Enqueued,
    Event,
    Failed,
    Late,
    Lost,
    Told,
)
from covey.history.history import Batch, History
from covey.history.trial import Origin, Point, Status, Trial

__all__ = [
    "Added",
    "Amended",
    "Asked",
    "Batch",
    "Cancelled",
    "Dispatched",
    "Enqueued",
    "Event",
    "Failed",
    "History",
    "Late",
    "Lost",
    "Origin",
    "Point",
    "Status",
    "Told",
    "Trial",
    "event_from_json",
    "event_to_json",
]
