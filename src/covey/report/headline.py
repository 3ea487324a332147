"""The headline: where the study stands, in two sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from covey.errors import several
from covey.header import Goal
from covey.history import History, Trial
from covey.report.hindsight import Hindsight
from covey.report.lots import Lot
from covey.report.words import number, plus_minus


def headline(
    history: History, goal: Goal, lots: Sequence[Lot], hindsight: Mapping[int, Hindsight]
) -> str:
    """How much of the last batch is in, and what the best is worth beside what was known before."""
    asked = [lot for lot in lots if lot.batch is not None]
    best = history.best(goal)
    first = _arrived(asked[-1], history.trials) if asked else _before_any(lots)
    if best is None or best.value is None:
        return f"{first} Nothing has been told, so there is no best yet."
    origin = "" if best.origin == "asked" else f", {best.origin}"
    found = f"Best {number(best.value)} (trial {best.id}{origin})"
    home = next(lot for lot in lots if best.id in lot.ids)
    change = _change(best, home, asked[-1], history, goal) if asked else ""
    return f"{first} {found}{change}{_expected(home, hindsight.get(best.id))}."


def _arrived(lot: Lot, trials: Sequence[Trial]) -> str:
    statuses = [trials[i].status for i in lot.ids]
    rest = [
        f"{statuses.count(status)} {status}"
        for status in ("pending", "failed", "cancelled", "lost")
        if status in statuses
    ]
    ending = f"; {', '.join(rest)}" if rest else ""
    return f"Batch {lot.batch}: {statuses.count('told')} of {lot.size} in{ending}."


def _before_any(lots: Sequence[Lot]) -> str:
    entered = {
        kind: sum(lot.size for lot in lots if lot.kind == kind) for kind in ("added", "enqueued")
    }
    parts = [f"{several(n, 'trial')} {kind}" for kind, n in entered.items() if n]
    return f"No batch has been asked for yet{'; ' if parts else ''}{', '.join(parts)}."


def _change(best: Trial, home: Lot, last: Lot, history: History, goal: Goal) -> str:
    if home is not last:
        anything = any(history.trial(i).status == "told" for i in last.ids)
        if home.first > last.first:
            return ""
        return f", {'unchanged since' if anything else 'from'} {home.name}"
    values = [t.value for t in history.told if t.id < last.first and t.value is not None]
    if not values or best.value is None:
        return ""
    before = max(values) if goal == "max" else min(values)
    known = f"batch {last.batch - 1}" if last.batch and last.batch > 1 else "what was known before"
    gain = number(abs(best.value - before), 3)
    return f", {'up' if best.value > before else 'down'} {gain} from {known}"


def _expected(home: Lot, hindsight: Hindsight | None) -> str:
    if hindsight is not None:
        return f"; the model expected {plus_minus(hindsight.forecast.mean, hindsight.forecast.std)}"
    return "; it was chosen without a model" if home.kind == "asked" else ""
