"""Runs that share a journal: who has which trial, who lives, and what two of them may log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from tests.doors.run.scripted import Scripted, nothing, value

import covey
from covey.errors import JournalConflict, StrategyError
from covey.history import Began, Dispatched, Ended, Failed, Late, Lost, Reported, Told
from covey.log.running import Runs, folder_of, runs_of
from covey.run import Outcome, dispatcher
from covey.run.dispatcher import Dispatcher
from covey.run.standing import standing
from covey.run.task import Function, Retries, run_of

ROOT = Path(__file__).parents[3]
SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})
CALL = Function(abs)
registry = import_module("covey.log.running")  # the package has a function of this name


class Known(Runs):
    """Others of whom it is said who lives."""

    def __init__(self, living: set[str]) -> None:
        super().__init__(join=True)
        self.others = living

    def lives(self, run: str) -> bool:
        return run == self.id or run in self.others


class Side:
    """One of several runs: a study of its own on the shared journal, a dispatcher, an engine."""

    def __init__(self, path: Path, living: set[str], answer=nothing, **options) -> None:
        self.study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
        self.engine = Scripted(answer, **options)
        self.dispatcher = Dispatcher(self.study, self.engine, CALL, None, Retries(lost=0))
        self.dispatcher.runs = Known(living)
        self.run = self.dispatcher.runs.id
        living.add(self.run)

    def work(self) -> None:
        self.dispatcher.work(0.0)

    def events(self, kind):
        self.study.refresh()
        return [event for event in self.study.history.events if isinstance(event, kind)]


@pytest.fixture
def living():
    return set()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def test_two_runs_share_a_batch(path, living):
    one, two = (Side(path, living, slots=2) for _ in range(2))
    one.dispatcher.admit(one.study.ask(6))
    one.work()
    two.study.refresh()
    two.dispatcher.share()
    two.work()
    assert [task.id for task in one.engine.tasks] == [0, 1]
    assert [task.id for task in two.engine.tasks] == [2, 3]
    assert two.dispatcher.awaited == [0, 1, 2, 3, 4, 5]
    assert two.dispatcher.own == [2, 3, 4, 5]
    two.engine._answer = value
    for _ in range(3):
        two.work()
    one.engine._answer = value
    one.work()
    two.work()
    assert one.dispatcher.awaited == two.dispatcher.awaited == []
    assert Counter(id for event in two.events(Told) for id in event.ids) == Counter(range(6))
    assert {run_of(sent.name) for sent in two.events(Dispatched)} == {one.run, two.run}


@pytest.mark.parametrize("fenced", [True, False])
def test_of_two_runs_that_want_a_trial_one_gets_it(path, living, fenced, monkeypatch):
    """Both have read the same log; without the fence (the control) both start it."""
    if not fenced:
        monkeypatch.setattr(dispatcher, "follows", lambda sent: None)
    one, two = (Side(path, living) for _ in range(2))
    trials = one.study.ask(1)
    two.study.refresh()
    one.dispatcher.admit(trials)
    two.dispatcher.admit(trials)
    one.dispatcher._start()
    two.dispatcher._start()
    assert len(one.engine.tasks) == 1
    assert len(two.engine.tasks) == (0 if fenced else 1)
    assert len(two.events(Dispatched)) == (1 if fenced else 2)


def taken_over(path, living):
    """A run that was thought dead, and the one that has taken its trial."""
    old = Side(path, living)
    old.dispatcher.admit(old.study.ask(1))
    old.work()
    living.remove(old.run)
    new = Side(path, living)
    new.dispatcher.adopt(new.study.history.pending)
    new.work()
    assert [(sent.attempt, run_of(sent.name)) for sent in new.events(Dispatched)] == [
        (1, old.run),
        (2, new.run),
    ]
    living.add(old.run)
    return old, new


@pytest.mark.parametrize("status", ["failed", "lost", "timed-out"])
@pytest.mark.parametrize("read", [True, False])
def test_the_end_of_an_attempt_that_is_out_of_date_is_not_logged(path, living, status, read):
    old, new = taken_over(path, living)
    if read:
        old.study.refresh()
    (task,) = old.engine.tasks
    old.dispatcher._settle(Outcome(task.name, status, reason="late"))
    assert new.events(Failed) == new.events(Lost) == []
    new.engine._answer = value
    new.work()
    assert [event.ids for event in new.events(Told)] == [(0,)]


def test_without_the_fence_the_dead_would_end_the_trial_of_the_living(path, living, monkeypatch):
    monkeypatch.setattr(dispatcher, "is_last", lambda task: None)
    old, new = taken_over(path, living)
    (task,) = old.engine.tasks
    old.dispatcher._settle(Outcome(task.name, "lost", reason="late"))
    assert len(new.events(Lost)) == 1


def test_a_run_that_wakes_up_ends_what_another_has_taken_over(path, living):
    old, new = taken_over(path, living)
    old.work()
    assert old.engine.cancelled == [old.engine.tasks[0].name]
    assert new.engine.cancelled == []
    assert old.dispatcher.own == []
    assert old.dispatcher.awaited == [0]  # still waited for, elsewhere


def test_a_value_of_the_dead_is_taken_once_and_the_other_is_late(path, living):
    old, new = taken_over(path, living)
    old.engine._answer = lambda task: [Outcome(task.name, "succeeded", 1.0)]
    old.work()
    new.dispatcher._settle(Outcome(new.engine.tasks[0].name, "succeeded", 2.0))
    assert [event.values for event in new.events(Told)] == [({"value": 1.0},)]
    assert [(late.attempt, late.value) for late in new.events(Late)] == [(2, 2.0)]


@pytest.mark.parametrize("named", [True, False])
def test_a_result_that_two_runs_have_found_is_told_once(path, living, named, monkeypatch):
    if not named:
        monkeypatch.setattr(Dispatcher, "_key", lambda self, task: None)
    first = Side(path, living)
    first.dispatcher.admit(first.study.ask(1))
    first.work()
    name = first.engine.tasks[0].name
    living.clear()
    finders = [Side(path, living, known=[name]) for _ in range(2)]
    for side in finders:  # what it has left is found by both: its result is in the shared folder
        side.dispatcher.adopt(side.study.history.pending)
    for side in finders:
        side.dispatcher._settle(Outcome(name, "succeeded", 0.5))
    assert len(finders[0].events(Told)) == 1
    assert len(finders[0].events(Late)) == (0 if named else 1)


def test_what_a_run_left_that_died_is_looked_for_though_its_trial_was_queued_here(path, living):
    """Queued while it was free, then taken by a run that died: its evaluation may still run."""
    one = Side(path, living, slots=1)
    two = Side(path, living, slots=1)
    trials = one.study.ask(2)
    two.study.refresh()
    two.dispatcher.admit(trials)
    two.work()
    one.study.refresh()
    one.dispatcher.admit(trials[1:])
    one.work()
    two.engine._known = [one.engine.tasks[0].name]
    living.remove(one.run)
    two.engine._answer = value
    two.work()
    two.work()
    two.work()
    assert [event.ids for event in two.events(Told)] == [(0,), (1,)]
    assert len(two.events(Dispatched)) == 2  # the one that was found is not begun again


def test_a_retried_trial_is_free_for_all(path, living):
    one = Side(path, living)
    one.dispatcher.admit(one.study.ask(1))
    one.engine._answer = lambda task: [Outcome(task.name, "failed", reason="no")]
    one.work()
    two = Side(path, living, value)
    two.study.retry(0)
    two.dispatcher.share()
    two.work()
    assert [event.ids for event in two.events(Told)] == [(0,)]


def test_what_one_run_asked_for_and_was_stopped_with_is_left_to_others(path, living):
    one, two = Side(path, living, slots=1), Side(path, living, value)
    one.dispatcher.admit(one.study.ask(2))
    one.work()
    one.dispatcher.stop()  # Ctrl-C
    two.study.refresh()
    two.dispatcher.share()
    two.work()
    assert [task.id for task in two.engine.tasks] == [1]  # one may still be busy ending its own
    living.remove(one.run)
    for _ in range(2):
        two.work()
    assert {id for event in two.events(Told) for id in event.ids} == {0, 1}


class Named:
    """A rule of early stopping that ends some trials as soon as they have reported."""

    def __init__(self, ids: set[int]) -> None:
        self.ids = ids

    def needs(self, before, step):
        return True

    def stopped(self, reports, sign):
        return {report.id: report.step for report in reports if report.id in self.ids}


def test_what_one_run_stops_early_another_withdraws(path, living):
    one, two = Side(path, living, slots=1), Side(path, living, slots=1)
    one.dispatcher.rule = two.dispatcher.rule = Named({1})
    one.dispatcher.admit(one.study.ask(2))
    one.work()
    two.study.refresh()
    two.dispatcher.share()
    two.work()
    two.study.note(Reported(1, 1, 3, 0.25))
    one.study.refresh()
    one.dispatcher.stop_early()
    two.dispatcher.stop_early()  # the same decision; it is told once
    two.work()
    assert [(event.ids, event.values) for event in two.events(Told)] == [((1,), ({"value": 0.25},))]
    assert two.engine.cancelled == [two.engine.tasks[0].name]


def test_a_report_that_two_runs_have_read_is_logged_once(path, living):
    one = Side(path, living)
    one.dispatcher.admit(one.study.ask(1))
    one.work()
    name = one.engine.tasks[0].name
    living.clear()
    finders = [Side(path, living, known=[name]) for _ in range(2)]
    for side in finders:
        side.engine.reports = lambda: [(name, 1, 0.5), (name, 2, 0.6)]
        side.dispatcher.adopt(side.study.history.pending)
    for side in finders:
        side.dispatcher._take_reports()
    assert [report.step for report in one.events(Reported)] == [1, 2]


@pytest.mark.parametrize("how", ["stopped", "taken over", "behind"])
def test_a_report_that_is_out_of_date_is_not_logged(path, living, how):
    """After the report at which a trial was stopped comes none, or it would seem to have ended."""
    one, other = Side(path, living), Side(path, living)
    one.dispatcher.admit(one.study.ask(1))
    one.work()
    one.engine.reports = lambda: [(one.engine.tasks[0].name, 4, 0.5)]
    other.study.note(Reported(0, 1, 5 if how == "behind" else 3, 0.25))
    if how == "stopped":
        other.dispatcher.rule = Named({0})
        other.dispatcher.stop_early()
    elif how == "taken over":
        other.study.note(Dispatched(0, 2, "covey-0a1b2c3d-0-a2", 1))
    one.dispatcher._take_reports()  # it has not read what the other wrote
    assert len(one.events(Reported)) == 1
    assert one.study.history.stopped == ({0: 3} if how == "stopped" else {})


def test_a_trial_is_stopped_at_its_last_report_though_another_run_logs_it_just_then(path, living):
    one, other = Side(path, living), Side(path, living)
    one.dispatcher.admit(one.study.ask(1))
    one.work()
    one.study.note(Reported(0, 1, 3, 0.25))
    other.study.refresh()
    one.study.note(Reported(0, 1, 4, 0.5))
    one.dispatcher.rule = other.dispatcher.rule = Named({0})
    other.dispatcher.stop_early()  # it has not read step 4
    assert other.dispatcher.settled == 0
    one.dispatcher.stop_early()
    assert [event.values for event in one.events(Told)] == [({"value": 0.5},)]
    assert one.study.history.stopped == {0: 4}


# Who lives.


class Clock:
    """A clock that is moved by hand; it is not that of the other machine."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1e6
        monkeypatch.setattr(registry.time, "monotonic", lambda: self.now)

    def passes(self, seconds: float, runs: Runs, step: float = 1.0) -> None:
        while seconds > 0.0:
            self.now += min(step, seconds)
            seconds -= step
            runs.look()


