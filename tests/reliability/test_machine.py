"""R16: any sequence of messages, crashes and faults, against a table kept by hand."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.reliability.mutants import planted
from tests.reliability.platter import Died
from tests.reliability.verdict import PLAIN, SCALE, Broken, demand

import covey
from covey.errors import CoveyError, HistoryError, JournalError, SpaceError
from covey.history import Dispatched, Late, Lost
from covey.history.events import Excluded, Included, Noted, Reported, Retried

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
Message = tuple[Any, ...]

# ---------------------------------------------------------------- messages

ids = st.lists(st.integers(0, 7), min_size=1, max_size=2, unique=True).map(tuple)
values = st.integers(-9, 9).map(float)
sems = st.none() | st.just(0.25)
counts = st.integers(1, 2)
messages = st.one_of(
    st.tuples(st.just("ask"), counts),
    st.tuples(st.just("enqueue"), counts),
    st.tuples(st.just("add"), counts, values, sems),
    st.tuples(st.just("tell"), ids, values, sems),
    st.tuples(st.just("tell"), ids, values, sems),  # twice, as often as in life
    st.tuples(st.just("fail"), ids),
    st.tuples(st.just("cancel"), ids),
    st.tuples(st.just("lose"), ids),
    st.tuples(st.just("amend"), st.integers(0, 7).map(lambda i: (i,)), values),
    st.tuples(st.just("dispatch"), st.integers(0, 7).map(lambda i: (i,))),
    st.tuples(st.just("late"), st.integers(0, 7).map(lambda i: (i,)), values),
    # What later versions write more of: one message in twelve.
    st.one_of(
        st.tuples(st.sampled_from(["exclude", "include", "retry", "note"]), ids),
        st.tuples(st.just("report"), st.integers(0, 7).map(lambda i: (i,))),
        st.tuples(st.just("extend"), st.just(()), st.integers(2, 5)),
    ),
)
KEYED = ("ask", "enqueue", "add", "tell", "extend")
MAKING = ("ask", "enqueue", "add")


def points(count: int) -> list[dict[str, float]]:
    return [{"x": n / 4} for n in range(count)]


SENDING: dict[str, Callable[[covey.Study, Any, list[Any], dict[str, str]], object]] = {
    "ask": lambda study, k, _, key: study.ask(k, **key),
    "enqueue": lambda study, k, _, key: study.enqueue(points(k), **key),
    "add": lambda study, k, rest, key: study.add(points(k), [rest[0]] * k, rest[1], **key),
    "tell": lambda study, at, rest, key: study.tell(at, [rest[0]] * len(at), rest[1], **key),
    "fail": lambda study, at, rest, _: study.fail(at, "no reason"),
    "cancel": lambda study, at, rest, _: study.cancel(at),
    "lose": lambda study, at, rest, _: study.note(Lost(at)),
    "amend": lambda study, at, rest, _: study.amend(at[0], rest[0], "a typo"),
    "dispatch": lambda study, at, rest, _: study.note(Dispatched(at[0], 1, "covey", 3)),
    "late": lambda study, at, rest, _: study.note(Late(at[0], 1, rest[0])),
    "exclude": lambda study, at, rest, _: study.note(Excluded(at, "a wrong vial")),
    "include": lambda study, at, rest, _: study.note(Included(at, "the right vial")),
    "retry": lambda study, at, rest, _: study.note(Retried(at)),
    "note": lambda study, at, rest, _: study.note(Noted(at, "it was warm")),
    "report": lambda study, at, rest, _: study.note(Reported(at[0], 1, 3, 0.5)),
    "extend": lambda study, _, rest, key: extend(study, rest[0], key),
}


def extend(study: covey.Study, upper: int, key: dict[str, str]) -> None:
    """To a space with the same points under another name."""
    rule = covey.Linear({"x": 1.0}, upper=float(upper))
    try:
        study.extend(covey.Space(SPACE.parameters, where=[rule]), "a new rule", **key)
    except SpaceError as error:  # it has that space already
        raise HistoryError(str(error)) from error


def send(study: covey.Study, message: Message, key: str | None) -> None:
    kind, what, *rest = message
    SENDING[kind](study, what, rest, {} if key is None else {"key": key})


class Table:
    """What should be: a list of plain dicts, changed in place."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.events = 0
        self.upper: int | None = None  # of the rule of the space

    def allows(self, message: Message) -> bool:
        kind, what = message[:2]
        if kind in (*MAKING, "extend"):
            return kind != "extend" or message[2] != self.upper
        if any(i >= len(self.rows) for i in what):
            return False
        statuses = {self.rows[i]["status"] for i in what}
        if kind in ("note", "report"):
            return True
        if kind in ("exclude", "include"):
            excluded = {self.rows[i]["excluded"] for i in what}
            return statuses == {"told"} and excluded == {kind == "include"}
        if kind == "tell":
            return "told" not in statuses
        wanted = {"amend": "told", "late": "told", "retry": "failed"}.get(kind, "pending")
        return statuses == {wanted}

    def apply(self, message: Message) -> None:
        kind, what, *rest = message
        self.events += 1
        self.upper = rest[0] if kind == "extend" else self.upper
        if kind in MAKING:
            result = {"status": "pending", "value": None, "sem": None, "excluded": False}
            if kind == "add":
                result |= {"status": "told", "value": rest[0], "sem": rest[1]}
            self.rows += [dict(result) for _ in range(what)]
            return
        changes = {
            "tell": lambda: {"status": "told", "value": rest[0], "sem": rest[1]},
            "amend": lambda: {"value": rest[0]},
            "fail": lambda: {"status": "failed"},
            "cancel": lambda: {"status": "cancelled"},
            "lose": lambda: {"status": "lost"},
            "exclude": lambda: {"excluded": True},
            "include": lambda: {"excluded": False},
            "retry": lambda: {"status": "pending"},
        }.get(kind, dict)
        for i in what:
            self.rows[i] |= changes()

    def compare(self, study: covey.Study) -> None:
        names = ("status", "value", "sem", "excluded")
        found = [{name: getattr(t, name) for name in names} for t in study.history.trials]
        demand(found == self.rows, "the study is not what it should be", found, self.rows)
        events = len(study.history.events)
        demand(events == self.events, "events are missing or there twice", events, self.events)
        rules = [rule.upper for rule in study.space.linear]
        uppers = [] if self.upper is None else [self.upper]
        demand(rules == uppers, "the space is not what it should be", rules, uppers)


