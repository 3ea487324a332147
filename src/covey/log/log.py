"""The log of a study: the `Log` protocol, logs in memory, and `Logbook`, which commits events.

`MemoryLog` serves studies without a journal, `ReadOnlyLog` those opened to be read only.
"""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, runtime_checkable

from covey.arrays import among
from covey.disk import Mutex, now, time_of
from covey.errors import HistoryError, JournalConflict, JournalError, SpaceError, several
from covey.history import (
    Added,
    Asked,
    Enqueued,
    Event,
    Extended,
    History,
    Moved,
    Point,
    Told,
    Trial,
    event_from_json,
    event_to_json,
)
from covey.log.extension import (
    completed_by,
    extended,
    extension,
    require_known,
    require_possible,
    space_after,
    space_known_by,
)
from covey.log.journal import Contents, event_line, header_line, parse, parse_events
from covey.space import Pool, Space
from covey.space.covering import covering

if TYPE_CHECKING:
    from covey.propose import Request


@runtime_checkable
class Log(Protocol):
    """A handle on the durable log of one study: a header, and events numbered from 1.

    There may be other handles, in other threads, in other processes or on other machines. What was
    appended never changes. A log keeps the very line that `event_line` makes, so that one can
    be copied into another and back. `covey.testing.LogContract` says the same as tests.
    """

    @property
    def name(self) -> str:
        """Its name in messages: a path, an address."""

    @property
    def path(self) -> Path | None:
        """Its file, if it is kept in one."""

    @property
    def header(self) -> Mapping[str, Any]:
        """The header it was started with."""

    def read(self, since: int) -> list[dict[str, Any]]:
        """The events after number ``since``, in order; each durable before it is returned."""

    def append(self, event: Mapping[str, Any], after: int) -> int:
        """Add one event directly after event number ``after``; returns the new event's number.

        Once this returns, the event is durable. Its ``key``, if it has one, is in it.

        Raises:
            JournalConflict: There are events after number ``after``; nothing was written.
            JournalError: It could not be written, and is not there.
        """

    def asking(self) -> AbstractContextManager[None]:
        """Wait for a turn to choose a batch, and hold it; others can read and append meanwhile.

        A turn ends with its process, however that ends. It only keeps two asks from choosing the
        same batch in vain: correctness does not rest on it, but fairness does.
        """

    def running(self) -> AbstractContextManager[object]:
        """Hold the right to evaluate the pending trials of the log.

        Raises:
            JournalConflict: Another run holds it.
        """

    def close(self) -> None:
        """Release it; closing twice is harmless."""


class MemoryLog:
    """The log of a study without a journal; it is lost with its process."""

    name = "a log in memory"
    path = None

    def __init__(self, header: Mapping[str, Any] | None = None, begins_after: int = 0) -> None:
        parsed = parse(io.BytesIO(header_line(header or {})), self.name)
        self.header: Mapping[str, Any] = parsed.header
        self._lines: list[bytes] = []
        self._begins_after = begins_after  # events up to this number are not held
        self._lock, self._asks = Mutex(), Mutex()
        self._runner: int | None = None

    def read(self, since: int) -> list[dict[str, Any]]:
        """The events after number ``since``."""
        with self._lock:
            return parse_events(self._lines[since - self._begins_after :], since, 0, self.name)[0]

    def append(self, event: Mapping[str, Any], after: int) -> int:
        """Add one event directly after event number ``after``; returns the new event's number."""
        with self._lock:
            last = self._begins_after + len(self._lines)
            if after != last:
                raise JournalConflict(
                    f"{self.name}: somebody else has added {last - after} event(s) since it was "
                    "read; nothing was written. Read them and repeat."
                )
            self._lines.append(event_line(after + 1, event))
            return after + 1

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Wait for a turn to choose a batch, and hold it."""
        with self._asks:
            yield

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the right to evaluate the pending trials."""
        with self._lock:
            if self._runner == os.getpid():  # a forked child has a log of its own
                raise JournalConflict(f"{self.name}: this study is being run already. Wait for it.")
            self._runner = os.getpid()
        try:
            yield
        finally:
            self._runner = None

    def close(self) -> None:
        """Nothing to release."""