def showing(path: Path, id: str = "0a1b2c3d", kernel: str = "") -> Runs:
    """A run that has shown itself once, and does not count by itself."""
    run = Runs(path, join=True)
    run.id, run._kernel = id, kernel or run._kernel
    run._beat()
    return run


@pytest.fixture
def far(path, monkeypatch):
    """A run on another machine that does not count by itself, and one here that looks at it."""
    path.touch()
    other = showing(path, kernel="another")
    yield other, Runs(path), Clock(monkeypatch)
    other._file.close()


def test_far_runs_live_as_long_as_they_count(path, far):
    other, runs, clock = far
    os.utime(folder_of(path) / other.id, (0, 0))  # no time of day plays a part
    runs.look()
    for _ in range(5):
        clock.passes(0.9 * registry.LEASE, runs)
        assert runs.lives("0a1b2c3d")
        other._beat()
    clock.passes(0.9 * registry.LEASE, runs)
    other._file.close()  # nor does a lock, which nobody can see from here
    assert runs.lives("0a1b2c3d")
    clock.passes(0.2 * registry.LEASE, runs)
    assert not runs.lives("0a1b2c3d")
    assert runs.shared


def test_only_silence_that_was_listened_to_counts(far):
    other, runs, clock = far
    runs.look()
    clock.now += 100.0 * registry.LEASE  # asleep, or an ask that took an hour
    runs.look()
    assert runs.lives("0a1b2c3d")
    clock.passes(1.1 * registry.LEASE, runs)
    assert not runs.lives("0a1b2c3d")
    other._beat()  # it only slept: it has a new file, and lives
    assert runs.lives("0a1b2c3d")


