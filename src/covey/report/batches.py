"""Which batches a report shows and compares, what became of trials, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.catalog import STRATEGIES
from covey.errors import brief
from covey.history import Batch, Correction, History, Noted, Status, Trial
from covey.report.format import plain_text

_BATCHES = 12  # compared with their forecasts, at least
_POINTS = 48  # the same, where batches are small


def shown_batches(batches: Sequence[Batch], trials: Sequence[Trial]) -> tuple[Batch, ...]:
    """The batches with a pending trial; if there is none, the last one asked for, else the last."""
    still = [batch for batch in batches if any(trials[i].status == "pending" for i in batch.ids)]
    asked = [batch for batch in batches if batch.round is not None]
    return tuple(still or asked[-1:] or batches[-1:])


def recent(batches: Sequence[Batch]) -> tuple[Batch, ...]:
    """The last 12 batches that a model chose, or as many as hold 48 points (our choice)."""
    kept: list[Batch] = []
    points = 0
    for batch in reversed([batch for batch in batches if batch.modelled]):
        if len(kept) >= _BATCHES and points >= _POINTS:
            break
        kept.append(batch)
        points += len(batch.ids)
    return tuple(reversed(kept))


# What became of trials, and what people said of them.

_LATEST = 20
_WORDS = 300  # characters of a reason, or of a note


@dataclass(frozen=True, slots=True)
class Failure:
    """One trial that failed, was lost or is excluded, and why, in a line."""

    id: int
    batch: int | None
    status: Status
    reason: str  # empty if none was given
    ended: str = ""  # when its evaluation ended, as a time in ISO format
    seconds: float | None = None  # that it took


@dataclass(frozen=True, slots=True)
class Remark:
    """What somebody noted about a trial."""

    id: int
    batch: int | None
    text: str


def fates(history: History) -> dict[str, Any]:
    """The latest failures, exclusions, corrections and notes, each newest first."""
    trials = history.trials
    found = [one for one in history.corrections if not one.is_exclusion]
    noted = [event for event in history.events if isinstance(event, Noted)]
    notes = [(id, event.text) for event in noted for id in event.ids]
    return {
        "failures": _latest(history, [t for t in trials if t.status in ("failed", "lost")]),
        "excluded": _latest(history, [t for t in trials if t.excluded]),
        "corrections": tuple(
            Correction(one.ids, _short(one.what), _short(one.reason))
            for one in reversed(found[-_LATEST:])
        ),
        "remarks": tuple(
            Remark(id, history.batch(id), _short(text)) for id, text in reversed(notes[-_LATEST:])
        ),
    }


def _short(text: str) -> str:
    return plain_text(brief(text, _WORDS))


def _latest(history: History, trials: Sequence[Trial]) -> tuple[Failure, ...]:
    return tuple(
        Failure(
            t.id,
            history.batch(t),
            t.status,
            _short(t.reason),
            "" if t.ended_at is None else t.ended_at.isoformat(timespec="seconds"),
            t.seconds,
        )
        for t in reversed(trials[-_LATEST:])
    )


# The commands to type next, and those that give the same batch again.

_FIRST_BATCH = 8
_MOST_IDS = 20


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to type: ``next`` to go on, ``again`` to get the last batch once more."""

    next: tuple[str, ...]
    again: tuple[str, ...]


def python_commands(
    history: History, lots: Sequence[Batch], journal: str | Path | None = None
) -> Commands:
    """The commands of the Python API; a command line passes its own instead.

    Without a journal they go on with the ``study`` at hand: there is nothing to load.
    """
    load = () if journal is None else (f"study = covey.Study.load({str(journal)!r})",)
    asked = [lot for lot in lots if lot.round is not None]
    again = _again(asked[-1], load) if asked else ()
    first = ("import covey", *load) if load else ()
    return Commands((*first, *_next(history, asked)), again)


def _next(history: History, asked: Sequence[Batch]) -> tuple[str, ...]:
    pending = [trial.id for trial in history.pending]
    if not pending:
        return (f"batch = study.ask({len(asked[-1].ids) if asked else _FIRST_BATCH})",)
    if len(pending) > _MOST_IDS:
        return (
            "ids = [trial.id for trial in study.history.pending]",
            "study.tell(ids, values)  # one value for each, in this order",
        )
    return (
        f"study.tell({pending}, values)  # one value for each, in this order",
        f"study.fail({pending[0]})  # instead, for one that crashed",
    )


def _again(last: Batch, load: tuple[str, ...]) -> tuple[str, ...]:
    k = len(last.ids)
    known = f"strategy_of({last.strategy!r}, study.recipe.names)"
    yours = f"{last.strategy!r}, strategy  # your own object"
    return (
        "import covey",
        "from covey.catalog import strategy_of",
        "from covey.propose import Request, propose",
        *load,
        f"before = covey.History(study.history.events[:{last.known}])  # up to batch {last.round}",
        f"name, strategy = {known if last.strategy in STRATEGIES else yours}",
        f"request = Request({k}, strategy, name)  # fixed={{...}} too, if you held some",
        "propose(before, study.recipe, request).points",
    )
