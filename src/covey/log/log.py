"""Logbook: a study's history and, where there is one, the journal that keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from covey.errors import HistoryError, JournalConflict, JournalDamaged, JournalError
from covey.history import (
    Added,
    Asked,
    Enqueued,
    Event,
    Extended,
    History,
    Told,
    Trial,
    event_from_json,
    event_to_json,
)
from covey.log.header import Recipe, header_of
from covey.log.journal import Contents, Journal
from covey.space import Pool, Space

if TYPE_CHECKING:
    from covey.propose import Request


class Logbook:
    """The log of one study. It changes in one way: checked, written down, then believed."""

    def __init__(self, space: Space | Pool, journal: Journal | None = None) -> None:
        self.history = History()
        self._space = space
        self._journal = journal
        self._written = 0
        self._keys: dict[str, Event] = {}
        self._made: dict[str, range] = {}  # key -> ids of the trials its event made
        self._sealed = ""
        self.damage: JournalDamaged | None = None  # of a journal that is only looked at

    @classmethod
    def create(cls, path: Path, recipe: Recipe, strategy: dict[str, Any]) -> Self:
        """Start a journal; a strategy that is an object can only be named in it."""
        return cls(recipe.space, Journal.create(path, header_of(recipe, strategy)))

    @classmethod
    def resume(cls, journal: Journal, space: Space | Pool) -> Self:
        """Replay a journal, to go on with it."""
        book = cls(space, journal)
        book._replay(journal.events)
        book._written = journal.seq
        return book

    @classmethod
    def sealed(cls, contents: Contents, space: Space | Pool, why: str) -> Self:
        """Replay what was read of a journal, to look at it and no more."""
        book = cls(space)
        book._replay(contents.events)
        book._sealed = why
        book.damage = contents.damage
        return book

    @property
    def path(self) -> Path | None:
        """Where the journal is, if there is one."""
        return None if self._journal is None else self._journal.path

    def made_by(self, key: str, request: Request) -> list[Trial] | None:
        """The trials of the batch of this key; None if the key was not used.

        Raises:
            HistoryError: The key was used for something else than this batch.
        """
        if key not in self._keys:
            return None
        self._require_batch(key, request.k, request.name, self._space.to_json(request.fixed))
        return [self.history.trial(i) for i in self._made[key]]

    def _require_batch(self, key: str, k: int, strategy: str, fixed: Mapping[str, Any]) -> None:
        """Refuse a key whose batch was not asked for in these words."""
        first = self._keys[key]
        if not isinstance(first, Asked):
            raise _used(key)
        if first.fixed is None:  # of an older covey: what was held shows in the points alone
            points = [self._space.to_json(point) for point in first.points]
            held = all(point.get(name) == fixed[name] for point in points for name in fixed)
        else:
            held = first.fixed == fixed
        if (len(first.points), first.strategy, held) != (k, strategy, True):
            then = _in_words(len(first.points), first.strategy, first.fixed)
            raise HistoryError(
                f"the key {key!r} was used before, for another batch: {then}, not "
                f"{_in_words(k, strategy, fixed)}. Give each batch a key of its own, and repeat a "
                "key only to repeat its ask."
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from writing to the journal, who wait, to think about what it says now."""
        with nullcontext() if self._journal is None else self._journal.held():
            self.refresh()
            yield

    def refresh(self) -> None:
        """Read what others have appended to the journal."""
        if self._journal is not None:
            self._require_in_step(self._journal)
            self._replay(self._journal.catch_up())
            self._written = self._journal.seq  # last: what is not believed is not in step

    def verify(self) -> None:
        """Raise if the file of a pool holds other candidates by now."""
        if isinstance(self._space, Pool):
            self._space.verify_source()

    def commit(self, event: Event, key: str | None = None) -> list[Trial]:
        """Add an event, or raise and change nothing; the trials it made.

        An event of a key that was used before is not added again. What others have appended is
        read first and the event is checked against it; but not a batch, which was chosen without
        knowing of theirs.

        Raises:
            JournalConflict: A batch was to follow on events that it does not know.
        """
        while True:
            if not isinstance(event, Asked):
                self.refresh()
            if key is not None and key in self._keys:
                return self._repeated(event, key)
            if isinstance(event, Asked | Told):
                self.verify()
            self.history.check(event)
            self._require_understood(event)
            try:
                return self._append(event, key)
            except JournalConflict:  # somebody wrote since; a batch has to be thought up again
                if isinstance(event, Asked):
                    raise

    def _append(self, event: Event, key: str | None) -> list[Trial]:
        if self._sealed:
            raise JournalError(self._sealed)
        first = len(self.history)
        if self._journal is not None:
            self._require_in_step(self._journal)
            line = event_to_json(event, self._space.to_json, first)
            self._journal.append(line if key is None else {**line, "key": key})
        self._believe(event, key)
        if self._journal is not None:
            self._written = self._journal.seq  # last, as in refresh
        return [self.history.trial(i) for i in range(first, len(self.history))]

    def _require_in_step(self, journal: Journal) -> None:
        """Refuse to go on where an interrupt, or an unknown event, came between log and belief.

        To number trials by what is believed would then give out ids that are taken on disk.
        """
        if journal.seq != self._written:
            raise JournalError(
                f"{journal.path} is ahead of this study, which was interrupted while reading or "
                "writing it. Load it again."
            )

    def _require_understood(self, event: Event) -> None:
        """Refuse to write, or to read on after, an event that asks for more than we can do."""
        if isinstance(event, Extended) and event.fingerprint != self._space.fingerprint:
            raise JournalError(
                f"the space of this log was extended ({event.reason}), which this covey cannot "
                "follow yet; upgrade it to go on: pip install --upgrade covey."
            )

    def _believe(self, event: Event, key: str | None) -> None:
        first = len(self.history)
        self.history = self.history.then(event)
        if key is not None:
            self._keys[key] = event
            self._made[key] = range(first, len(self.history))

    def _replay(self, lines: Iterable[Mapping[str, Any]]) -> None:
        events, count = [], len(self.history)
        for line in lines:
            event = event_from_json(line, self._space.from_json, count)
            if event is None:
                continue
            self._require_understood(event)
            events.append(event)
            made = len(event.points) if isinstance(event, Asked | Enqueued | Added) else 0
            if (key := _key_in(line)) is not None:
                self._keys[key] = event
                self._made[key] = range(count, count + made)
            count += made
        if not self._written and not len(self.history):
            self.history = History(events)  # at once, which is quicker for a long log
            return
        for event in events:
            self.history = self.history.then(event)

    def _repeated(self, event: Event, key: str) -> list[Trial]:
        if isinstance(event, Asked):  # thought up anew, so hardly the same points
            self._require_batch(key, len(event.points), event.strategy, event.fixed or {})
        elif self._keys[key] != event:
            raise _used(key)
        return [self.history.trial(i) for i in self._made[key]]


def _used(key: str) -> HistoryError:
    return HistoryError(
        f"the key {key!r} was used before, for something else; give each event a key of its own, "
        "and repeat a key only to repeat its event."
    )


def _in_words(k: int, strategy: str, fixed: Mapping[str, Any] | None) -> str:
    held = f" with {dict(fixed)!r} held" if fixed else " with nothing held" if fixed == {} else ""
    return f"{k} point{'' if k == 1 else 's'} by {strategy}{held}"


def _key_in(line: Mapping[str, Any]) -> str | None:
    key = line.get("key")
    if key is not None and not isinstance(key, str):
        raise JournalError(f"a malformed event: its key is {key!r}, which is no text.")
    return key