def test_here_death_is_known_at_once(path):
    path.touch()
    other, runs = showing(path), Runs(path)
    runs.look()
    assert runs.lives("0a1b2c3d")
    assert [run.pid for run in runs.living] == [os.getpid()]
    assert list(runs_of(path)) == ["0a1b2c3d"]
    other._file.close()  # as the kernel does, when a process ends
    assert [run.lives for run in runs_of(path).values()] == [False]
    runs.look(now=True)
    assert not runs.lives("0a1b2c3d")
    assert not (folder_of(path) / other.id).exists()


def test_a_run_without_a_file_is_dead_and_odd_names_are_no_runs(path):
    path.touch()
    folder_of(path).mkdir()
    (folder_of(path) / "README").write_text("mine")
    runs = Runs(path)
    runs.look()
    assert not any(map(runs.lives, ["0a1b2c3d", "", "../run.jsonl", "README"]))
    assert not runs.shared
    assert (folder_of(path) / "README").read_text() == "mine"


def test_a_heartbeat_counts_by_itself_and_leaves_nothing_behind(path, monkeypatch):
    monkeypatch.setattr(registry, "BEAT", 0.01)
    path.touch()
    runs = Runs(path)
    with runs.entered():
        first = (folder_of(path) / runs.id).read_bytes()
        (folder_of(path) / runs.id).unlink()  # somebody took it for dead
        until = time.monotonic() + 120.0
        while time.monotonic() < until:
            with suppress(FileNotFoundError):
                if (folder_of(path) / runs.id).read_bytes() > first:
                    break
            time.sleep(0.005)
        assert list(runs_of(path)) == [runs.id]
    assert not folder_of(path).exists()


