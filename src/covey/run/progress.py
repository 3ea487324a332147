"""Progress: how far a run is, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; a function given as ``watch`` is called with one whenever it looks."""

    done: int  # evaluations told or failed
    total: int  # evaluations in all, as far as it is known
    running: int  # handed to the engine, not back yet
    failed: int
    best: float | None
    waiting_for: str  # what holds it up, in words
    left: float | None  # seconds, by what an evaluation took so far; None before one has ended
