"""The log of an Optuna study, told as a history of Covey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from covey.history import Added, Asked, Cancelled, Enqueued, Event, Failed, History, Point
from covey.integrations.optuna_shelf import Shelf

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

Fate = Literal["told", "failed", "pending"]
_MOST = 1e100  # in size, of a value that a history takes


def fate_of(trial: FrozenTrial) -> Fate:
    """What became of a trial, in Covey's words.

    A complete trial is told, unless its value is not finite or a constraint is violated (above
    zero): then it failed. A pruned trial failed too: its last value is that of a shorter run, and
    would mislead a model of whole ones. What runs or waits is pending.
    """
    if not trial.state.is_finished():
        return "pending"
    if trial.state.name != "COMPLETE" or trial.value is None or not abs(trial.value) <= _MOST:
        return "failed"
    return "failed" if any(c > 0.0 for c in trial.constraints.values()) else "told"


def history_of(shelf: Shelf, but: int) -> History:
    """All that a shelf's trials say about its space, without the trial of number ``but``.

    Batches are counted as asked for, so that randomness and rounds go on; then cancelled, for it
    is the trials that say what was run. Trials that lack a parameter of the space are left out.
    """
    events: list[Event] = []
    made = 0  # trials so far, which is the next id
    for batch in shelf.batches:
        events.append(Asked(tuple(map(Point, batch.points)), "batch"))
        events.append(Cancelled(tuple(range(made, made + len(batch.points)))))
        made += len(batch.points)
    found: dict[Fate, list[tuple[Point, Any]]] = {"told": [], "failed": [], "pending": []}
    for trial in shelf.trials:
        point = shelf.point_of(trial) if trial.number != but else None
        if point is not None:
            found[fate_of(trial)].append((Point(point), trial.value))
    for fate, seen in found.items():
        points = tuple(point for point, _ in seen)
        if not points:
            continue
        if fate == "told":
            events.append(Added(points, tuple(value for _, value in seen)))
        else:
            events.append(Enqueued(points))
        if fate == "failed":
            events.append(Failed(tuple(range(made, made + len(points)))))
        made += len(points)
    return History(events)