class ReadOnlyLog:
    """What was read of a journal, without a way to append to it."""

    path = None

    def __init__(self, name: str, contents: Contents) -> None:
        self.name, self.header, self.damage = name, contents.header, contents.damage
        self._events = contents.events
        self._why = "this study was opened read-only"
        self._why += f", as its journal is damaged: {self.damage}" if self.damage else "."

    def read(self, since: int) -> list[dict[str, Any]]:
        """The events after number ``since``."""
        return self._events[since:]

    def append(self, event: Mapping[str, Any], after: int) -> NoReturn:
        """Raise: the log is read only."""
        raise JournalError(self._why)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """No turn is needed."""
        yield

    def running(self) -> NoReturn:
        """Raise: the log is read only."""
        raise JournalError(self._why)

    def close(self) -> None:
        """Nothing to release."""


Requirement = Callable[[History], None]  # raises unless an event may follow on the history


class LogState(NamedTuple):
    """The state of a log at some time: its history, its last event's number, and the space."""

    history: History
    seq: int
    space: Space | Pool  # as it is after these events
    passed: tuple[Space | Pool, ...] = ()  # the spaces that it was before, oldest first

    def after(self, history: History, seq: int, space: Space | Pool) -> LogState:
        """The state after more events; a space that is left has passed."""
        passed = self.passed if space is self.space else (*self.passed, self.space)
        return LogState(history, seq, space, passed)


class Message(NamedTuple):
    """What was logged under a key."""

    event: Event
    made: range  # ids of the trials that the event created
    space: Space | Pool  # just before the event, in which a repeated message is read