# Whole runs.


def slow(point):
    time.sleep(0.15)
    return point["x"]


def test_a_plain_run_is_joined_and_a_second_plain_one_refused(path):
    """The budget counts over both, each does a part, and the first to end leaves none undone."""
    errors = []

    def run(**options):
        study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
        try:
            study.run(slow, batch=3, rounds=2, progress=False, **options)
        except Exception as error:
            errors.append(error)

    plain = threading.Thread(target=run, kwargs={"workers": 1})
    plain.start()
    while not (path.exists() and runs_of(path)):
        time.sleep(0.01)
    joined = threading.Thread(target=run, kwargs={"workers": 1, "join": True})
    joined.start()
    run(workers=1)
    (refused,) = errors
    assert isinstance(refused, JournalConflict)
    assert "--join" in str(refused)
    plain.join()
    joined.join()
    assert errors == [refused]
    history = covey.Study.load(path, read_only=True).history
    told = Counter(id for event in history.events if isinstance(event, Told) for id in event.ids)
    assert told == Counter(range(6))
    sent = Counter(run_of(e.name) for e in history.events if isinstance(e, Dispatched))
    assert len(sent) == 2
    assert not any(isinstance(event, Late) for event in history.events)
    assert history.rounds == 2
    assert not folder_of(path).exists()


def test_a_plain_run_is_refused_beside_one_that_joined(path):
    study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    refused = pytest.raises(JournalConflict, match=r"Join it \(--join")
    with Runs(path, join=True).entered(), refused:
        study.run(slow, batch=1, rounds=1, progress=False)
    assert not study.history.trials


def test_a_run_on_an_executor_is_refused_beside_one_that_joined(path):
    study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    with ThreadPoolExecutor(1) as threads:
        with Runs(path).entered(), pytest.raises(JournalConflict, match=r"Join it \(--join"):
            study.run(slow, batch=1, rounds=1, workers=threads, progress=False)
        assert not study.history.trials
        study.run(slow, batch=1, rounds=1, workers=threads, progress=False)
    assert len(study.history.told) == 1


