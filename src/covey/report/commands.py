"""Commands: what to type next, and what gives the same batch again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from covey.catalog import STRATEGIES
from covey.history import History
from covey.report.lots import Lot

_FIRST_BATCH = 8
_MOST_IDS = 20


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to type: ``next`` to go on, ``again`` to get the last batch once more."""

    next: tuple[str, ...]
    again: tuple[str, ...]


def python_commands(
    history: History, lots: Sequence[Lot], journal: str | Path | None = None
) -> Commands:
    """The commands of the Python API; a command line passes its own instead.

    Without a journal they go on with the ``study`` at hand: there is nothing to load.
    """
    load = () if journal is None else (f"study = covey.Study.load({str(journal)!r})",)
    asked = [lot for lot in lots if lot.batch is not None]
    again = _again(asked[-1], load) if asked else ()
    first = ("import covey", *load) if load else ()
    return Commands((*first, *_next(history, asked)), again)


def _next(history: History, asked: Sequence[Lot]) -> tuple[str, ...]:
    pending = [trial.id for trial in history.pending]
    if not pending:
        return (f"batch = study.ask({asked[-1].size if asked else _FIRST_BATCH})",)
    if len(pending) > _MOST_IDS:
        return (
            "ids = [trial.id for trial in study.history.pending]",
            "study.tell(ids, values)  # one value for each, in this order",
        )
    return (
        f"study.tell({pending}, values)  # one value for each, in this order",
        f"study.fail({pending[0]})  # instead, for one that crashed",
    )


def _again(lot: Lot, load: tuple[str, ...]) -> tuple[str, ...]:
    known = f"strategy_of({lot.strategy!r})"
    yours = f"{lot.strategy!r}, strategy  # your own object"
    return (
        "import covey",
        "from covey.catalog import strategy_of",
        "from covey.propose import Request, propose",
        *load,
        f"before = covey.History(study.history.events[:{lot.place}])  # up to batch {lot.batch}",
        f"name, strategy = {known if lot.strategy in STRATEGIES else yours}",
        f"request = Request({lot.size}, strategy, name)  # fixed={{...}} too, if you held some",
        "propose(before, study.recipe, request).points",
    )