# ---------------------------------------------------------------- misfortunes


@contextmanager
def death_after(share: float) -> Iterator[None]:
    """The next write stops after a share of its bytes, and the process with it."""
    write = os.write

    def cut(fd: int, data: bytes) -> int:
        write(fd, data[: round(share * len(data))])
        raise Died

    def gone(*_: Any) -> None:
        raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", cut)
        patch.setattr(os, "ftruncate", gone)
        yield


@contextmanager
def failing(call: str, number: int) -> Iterator[None]:
    """This call fails once; of a write, half arrives."""
    real = getattr(os, call)
    left = itertools.repeat(None, 1)

    def fail(fd: int, *data: bytes) -> Any:
        if next(left, "over") == "over":
            return real(fd, *data)
        if data:
            real(fd, data[0][: len(data[0]) // 2])
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, fail)
        yield


class Life(RuleBasedStateMachine):
    """One study and its journal; other processes write to it too."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(dir=MEMORY)
        self.path = Path(self.folder.name) / "run"
        self.study = covey.Study(SPACE, strategy="random", seed=0, journal=self.path)
        self.table = Table()
        self.sent: list[tuple[Message, str]] = []  # the messages with a key
        self.fresh = True  # nobody else has written since

    def key(self, message: Message, keyed: bool) -> str | None:
        return f"message {len(self.sent)}" if keyed and message[0] in KEYED else None

    def happened(self, message: Message, key: str | None) -> None:
        self.table.apply(message)
        if key is not None:
            self.sent.append((message, key))

    def take(self, study: covey.Study, message: Message, key: str | None) -> None:
        """Send a message: it is taken, or refused for a reason that is there."""
        fits = self.table.allows(message)
        try:
            send(study, message, key)
        except HistoryError as error:
            demand(not fits, "a message that fits was refused", message, error)
            return
        demand(fits, "a message that does not fit was taken", message)
        self.happened(message, key)

    def begin_again(self) -> None:
        self.study._log.log.close()
        try:
            self.study = covey.Study.load(self.path)
        except CoveyError as error:
            raise Broken(f"the journal cannot be loaded: {error}") from error
        self.fresh = True
        self.table.compare(self.study)

    @rule(message=messages, keyed=st.booleans())
    def a_message(self, message: Message, keyed: bool) -> None:
        before = self.fresh
        self.take(self.study, message, self.key(message, keyed))
        self.fresh = before and self.fresh

    @rule(message=messages, keyed=st.booleans())
    def a_message_to_another_process(self, message: Message, keyed: bool) -> None:
        other = covey.Study.load(self.path)
        before = self.table.events
        self.take(other, message, self.key(message, keyed))
        other._log.log.close()
        self.fresh = self.fresh and self.table.events == before

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), elsewhere=st.booleans())
    def a_message_again(self, data: st.DataObject, elsewhere: bool) -> None:
        message, key = data.draw(st.sampled_from(self.sent))
        study = covey.Study.load(self.path) if elsewhere else self.study
        study.refresh()
        try:
            send(study, message, key)
        except CoveyError as error:
            raise Broken(f"a message was refused the second time: {error}") from error
        self.fresh = self.fresh or not elsewhere

    @rule(message=messages, keyed=st.booleans(), share=st.floats(0.0, 1.0), again=st.booleans())
    def a_crash(self, message: Message, keyed: bool, share: float, again: bool) -> None:
        key = self.key(message, keyed)
        events = self.table.events
        with death_after(share):
            try:
                send(self.study, message, key)
                demand(False, "it lived", message)
            except HistoryError:
                demand(not self.table.allows(message), "refused", message)
                return
            except Died:
                pass
        written = len(covey.Study.load(self.path, read_only=True).history.events) > events
        demand(not written or share > 0.9, "half a message was believed", share)
        if written:
            self.happened(message, key)
        self.begin_again()
        if again and key is not None:
            if written:
                send(self.study, message, key)
            else:
                self.take(self.study, message, key)

    @rule(
        message=messages,
        keyed=st.booleans(),
        fault=st.sampled_from([("write", errno.ENOSPC), ("fsync", errno.EIO)]),
    )
    def a_fault(self, message: Message, keyed: bool, fault: tuple[str, int]) -> None:
        self.study.refresh()
        key, fits = self.key(message, keyed), self.table.allows(message)
        torn = not self.path.read_bytes().endswith(b"\n")  # then it is flushed first, elsewhere
        with failing(*fault):
            try:
                send(self.study, message, key)
                demand(False, "it was acknowledged all the same", message)
            except HistoryError:
                demand(not fits, "refused", message)
            except JournalError:
                demand(fits, "it did not fit", message)
        self.table.compare(self.study)
        self.fresh = True
        if fault[0] == "fsync" and fits and not torn:
            try:
                self.study.enqueue([{"x": 0.5}])
            except JournalError:
                self.begin_again()
            else:
                raise Broken("a handle was used after a failed flush")

    @rule(tail=st.binary(max_size=20).filter(lambda data: b"\n" not in data))
    def somebody_leaves_half_a_line(self, tail: bytes) -> None:
        data = self.path.read_bytes()
        if data.endswith(b"\n"):
            self.path.write_bytes(data + tail)

    @rule()
    def a_new_start(self) -> None:
        self.begin_again()

    @invariant()
    def all_is_as_it_should_be(self) -> None:
        if self.fresh:
            self.table.compare(self.study)

    def teardown(self) -> None:
        try:
            self.begin_again()
            self.study._log.log.close()
        finally:
            self.folder.cleanup()


def check_life(examples: int, steps: int, shrink: bool = True) -> None:
    """Live through this many lives."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=phases,
            **PLAIN,
        ),
    )


def test_a_study_and_its_journal_are_what_the_table_says_whatever_happens():
    """R16: 200 lives of 30 steps; by night 5000 of 50."""
    check_life(*((200, 30) if SCALE < 10 else (5000, 50)))


@pytest.mark.parametrize(
    "defect",
    [
        "no tail repair",
        "no keys",
        "keys not replayed",
        "events of others passed over",
        "believed before it is written",
        "errors swallowed",
        "fsync again after it failed",
    ],
)
def test_lives_would_catch(defect):
    # A broken promise, or an error where none belongs.
    with pytest.raises((Broken, CoveyError)), planted(defect):
        check_life(200, 30, shrink=False)