def test_a_plain_run_waits_to_see_that_a_far_one_is_dead(path, monkeypatch, caplog):
    for name, seconds in (("BEAT", 0.01), ("LOOK", 0.01), ("LEASE", 0.1)):
        monkeypatch.setattr(registry, name, seconds)
    study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    showing(path, kernel="another")
    study.run(lambda p: p["x"], batch=1, rounds=1, workers=1, progress=False)
    assert len(study.history.told) == 1
    assert "to see whether process" in caplog.text


def last_run(path):
    return standing(covey.Study.load(path), runs_of(path), datetime.now(UTC)).last


def test_when_and_why_the_last_of_joined_runs_ended_is_known(path):
    study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    study.run(slow, batch=1, rounds=1, workers=1, join=True, progress=False)
    ended = last_run(path)
    assert ended.pid == os.getpid()
    assert ended.ended >= ended.since
    assert ended.why == "the budget of 1 evaluation is used up"
    study.note(Began("0a1b2c3d", 7, "tern", {}))
    study.note(Began("4e5f6a7b", 8, "gull", {}))
    study.note(Ended("4e5f6a7b", "Ctrl-C"))
    killed = showing(path)  # it goes on after the other has ended
    assert last_run(path) is None
    killed._file.close()
    assert (last_run(path).host, last_run(path).ended) == ("tern", "")
    (folder_of(path) / "0a1b2c3d").unlink()  # seen to be dead by the other, before it ended
    assert (last_run(path).host, last_run(path).why) == ("gull", "Ctrl-C")
    study.run(slow, batch=1, rounds=1, workers=1, join=True, progress=False)
    assert last_run(path).why == ended.why


def test_what_ends_while_another_run_asks_is_told(path):
    asker = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    study.ask(2)
    options = {"asynchronous": True, "join": True, "progress": False}
    run = threading.Thread(
        target=lambda: study.run(slow, batch=3, evaluations=3, workers=3, **options)
    )
    until = time.monotonic() + 120.0
    with asker.asking():
        run.start()  # it has room for a third, and has to wait for its turn
        while time.monotonic() < until and len(asker.history.told) < 2:
            time.sleep(0.02)
            asker.refresh()
        assert len(asker.history.told) == len(asker.history) == 2
    run.join()
    assert len(study.history.told) == 3


def test_what_cannot_be_joined(path):
    with pytest.raises(StrategyError, match="join needs a journal"):
        covey.maximize(slow, SPACE, batch=1, rounds=1, join=True)
    with pytest.raises(StrategyError, match="join is True"):
        covey.maximize(slow, SPACE, batch=1, rounds=1, join="yes")
    study = covey.Study(SPACE, "max", "random", seed=3, journal=path)
    with study.running(), pytest.raises(JournalConflict, match="--join too"):
        study.run(slow, batch=1, rounds=1, join=True)
    assert not study.history.trials


def test_alone_a_run_writes_what_it_always_wrote(path):
    with ThreadPoolExecutor(1) as threads:
        journals = []
        for workers in (1, threads):
            journal = path.with_name(f"{type(workers).__name__}.jsonl")
            study = covey.Study(SPACE, "max", "random", seed=3, journal=journal)
            study.run(lambda p: p["x"], batch=2, rounds=2, workers=workers, progress=False)
            journals.append([type(event) for event in study.history.events])
            assert '"key"' not in journal.read_text()
        assert Counter(journals[0]) == Counter(journals[1])


def joiners(*words: str) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, "-m", "tests.doors.run.joiners", "--total", "12", *words]
    return subprocess.run(
        script, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--kills", "12"],
        ["--kills", "5", "--far"],
        ["--kills", "5", "--asynchronous"],
        ["--kills", "0", "--defect", "hesitant"],
    ],
    ids=["near", "far", "asynchronous", "hesitant"],
)
def test_killed_at_random_every_value_is_there_once(words):
    done = joiners(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", each once\n" in done.stdout


@pytest.mark.parametrize(
    ("defect", "noticed", "kills", "patience"),
    [
        ("unfenced", "clashes", "0", "60"),
        ("alone", "clashes", "0", "60"),
        ("forgetful", "again|clashes", "16", "60"),
        ("trusting", "unfinished", "12", "6"),
        ("hasty", "too many", "0", "60"),
    ],
)
def test_the_defects_that_it_must_notice(defect, noticed, kills, patience):
    done = joiners("--kills", kills, "--defect", defect, "--patience", patience)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(noticed, done.stdout)