class Logbook:
    """The log of one study and its history. An event is checked, then logged, then applied.

    ``lines`` are the events of the log that are read already; None reads all there are.
    """

    def __init__(
        self,
        space: Space | Pool,
        log: Log | None = None,
        lines: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._given = space  # the latest that the user gave, known by its fingerprint
        self._log: Log = MemoryLog() if log is None else log
        # One value, so that an interrupt finds it before an event or after it. What was logged and
        # not applied is read from the log the next time.
        self.state = LogState(History(), 0, space)
        self._messages: dict[str, Message] = {}  # by key
        if lines is None:
            self.refresh()
        else:
            self.state = self._replayed(lines)

    @property
    def history(self) -> History:
        """The history as far as the log was read."""
        return self.state.history

    @property
    def _space(self) -> Space | Pool:
        return self.state.space

    @property
    def log(self) -> Log:
        """The log that events are written to."""
        return self._log

    def rehearsal(self) -> Logbook:
        """A copy that goes on in memory; the log stays as it is."""
        begun = MemoryLog(begins_after=self.state.seq)
        begun.header = self._log.header
        copied = Logbook(self._given, begun, lines=())
        copied.state, copied._messages = self.state, dict(self._messages)
        return copied

    def space_for(self, key: str | None) -> Space | Pool:
        """Return the space in which a message is read: that of its time, if the key was used."""
        sent = None if key is None else self.message(key)
        return self._space if sent is None else sent.space

    def message(self, key: str) -> Message | None:
        """Return what was logged under this key, by others too; None if it was not used."""
        if key not in self._messages:
            self.refresh()
        return self._messages.get(key)

    def made_by(self, key: str, request: Request) -> list[Trial] | None:
        """The trials of the batch of this key; None if the key was not used.

        Raises:
            HistoryError: The key was used for something else than this batch.
        """
        if key not in self._messages:
            return None
        held, order = self._messages[key].space.to_json(request.fixed), request.plates
        layout = None if order is None else order.layout.describe()
        size = request.k if order is None else order.count
        return self._made_again(key, BatchTerms(size, request.name, held, layout))

    def _made_again(self, key: str, now: BatchTerms) -> list[Trial]:
        """Return the trials of a key that is used again, or refuse one used on other terms."""
        first, made, space = self._messages[key]
        if not isinstance(first, Asked):
            raise _used(key)
        then = BatchTerms.of(first)
        same = then == now
        if then.fixed is None:  # of an older version, which did not log fixed values
            held, points = now.fixed or {}, [space.to_json(point) for point in first.points]
            same = now._replace(fixed=None) == then and all(
                point.get(name) == value for point in points for name, value in held.items()
            )
        if not same:
            raise HistoryError(
                f"the key {key!r} was used before, for another batch: {then.in_words()}, not "
                f"{now.in_words()}. Give each batch a key of its own, and repeat a key only to "
                "repeat its ask."
            )
        return [self.history.trial(i) for i in made]

    def refresh(self) -> None:
        """Read what others have appended to the log."""
        lines = self._log.read(self.state.seq)
        if lines:
            self.state = self._replayed(lines)

    def verify(self) -> None:
        """Raise if the file of a pool has other candidates by now."""
        self._space.verify_source()

    def commit(
        self,
        event: Event,
        key: str | None = None,
        chosen_from: LogState | None = None,
        require: Requirement | None = None,
    ) -> list[Trial]:
        """Add an event, or raise and change nothing; the trials it created.

        An event whose key was used before is not added again. What others have appended is read
        first, and the event is checked against it. A batch may follow on results that it was
        chosen without; ``chosen_from`` is the state it was chosen from (default: the current one).
        ``require`` raises unless the history that the event is added to is as it has to be.

        Raises:
            JournalConflict: Others have asked since, or taken a point of this batch.
        """
        chosen_from = self.state if chosen_from is None else chosen_from
        # What an earlier round of the loop has looked at is not looked at again: in a long log
        # others write quicker than all of it is read, and the event would never get in.
        seen = chosen_from.history if isinstance(event, Asked) else History()
        depends = isinstance(event, Asked | Extended)  # on trials that it does not name
        while True:
            self.refresh()
            changed = self.history.changed_since(seen) if depends else ()
            if isinstance(event, Asked) and self._overtaken(event, chosen_from, changed):
                raise JournalConflict(
                    f"{self._log.name}: somebody else has asked, or taken a point of this batch, "
                    "since it was chosen; nothing was written. Ask again."
                )
            if key is not None and key in self._messages:
                return self._repeated(event, key)
            if require is not None:
                require(self.history)
            if isinstance(event, Asked | Told):
                self.verify()
            event = self._fitting(event, changed)
            self.history.check(event)
            seen = self.history
            try:
                return self._append(event, key, chosen_from.seq)
            except JournalConflict:  # others wrote after the refresh: read it and check again
                continue

    def extend(
        self,
        space: Space | Pool,
        reason: str,
        values: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> None:
        """Go on in another space, or raise and change nothing; see `Study.extend`."""
        self.refresh()
        event, space = extension(self.space_for(key), space, reason, values)
        if key is not None and key in self._messages:
            self._repeated(event, key)
            return
        if not event.changes:
            raise SpaceError("the study has this space already; nothing was written.")
        self._given = space
        self.commit(event, key)

    def _fitting(self, event: Event, changed: Sequence[Trial]) -> Event:
        """Check the event against the space as it is now, and complete it.

        An extension is checked against the trials in ``changed`` only.
        """
        if isinstance(event, Extended):
            after = extended(event, self._space, self._given)
            require_known(after, self._given, event.reason)
            require_possible(event, self._space, after, changed)
            event = completed_by(event, after, self.history)
            return replace(event, before=self._space.fingerprint)
        if isinstance(event, Enqueued | Added | Moved) and self.state.passed:
            # They may have been checked in the space that there was before.
            return replace(event, points=tuple(Point(self._space.check(p)) for p in event.points))
        return event

    def _overtaken(self, asked: Asked, chosen_from: LogState, changed: Sequence[Trial]) -> bool:
        """Whether events since make a batch invalid that was chosen from an earlier state.

        Another batch does: it may hold the same points, and was drawn with the same random numbers.
        So does another space. Results do not. Points of the user's own do if the batch has them
        too; so does a trial that was given up, and so free to be proposed again, if it was told
        after all.
        """
        then, free = chosen_from.history, ("cancelled", "lost")
        if self.history.rounds != then.rounds or self._space is not chosen_from.space:
            return True
        taken = [
            trial.point
            for trial in changed
            if trial.status not in free
            and (trial.id >= len(then) or then.trial(trial.id).status in free)
        ]
        if not taken:
            return False
        encode = covering(self._space, taken).encode
        return bool(among(encode(asked.points), encode(taken)).any())

    def _append(self, event: Event, key: str | None, chosen_from_seq: int) -> list[Trial]:
        history, seq, before, _ = self.state
        if isinstance(event, Asked) and event.after is None and chosen_from_seq != seq:
            event = replace(event, after=chosen_from_seq)
        space = extended(event, before, self._given) if isinstance(event, Extended) else before
        at = now()
        # Values of an extension one by one, since conditional parameters may exclude each other.
        write = covering(space, ()).to_json if isinstance(event, Extended) else space.to_json
        line = {"at": at, **event_to_json(event, write, len(history))}
        seq = self._log.append(line if key is None else {**line, "key": key}, seq)
        after = history.then_checked(event, time_of(at))
        made = range(len(history), len(after))
        if key is not None:
            self._messages[key] = Message(event, made, before)
        self.state = self.state.after(after, seq, space)
        return [after.trial(i) for i in made]

    def _replayed(self, lines: Iterable[Mapping[str, Any]]) -> LogState:
        lines, reason = list(lines), ""
        state = self.state
        if not state.seq:
            state = state._replace(space=self._first_space(lines))
        history, seq, space, _ = state
        events, times, count = [], [], len(history)
        for line in lines:
            seq += 1
            event = event_from_json(line, space.from_json, count)
            if event is None:
                continue
            before = space
            if isinstance(event, Extended):
                event = self._decoded(event, space)
                space, reason = extended(event, space, self._given), event.reason
                state = state.after(history, seq, space)
            events.append(event)
            times.append(time_of(line.get("at")))
            made = len(event.points) if isinstance(event, Asked | Enqueued | Added) else 0
            if (key := _key_in(line)) is not None:
                self._messages[key] = Message(event, range(count, count + made), before)
            count += made
        require_known(space, self._given, reason)
        if not self.state.seq:  # all at once, which is quicker for a long log
            return state.after(History(events, times), seq, space)
        for event, at in zip(events, times, strict=True):
            history = history.then(event, at)
        return state.after(history, seq, space)

    def _first_space(self, lines: Iterable[Mapping[str, Any]]) -> Space | Pool:
        """The space that the study began with, whose points the log holds first."""
        header = self._log.header
        if not any(line.get("type") == "extended" for line in lines) or "space" not in header:
            return self._space
        known = header["fingerprint"] == self._given.fingerprint
        return self._given if known else space_known_by(header, self._given)

    def _decoded(self, event: Extended, now: Space | Pool) -> Extended:
        if event.values is None:
            return event
        values = space_after(event, now, self._given).from_json(event.values, partial=True)
        return replace(event, values=Point(values))

    def _repeated(self, event: Event, key: str) -> list[Trial]:
        """Return the trials of a key that is used again; an error if its message was another."""
        if isinstance(event, Asked):  # chosen anew, so hardly the same points
            return self._made_again(key, BatchTerms.of(event)._replace(fixed=event.fixed or {}))
        first, made, _ = self._messages[key]
        if isinstance(first, Extended):  # completed by the trials of its time
            first = replace(first, having=None)
        if first != event:
            raise _used(key)
        return [self.history.trial(i) for i in made]


class BatchTerms(NamedTuple):
    """What an ask wants: so many points, or plates of a layout."""

    size: int
    strategy: str
    fixed: Mapping[str, Any] | None  # as JSON; None where a log does not say
    layout: Mapping[str, Any] | None  # of plates

    @classmethod
    def of(cls, asked: Asked) -> BatchTerms:
        """Return what a logged batch was asked for."""
        if asked.plates is None:
            return cls(len(asked.points), asked.strategy, asked.fixed, None)
        plates = {row[0] for row in (*asked.plates["wells"], *asked.plates["controls"])}
        return cls(len(plates), asked.strategy, asked.fixed, asked.plates["layout"])

    def in_words(self) -> str:
        """Say it for a message."""
        what = several(self.size, "point" if self.layout is None else "plate")
        laid_out = "" if self.layout is None else f" in the layout {self.layout}"
        held = f" with {dict(self.fixed)!r} held" if self.fixed else " with nothing held"
        return f"{what} by {self.strategy}{laid_out}{'' if self.fixed is None else held}"


@contextmanager
def no_collector() -> Iterator[None]:
    """Pause garbage collection while a log is read: all of its many small objects live on.

    It would take a third of the time of loading a hundred thousand events.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def checked_path(path: str | Path | None) -> Path | None:
    """The path of the journal, if there is one."""
    if path is not None and not isinstance(path, str | os.PathLike):
        raise JournalError(f"journal is a path such as 'run.jsonl'; got {path!r}.")
    return None if path is None else Path(path)


def exists(path: Path) -> bool:
    """Whether there is a file; JournalError if that cannot be found out."""
    try:
        return path.exists()
    except OSError as error:  # a folder that may not be entered, a name that is too long
        raise JournalError(f"cannot look for {path}: {error.strerror}.") from error


def _used(key: str) -> HistoryError:
    return HistoryError(
        f"the key {key!r} was used before, for something else; give each event a key of its own, "
        "and repeat a key only to repeat its event."
    )


def _key_in(line: Mapping[str, Any]) -> str | None:
    key = line.get("key")
    if key is not None and not isinstance(key, str):
        raise JournalError(f"a malformed event: its key is {key!r}, which is no text.")
    return key
