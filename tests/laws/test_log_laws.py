"""The log is the only state: replay is the live history, and nothing acknowledged is ever lost.

Each check of the journal has a twin with one deliberate defect, which the check must catch.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from covey.errors import HistoryError, JournalConflict, JournalError
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Enqueued,
    Failed,
    History,
    Point,
    Told,
    event_from_json,
    event_to_json,
)
from covey.journal import Journal, disk, lines, read

# ---------------------------------------------------------------- history

finite = st.floats(-1e100, 1e100)
errors = st.none() | st.floats(0.0, 1e100)
points = st.dictionaries(
    st.text(max_size=4), finite | st.integers() | st.text(max_size=4) | st.booleans(), max_size=3
).map(Point)
batches = st.lists(points, min_size=1, max_size=4).map(tuple)
models = st.none() | st.lists(
    st.dictionaries(st.text(max_size=4), finite | st.lists(finite, max_size=2), max_size=2),
    max_size=2,
)
ids = st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def tellings(draw):
    chosen = draw(ids)
    fixed = {"min_size": len(chosen), "max_size": len(chosen)}
    return Told(chosen, draw(st.lists(finite, **fixed)), draw(st.lists(errors, **fixed)))


@st.composite
def additions(draw):
    chosen = draw(batches)
    fixed = {"min_size": len(chosen), "max_size": len(chosen)}
    return Added(chosen, draw(st.lists(finite, **fixed)), draw(st.lists(errors, **fixed)))


events = st.one_of(
    st.builds(Asked, batches, st.text(max_size=5), models),
    st.builds(Enqueued, batches),
    additions(),
    tellings(),
    st.builds(Failed, ids, st.text(max_size=5)),
    st.builds(Cancelled, ids),
    st.builds(Amended, st.integers(0, 12), finite, st.just("typo"), errors),
)


class Model:
    """The slow obvious way: a list of plain dicts, changed in place."""

    def __init__(self):
        self.rows, self.asked, self.rounds, self.models = [], 0, 0, None

    def allows(self, event) -> bool:
        chosen = [event.id] if isinstance(event, Amended) else getattr(event, "ids", ())
        if any(i >= len(self.rows) for i in chosen):
            return False
        statuses = {self.rows[i]["status"] for i in chosen}
        if isinstance(event, Told):
            return "told" not in statuses
        if isinstance(event, Failed | Cancelled):
            return statuses == {"pending"}
        return not isinstance(event, Amended) or statuses == {"told"}

    def apply(self, event) -> None:
        if isinstance(event, Asked):
            self.asked += len(event.points)
            self.rounds += 1
            self.models = event.models if event.models is not None else self.models
        if isinstance(event, Asked | Enqueued | Added):
            self.create(event)
        elif isinstance(event, Told):
            for i, value, sem in zip(event.ids, event.values, event.sems, strict=True):
                self.rows[i] |= {"status": "told", "value": value, "sem": sem}
        elif isinstance(event, Amended):
            self.rows[event.id]["value"] = event.value
            if event.sem is not None:
                self.rows[event.id]["sem"] = event.sem
        else:
            for i in event.ids:
                self.rows[i]["status"] = type(event).__name__.lower()

    def create(self, event) -> None:
        kind = type(event).__name__.lower()
        for k, point in enumerate(event.points):
            row = {"id": len(self.rows), "point": dict(point), "origin": kind}
            row |= {"status": "pending", "value": None, "sem": None}
            if kind == "added":
                row |= {"status": "told", "value": event.values[k], "sem": event.sems[k]}
            self.rows.append(row)

    def describes(self, history: History) -> bool:
        names = ("id", "point", "origin", "status", "value", "sem")
        rows = [{name: getattr(trial, name) for name in names} for trial in history.trials]
        counts = (len(history), history.asked_count, history.rounds, history.models)
        return rows == self.rows and counts == (
            len(self.rows),
            self.asked,
            self.rounds,
            self.models,
        )


class LiveLog(RuleBasedStateMachine):
    """Any events, legal or not, from any moment of the past, against the model."""

    def __init__(self):
        super().__init__()
        self.now = (History(), Model(), [])
        self.past = [(self.now[0], deepcopy(self.now[1]))]

    @rule(event=events)
    def happens(self, event):
        history, model, log = self.now
        if not model.allows(event):
            for refuse in (history.check, history.then):
                with pytest.raises(HistoryError):
                    refuse(event)
            return
        history.check(event)
        model, log = deepcopy(model), [*log, event]
        model.apply(event)
        self.now = (history.then(event), model, log)
        self.past.append((self.now[0], model))

    @precondition(lambda self: len(self.past) > 2)
    @rule(data=st.data())
    def somebody_goes_on_from_an_older_view(self, data):
        history, model = data.draw(st.sampled_from(self.past))
        self.now = (history, model, list(history.events))

    @invariant()
    def the_live_history_is_what_the_model_says(self):
        history, model, log = self.now
        assert model.describes(history)
        assert history.events == tuple(log)

    def teardown(self):
        for history, model in self.past:
            assert model.describes(history), "an older view changed"
            assert model.describes(History(history.events)), "a replay differs"


LiveLog.TestCase.settings = settings(stateful_step_count=25, max_examples=50, deadline=None)
TestLiveLog = LiveLog.TestCase


@given(events, st.integers(0, 10**6))
def test_every_event_survives_json(event, first):
    written = json.loads(json.dumps(event_to_json(event, dict, first), allow_nan=False))
    again = event_from_json(written, Point, first)
    assert again == event
    assert repr(again) == repr(event)  # to the last bit: -0.0 is not 0.0


def legal(candidates) -> History:
    history = History()
    for event in candidates:
        try:
            history = history.then(event)
        except HistoryError:
            continue
    return history


@given(st.lists(events, max_size=15))
def test_a_history_read_from_its_journal_is_the_live_history(candidates):
    live, again = History(), History()
    with TemporaryDirectory() as folder:
        with Journal.create(Path(folder) / "run", {}) as journal:
            for event in legal(candidates).events:
                journal.append(event_to_json(event, dict, len(live)))
                live = live.then(event)
        stored = read(Path(folder) / "run").events
    for event in stored:
        again = again.then(event_from_json(event, Point, len(again)))
    assert again.trials == live.trials
    assert again.events == live.events
    assert (again.asked_count, again.rounds, again.models) == (
        live.asked_count,
        live.rounds,
        live.models,
    )


# ---------------------------------------------------------------- journal


def written(path, sizes=(0, 40, 400)) -> bytes:
    """A journal with one event of each size."""
    with Journal.create(path, {"study": "demo"}) as journal:
        for n, size in enumerate(sizes):
            journal.append({"n": n, "pad": "x" * size})
    return path.read_bytes()


def numbers(path) -> list[int]:
    return [event["n"] for event in read(path).events]


def ends(data: bytes) -> list[int]:
    return [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]


def test_truncation_anywhere_leaves_exactly_the_complete_lines(tmp_path):
    """R7, at every byte of the file."""
    whole = written(tmp_path / "whole")
    header, *complete = ends(whole)
    path = tmp_path / "cut"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        if cut < header:
            with pytest.raises(JournalError):
                read(path)
            continue
        survivors = sum(end <= cut for end in complete)
        assert numbers(path) == list(range(survivors))
        if cut % 10 == 0:  # the next test appends after every cut
            with Journal.open(path) as journal:
                assert journal.append({"n": survivors}) == survivors + 1
            assert numbers(path) == list(range(survivors + 1))


class Died(BaseException):
    """The process is gone: nothing it would have done next happens."""


def die_after(patch, count: int, filler: bytes = b""):
    """Let the next write stop after ``count`` bytes, and the writer with it."""
    real = os.write

    def write(fd, data):
        real(fd, data[:count] + filler * (len(data) - count - 1))
        raise Died

    def gone(*_args):
        raise Died

    patch.setattr(os, "write", write)
    patch.setattr(os, "ftruncate", gone)
    patch.setattr(os, "fsync", gone)


def survives_a_cut(path, size: int, count: int, filler: bytes) -> bool:
    """Die after ``count`` bytes of an event, recover, append, read again: is all as it should?"""
    with pytest.MonkeyPatch.context() as patch, Journal.open(path) as journal:
        die_after(patch, count, filler)
        with pytest.raises(Died):
            journal.append({"n": 1, "pad": "x" * size})
    try:
        with Journal.open(path) as journal:
            before = [event["n"] for event in journal.events]
            journal.append({"n": 2})
        with Journal.open(path) as journal:
            journal.append({"n": 3})
        return before in ([0], [0, 1]) and numbers(path) == [*before, 2, 3]
    except JournalError:
        return False


def cuts(tmp_path, sizes=(0, 60, 5000), step=1) -> list[bool]:
    path, outcomes = tmp_path / "run", []
    for size, filler in itertools.product(sizes, (b"", b"\0")):
        length = len(lines.event_line(2, {"n": 1, "pad": "x" * size}))
        stride = step if size < 1000 else 97  # every byte of the small records, some of the large
        for count in [*range(0, length - 1, stride), length - 1, length]:
            path.unlink(missing_ok=True)
            written(path, sizes=(0,))
            outcomes.append(survives_a_cut(path, size, count, filler))
    return outcomes


def test_a_writer_that_dies_after_any_byte_costs_nobody_an_event(tmp_path):
    """R3: old events intact, the new one whole or absent, the next one readable."""
    outcomes = cuts(tmp_path)
    assert len(outcomes) > 500
    assert all(outcomes)


def test_a_journal_without_tail_repair_would_be_caught(tmp_path, monkeypatch):
    def append_blindly(self):
        self._good = os.fstat(self._fd).st_size

    monkeypatch.setattr(Journal, "_settle", append_blindly)
    outcomes = cuts(tmp_path, sizes=(0,), step=9)
    assert outcomes.count(False) > len(outcomes) / 2


def flips(data: bytes, path, chosen=None) -> list[str]:
    """What a reader makes of each single flipped bit: 'detected', 'harmless' or 'believed'."""
    path.write_bytes(data)
    truth = read(path)
    outcomes = []
    for place in range(8 * len(data)) if chosen is None else chosen:
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            seen = read(path)
        except JournalError:
            outcomes.append("detected")
            continue
        same = (seen.header, seen.events) == (truth.header, truth.events)
        outcomes.append("harmless" if same else "believed")
    return outcomes


def test_every_flipped_bit_is_detected(tmp_path):
    """R8, at each bit of a file with three events."""
    data = written(tmp_path / "whole", sizes=(0, 5, 0))
    assert set(flips(data, tmp_path / "flipped")) == {"detected"}


def test_flipped_bits_in_a_torn_line_are_harmless_or_detected(tmp_path):
    data = written(tmp_path / "whole", sizes=(0,)) + b'{"seq":2,"at":"2026","by":"J'
    outcomes = flips(data, tmp_path / "flipped")
    kept = 8 * ends(data)[-1]
    assert set(outcomes[:kept]) == {"detected"}
    assert set(outcomes[kept:]) == {"harmless", "detected"}  # J is one bit from a newline


def believed(tmp_path) -> int:
    data = written(tmp_path / "whole", sizes=(0, 5, 0))
    chosen = random.Random(0).sample(range(8 * len(data)), 400)
    chosen += range(8 * len(data) - 8, 8 * len(data))  # the last newline
    return flips(data, tmp_path / "flipped", chosen).count("believed")


def test_a_reader_without_checksums_would_be_caught(tmp_path, monkeypatch):
    def trusting(line, where):
        try:
            return json.loads(line)
        except ValueError as error:
            raise JournalError(where) from error

    monkeypatch.setattr(lines, "_unseal", trusting)
    assert believed(tmp_path) > 20


def test_a_reader_that_takes_a_lost_newline_for_a_torn_line_would_be_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_require_torn", lambda line, where: None)
    assert believed(tmp_path) >= 7


def edits(data: bytes) -> dict[str, bytes]:
    header, first, second, third = data.splitlines(keepends=True)
    at = len(header) + 30
    return {
        "swapped": header + second + first + third,
        "doubled": header + first + first + second + third,
        "missing": header + first + third,
        "windows": data.replace(b"\n", b"\r\n"),
        "marked": b"\xef\xbb\xbf" + data,
        "zeroed": data[:at] + b"\0" * 64 + data[at + 64 :],
        "emptied": data[: len(header)] + b"\0" * (len(data) - len(header) - 1) + b"\n",
        "joined": header + first[:-1] + second + third,
        "blank line": header + first + b"\n" + second + third,
        "two headers": header + data,
        "long line": header + first + b"x" * 10_000_000 + b"\n" + third,
    }


def test_every_edited_file_is_refused(tmp_path):
    data = written(tmp_path / "whole", sizes=(0, 0, 0))
    for name, edited in edits(data).items():
        (tmp_path / "edited").write_bytes(edited)
        for start in (read, Journal.open):
            with pytest.raises(JournalError, match=r"is damaged|not a covey journal"):
                start(tmp_path / "edited")
        assert (tmp_path / "edited").read_bytes() == edited, name


# ---------------------------------------------------------------- faults


class Faults:
    """Counts the calls that touch the disk and lets the k-th of them fail."""

    names = ("write", "fsync", "ftruncate", "link", "open")

    def __init__(self, patch, path, at: int, kind: int | str):
        self.calls, self.at, self.kind, self.path = 0, at, kind, path
        self.failed: list[str] = []
        self.durable = b""
        for name in self.names:
            patch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name, real):
        def call(*args, **kwargs):
            self.calls += 1
            if self.calls == self.at:
                self.failed.append(name)
                if name == "write" and self.kind == "short":
                    return real(args[0], args[1][: len(args[1]) // 2])
                if name == "write":  # half of it arrives before the error
                    real(args[0], args[1][: len(args[1]) // 2])
                number = errno.EIO if self.kind == "short" else self.kind
                raise OSError(number, os.strerror(number))
            result = real(*args, **kwargs)
            if name == "fsync" and disk.is_at(args[0], self.path):
                self.durable = self.path.read_bytes()  # all else is lost with the power
            return result

        return call


def a_session(path, acked: list[int], refused: list[int]) -> None:
    """Start a journal, write, lose the end of a line, go on: every kind of call is made."""
    journal = Journal.create(path, {})
    for n in range(4):
        if n == 2:
            with path.open("ab") as file:
                file.write(b'{"seq":3,"torn')
        before = path.read_bytes()
        try:
            journal.append({"n": n})
            acked.append(n)
        except JournalError:
            refused.append(n)
            now = path.read_bytes()
            undone = now in (before, before[: before.rfind(b"\n") + 1])
            assert undone or journal._broken, "a failed append left something behind"
    journal.close()


def runs_with_faults(folder, kinds) -> list[Faults]:
    """Run the session with a fault at each call in turn, and judge what is left each time."""
    runs = []
    for kind in kinds:
        for at in itertools.count(1):
            path, acked, refused = folder / f"{kind}-{at}" / "run", [], []
            path.parent.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                faults = Faults(patch, path, at, kind)
                try:
                    a_session(path, acked, refused)
                except JournalError:
                    # A journal that could not be created is not there; one that could not be
                    # opened afterwards is whole.
                    assert not path.exists() or read(path).events == []
                    runs.append(faults)
                    continue
            if not faults.failed:
                assert acked == [0, 1, 2, 3]
                break
            judge(path, acked, refused, faults)
            runs.append(faults)
    return runs


def judge(path, acked, refused, faults) -> None:
    assert not set(acked) & set(refused)
    found = numbers(path)
    assert [n for n in found if n in acked] == acked, "an acknowledged event was lost"
    assert set(found) <= {*acked, *refused}
    with Journal.open(path) as journal:
        journal.append({"n": 99})
    assert numbers(path) == [*found, 99]
    if acked:
        (path.parent / "after").write_bytes(faults.durable)
        kept = numbers(path.parent / "after") if faults.durable else []
        assert [n for n in kept if n in acked] == acked, "an acknowledged event was not flushed"


KINDS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, "short")


def test_a_fault_at_any_call_gives_a_valid_journal_and_no_false_acknowledgement(tmp_path):
    """R5 and the power model of R4: each call that touches the disk fails once."""
    runs = runs_with_faults(tmp_path, KINDS)
    assert len(runs) > 100
    assert {name for run in runs for name in run.failed} == set(Faults.names)


def test_a_fault_during_the_undoing_of_a_fault_poisons_the_handle(tmp_path):
    with Journal.create(tmp_path / "run", {}) as journal:
        journal.append({"n": 0})
        with pytest.MonkeyPatch.context() as patch:
            Faults(patch, tmp_path / "run", 1, errno.ENOSPC)
            patch.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO)))
            with pytest.raises(JournalError):
                journal.append({"n": 1})
        with pytest.raises(JournalError, match="could not be undone"):
            journal.append({"n": 1})
    judge(tmp_path / "run", [0], [1], type("", (), {"durable": (tmp_path / "run").read_bytes()}))


def break_commit(monkeypatch, defect: str) -> None:
    if defect == "no flush":
        monkeypatch.setattr(Journal, "_sync", lambda self: None)
    if defect == "no roll back":
        monkeypatch.setattr(Journal, "_roll_back", lambda self: None)
    if defect == "errors swallowed":

        def commit(self, line):
            try:
                os.lseek(self._fd, self._good, os.SEEK_SET)
                os.write(self._fd, line)
                os.fsync(self._fd)
            except OSError:
                return
            self.seq += 1
            self._good += len(line)

        monkeypatch.setattr(Journal, "_commit", commit)


@pytest.mark.parametrize(
    ("defect", "verdict"),
    [
        ("no flush", "an acknowledged event was not flushed"),
        ("no roll back", "a failed append left something behind"),
        ("errors swallowed", "an acknowledged event was lost"),
    ],
)
def test_a_careless_commit_would_be_caught(tmp_path, monkeypatch, defect, verdict):
    break_commit(monkeypatch, defect)
    with pytest.raises(AssertionError, match=verdict):
        runs_with_faults(tmp_path, (errno.ENOSPC, "short"))


# ---------------------------------------------------------------- processes

WRITER = """
import sys, time
from covey.journal import Journal
journal = Journal.open(sys.argv[1])
print("ready", flush=True)
while True:
    if sys.argv[2] == "early":
        print(journal.seq + 1, flush=True)
        time.sleep(0.001)
        journal.append({"n": journal.seq + 1})
    else:
        print(journal.append({"n": journal.seq + 1}), flush=True)
