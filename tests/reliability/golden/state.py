"""The whole state of a study, as plain JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import covey
from covey.history.trial import as_told


def state_of(study: covey.Study) -> dict[str, Any]:
    """All that a journal decides."""
    history = study.history
    made = {key: message.made for key, message in study._log._messages.items()}
    return {
        "goal": study.goal,
        "seed": study.seed,
        "fingerprint": study.space.fingerprint,
        "trials": [t.to_json(dict) for t in history.trials],
        "attempts": [[_told(a) for a in history.attempts(t.id)] for t in history.trials],
        "events": [type(event).__name__ for event in history.events],
        "asked": history.asked_count,
        "rounds": history.rounds,
        "reasons": [history.reason(t) for t in history.trials],
        "notes": [list(history.notes(t)) for t in history.trials],
        "reports": [[asdict(r) for r in history.reports(t)] for t in history.trials],
        "counted": [t.id for t in history.counted],
        "models": None if history.models is None else list(history.models),
        "plates": {
            name: [_readings(record), dict(record.marks), list(record.missing)]
            for name, record in history.plates.records.items()
        },
        "keys": {key: list(ids) for key, ids in made.items()},
    }


def _readings(record: Any) -> dict[str, Any]:
    """The readings of a plate, as numbers where outcomes have no names."""
    return {well: as_told(values) for well, values in record.readings.items()}


def _told(attempt: Any) -> dict[str, Any]:
    """What an attempt says; what later versions added, and it does not say, plays no part."""
    return {name: value for name, value in asdict(attempt).items() if value is not None}
