"""The history of a study: its events in order, which are its only state, and its trials."""

from covey.history.codec import event_from_json, event_to_json
from covey.history.events import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Dispatched,
    Enqueued,
    Event,
    Excluded,
    Extended,
    Failed,
    Included,
    Late,
    Lost,
    Moved,
    Noted,
    Reported,
    Retried,
    Told,
)
from covey.history.history import History
from covey.history.rules import Correction
from covey.history.trial import Batch, Origin, Point, Status, Trial
from covey.history.wells import Measured, PlateRecord, Revised, Use

__all__ = [
    "Added",
    "Amended",
    "Asked",
    "Batch",
    "Cancelled",
    "Correction",
    "Dispatched",
    "Enqueued",
    "Event",
    "Excluded",
    "Extended",
    "Failed",
    "History",
    "Included",
    "Late",
    "Lost",
    "Measured",
    "Moved",
    "Noted",
    "Origin",
    "PlateRecord",
    "Point",
    "Reported",
    "Retried",
    "Revised",
    "Status",
    "Told",
    "Trial",
    "Use",
    "event_from_json",
    "event_to_json",
]