"""


def kill_a_writer(path, when: str, delay: float) -> list[int]:
    """Start a writer, kill it, and return what it had acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), when], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "ready\n"
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    out, _ = writer.communicate()
    # A last line without its newline was cut by the kill: it was not said.
    return [int(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]


def lost_to_kills(path, when: str, kills: int) -> int:
    rng, lost = random.Random(0), 0
    Journal.create(path, {}).close()
    for _ in range(kills):
        acked = kill_a_writer(path, when, rng.uniform(0.004, 0.03))
        stored = numbers(path)
        assert stored == list(range(1, len(stored) + 1))
        lost += len(set(acked) - set(stored))
    return lost


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path):
    """R1, in small: the next writer also starts at once, with no stale lock in its way."""
    assert lost_to_kills(tmp_path / "run", "late", kills=20) == 0
    assert len(numbers(tmp_path / "run")) > 20


def test_an_acknowledgement_before_the_write_would_be_caught(tmp_path):
    assert lost_to_kills(tmp_path / "run", "early", kills=8) > 0


RIVAL = """
import sys
from covey.errors import JournalConflict
from covey.journal import Journal
path, name, conflicts = sys.argv[1], sys.argv[2], 0
for n in range(25):
    while True:
        with Journal.open(path) as journal:
            try:
                journal.append({"n": f"{name}{n}"})
                break
            except JournalConflict:
                conflicts += 1
print(conflicts)
"""


