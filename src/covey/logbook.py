"""Logbook: a study's history and, where there is one, the journal that keeps it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from covey.errors import JournalConflict, JournalError, StrategyError
from covey.gp import GP
from covey.history import Event, History, Trial, event_from_json, event_to_json
from covey.journal import Journal
from covey.propose import Recipe
from covey.space import Pool, Space

_HEADER = ("space", "fingerprint", "goal", "strategy", "seed", "gp")


class Logbook:
    """The log of one study. It changes in one way: checked, written down, then believed."""

    def __init__(self, space: Space | Pool, journal: Journal | None = None) -> None:
        self.history = History()
        self._space = space
        self._journal = journal
        self._written = 0

    @classmethod
    def create(cls, path: Path, recipe: Recipe, strategy: dict[str, Any]) -> Self:
        """Start a journal; a strategy that is an object can only be named in it."""
        header = {
            "space": recipe.space.describe(),
            "fingerprint": recipe.space.fingerprint,
            "goal": recipe.goal,
            "strategy": strategy,
            "seed": recipe.seed,
            "gp": recipe.gp.describe(),
        }
        return cls(recipe.space, Journal.create(path, header))

    @classmethod
    def resume(cls, journal: Journal, space: Space | Pool) -> Self:
        """Replay a journal, to go on with it."""
        book = cls(space, journal)
        for line in journal.events:
            event = event_from_json(line, space.from_json, len(book.history))
            if event is not None:
                book.history = book.history.then(event)
        book._written = journal.seq
        return book

    def commit(self, event: Event) -> list[Trial]:
        """Add an event, or raise and change nothing; the trials it made."""
        before = self.history
        after = before.then(event)
        if self._journal is not None:
            if self._journal.seq != self._written:
                raise JournalConflict(
                    f"{self._journal.path} is ahead of this study, which was interrupted while "
                    "writing. Load it again."
                )
            self._journal.append(event_to_json(event, self._space.to_json, len(before)))
            self._written = self._journal.seq
        self.history = after
        return [after.trial(i) for i in range(len(before), len(after))]


def open_journal(path: Path) -> Journal:
    """An existing journal, if it is that of a study."""
    journal = Journal.open(path)
    missing = [name for name in _HEADER if name not in journal.header]
    if missing:
        journal.close()
        raise JournalError(
            f"{path} is not the journal of a study: its header lacks {', '.join(missing)}."
        )
    return journal


def strategy_in(journal: Journal) -> str:
    """The strategy a journal was started with."""
    written = journal.header["strategy"]
    if written["object"]:
        raise StrategyError(
            f"this journal used a strategy object ({written['name']}), which a log cannot hold; "
            "pass it again, as strategy=..."
        )
    return str(written["name"])


def gp_in(journal: Journal) -> GP:
    """The process a journal was started with."""
    unknown = set(journal.header["gp"]).difference(field.name for field in fields(GP))
    if unknown:  # a setting that is passed over would change the batches
        raise JournalError(
            f"{journal.path} was started with a GP that this covey does not know "
            f"({', '.join(sorted(unknown))}); it was written by a newer one, please upgrade."
        )
    return GP(**journal.header["gp"])


def recipe_in(journal: Journal, given: Recipe, seed: int | None, gp: GP | None) -> Recipe:
    """The recipe a journal was started with, if it agrees with what is given (None: nothing is)."""
    header = journal.header
    for what, written, now in (
        ("space", header["fingerprint"], given.space.fingerprint),
        ("goal", header["goal"], given.goal),
        ("seed", header["seed"], header["seed"] if seed is None else seed),
        ("gp", gp_in(journal), gp_in(journal) if gp is None else gp),
    ):
        if written != now:
            raise JournalError(
                f"{journal.path} belongs to a study with another {what} ({written!r}, not {now!r})."
                f" Use the {what} it was started with, or another file."
            )
    return Recipe(given.space, given.goal, gp_in(journal), header["seed"])