def test_rivals_that_load_again_after_a_conflict_lose_nothing(tmp_path):
    """R2, in small: each event once, in each writer's order, numbered without gaps."""
    path = tmp_path / "run"
    Journal.create(path, {}).close()
    rivals = [
        subprocess.Popen([sys.executable, "-c", RIVAL, str(path), name], stdout=subprocess.PIPE)
        for name in "abc"
    ]
    assert [rival.wait(60) for rival in rivals] == [0, 0, 0]
    for rival in rivals:
        rival.stdout.close()
    found = numbers(path)
    assert len(found) == 75
    for name in "abc":
        assert [n for n in found if n.startswith(name)] == [f"{name}{n}" for n in range(25)]


def one_overtakes_another(path) -> tuple[list[str], list[str]]:
    """Let a second writer try to append while the first is about to: who was acknowledged?"""
    Journal.create(path, {}).close()
    acked = []
    with Journal.open(path) as first, Journal.open(path) as second:

        def append(journal, name):
            try:
                journal.append({"n": name})
                acked.append(name)
            except JournalConflict:
                pass

        rival = threading.Thread(target=append, args=(second, "two"))
        settle = first._settle

        def settle_then_wait():
            settle()
            rival.start()
            rival.join(0.3)

        first._settle = settle_then_wait
        append(first, "one")
        rival.join()
    return acked, numbers(path)


def test_a_writer_cannot_slip_in_between_a_look_and_a_write(tmp_path):
    assert one_overtakes_another(tmp_path / "run") == (["one"], ["one"])


def test_a_journal_without_a_lock_would_be_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_fcntl", None)
    acked, stored = one_overtakes_another(tmp_path / "run")
    assert (sorted(acked), stored) == (["one", "two"], ["one"])
