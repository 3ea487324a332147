"""A study on its journal: messages repeated after a crash, torn lines, several processes."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest
from tests.reliability.alone import Child, alone, patience
from tests.reliability.mutants import planted
from tests.reliability.verdict import Broken, demand, stored, times

import covey
from covey.errors import CoveyError, HistoryError
from covey.log.journal import read

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
ONCE = "a message was not taken exactly once"


def started(path: Path, trials: int) -> None:
    study = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    study.enqueue([{"x": n / trials} for n in range(trials)])


# ---------------------------------------------------------------- a key after a crash


def send_for_ever(pipe: int, path: Path, first: int, messages: int | None) -> None:
    """A client that heard of ``first`` acknowledgements, and goes on from there.

    With a number of messages, it dies once the last of them is written, and before it says so.
    """
    study, flush = covey.Study.load(path), os.fsync
    os.write(pipe, b"ready\n")
    for n in range(first, 10**6):
        if messages is not None and n == first + messages:
            os.fsync = lambda fd: (flush(fd), os.kill(os.getpid(), 9))
        study.add([{"x": 0.5}], [float(n)], key=f"result {n}")
        os.write(pipe, b"%d\n" % n)


def check_keys(folder: Path, kills: int) -> dict[str, int]:
    """Kill the client; another repeats what was not acknowledged, with the same key."""
    rng, path = random.Random(0), folder / "run"
    started(path, 1)
    sent = unsaid = 0
    for kill in range(kills):
        messages = rng.randrange(5) if kill % 2 else None
        child = Child(send_for_ever, path, sent, messages)
        child.heard()
        if messages is None:
            time.sleep(rng.uniform(0.002, 0.02))
            child.kill()
        said = [int(line) for line in child.reports() if line != "ready"]
        sent = max([sent, *(n + 1 for n in said)])
        values = [trial.value for trial in covey.Study.load(path).history.told]
        demand(values == list(range(len(values))), ONCE, values[-5:])
        demand(len(values) in (sent, sent + 1), "an acknowledged result was lost", sent)
        unsaid += len(values) - sent
    return {"sent": sent, "unsaid": unsaid}


def test_a_message_repeated_after_a_crash_is_taken_exactly_once(tmp_path):
    counts = alone(check_keys, tmp_path, times(40))
    assert counts["sent"] > 40
    assert counts["unsaid"] >= times(40) // 2  # there was something to be taken twice


@pytest.mark.parametrize("defect", ["no keys", "keys not replayed"])
def test_crashes_would_catch(tmp_path, defect):
    with pytest.raises(Broken, match=f"{ONCE}|a writer failed"):
        alone(check_keys, tmp_path, 40, defect=defect)


def check_ask_again(folder: Path) -> None:
    """A batch that was asked for under a key is the same batch, whoever asks again."""
    path = folder / "run"
    first = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    second = covey.Study.load(path)
    batch = first.ask(3, key="monday")
    demand([t.point for t in second.ask(3, key="monday")] == [t.point for t in batch], ONCE)
    demand(covey.Study.load(path).ask(3, key="monday") == batch, ONCE)
    for study in (first, second):
        try:
            study.tell(batch, [1.0, 2.0, 3.0], key="results")
        except HistoryError as error:
            raise Broken(f"{ONCE}: {error}") from error
    demand([event["type"] for event in stored(path)] == ["asked", "told"], ONCE)
    for wrong in (
        lambda: second.tell(batch, [1.0, 2.0, 4.0], key="results"),
        lambda: second.ask(3, key="results"),
        lambda: second.add([{"x": 0.5}], [1.0], key="monday"),
    ):
        try:
            wrong()
        except HistoryError as error:
            demand("used before" in str(error), "the message is not clear", error)
        else:
            raise Broken("one key was taken for two messages")
    demand(len(stored(path)) == 2, ONCE)


def test_a_batch_asked_for_again_is_the_same_batch(ram):
    check_ask_again(ram)


@pytest.mark.parametrize(
    "defect", ["no keys", "keys not replayed", "a key says nothing of its kind"]
)
def test_asking_again_would_catch(ram, defect):
    with pytest.raises(Broken), planted(defect):
        check_ask_again(ram)


# ---------------------------------------------------------------- the defect of another journal


def check_torn_line(folder: Path) -> None:
    """Five results, a torn line, two more: with Optuna's journal nothing could be read any more."""
    path = folder / "run"
    started(path, 9)
    study = covey.Study.load(path)
    for n in range(5):
        study.tell(n, float(n))
    with path.open("ab") as file:
        file.write(b'{"seq":7,"at":"2026-01-01T00:00:00.000+00:00","type":"told","v":1,"ids":[5]')
    try:
        covey.Study.load(path).tell(5, 5.0)
        covey.Study.load(path).tell(6, 6.0)
        study.tell(7, 7.0)  # the one that was open all along
        told = covey.Study.load(path).history.told
    except CoveyError as error:
        raise Broken(f"a torn line cost the study: {error}") from error
    demand([trial.value for trial in told] == list(range(8)), "a torn line cost results", told)


def test_a_torn_line_and_two_more_results_cost_nothing(ram):
    check_torn_line(ram)
    assert read(ram / "run").torn == b""


def test_a_torn_line_would_catch_a_study_that_does_not_look(ram):
    with pytest.raises(Broken, match="a torn line cost"), planted("no tail repair"):
        check_torn_line(ram)


# ---------------------------------------------------------------- two processes


def tell_every_second(pipe: int, path: Path, first: int, trials: int) -> None:
    study = covey.Study.load(path)
    os.write(pipe, b"ready\n")
    while not path.with_name("go").exists():
        time.sleep(0.0005)
    for n in range(first, trials, 2):
        study.tell(n, float(n), key=f"result {n}")
        if n % 10 == first:
            study.enqueue([{"x": 0.5}])
    os.write(pipe, b"done\n")


def check_two_processes(folder: Path, trials: int) -> int:
    """Two studies in two processes tell one journal; each has its half of the results."""
    path = folder / "run"
    started(path, trials)
    children = [Child(tell_every_second, path, first, trials) for first in range(2)]
    for child in children:
        child.heard()
    path.with_name("go").touch()
    for child in children:
        demand(child.reports()[-1:] == ["done"], "a writer did not come to its end")
    try:
        history = covey.Study.load(path).history
    except CoveyError as error:
        raise Broken(f"the journal cannot be read: {error}") from error
    values = [trial.value for trial in history.trials[:trials]]
    demand(values == list(range(trials)), "a result is missing, or at another trial", values)
    events = stored(path)
    demand([e["seq"] for e in events] == list(range(1, len(events) + 1)), "there are gaps")
    demand(len(history) == trials + 2 * (trials // 10), "a point is missing, or there twice")
    halves = [event["ids"][0] % 2 for event in events if event["type"] == "told"]
    return sum(a != b for a, b in zip(halves[1:], halves[:-1], strict=True))


def test_two_studies_in_two_processes_tell_one_journal(tmp_path):
    assert alone(check_two_processes, tmp_path, times(100)) > 0  # they did take turns


def test_two_processes_would_catch_a_missing_lock(tmp_path):
    with pytest.raises(Broken):
        alone(check_two_processes, tmp_path, 200, defect="no lock")


# ---------------------------------------------------------------- several that ask and tell


class Slow:
    """Thinks for a while, so that the others write meanwhile."""

    needs_model = False

    def choose(self, belief, k, rng):
        time.sleep(0.003)
        return list(range(k))


def ask_and_tell(pipe: int, path: Path, rounds: int) -> None:
    study = covey.Study.load(path, strategy=Slow())
    os.write(pipe, b"ready\n")
    while not path.with_name("go").exists():
        time.sleep(0.0005)
    for _ in range(rounds):
        (trial,) = study.ask(1)
        study.tell(trial, trial.point["x"])
        os.write(pipe, b"%d\n" % trial.id)


def check_many_ask(folder: Path, processes: int, rounds: int) -> None:
    """Every ask is answered, and no trial is lost, doubled or out of order."""
    path = folder / "run"
    covey.Study(SPACE, strategy=Slow(), seed=0, journal=path)
    children = [Child(ask_and_tell, path, rounds) for _ in range(processes)]
    for child in children:
        child.heard()
    path.with_name("go").touch()
    told = sorted(int(line) for child in children for line in child.reports() if line != "ready")
    demand(told == list(range(processes * rounds)), "a trial is missing, or there twice", told)
    events = stored(path)
    demand([e["seq"] for e in events] == list(range(1, len(events) + 1)), "there are gaps")
    history = covey.Study.load(path, strategy=Slow()).history
    points = {trial.point["x"] for trial in history.told}
    demand(len(points) == processes * rounds, "two asked for one point")


@pytest.mark.parametrize("processes", [3, 6])
def test_many_processes_ask_and_tell_and_each_is_answered(tmp_path, processes):
    alone(check_many_ask, tmp_path, processes, times(15))


def test_many_that_ask_would_catch_batches_that_do_not_know_of_each_other(tmp_path):
    with pytest.raises(Broken, match=r"two asked for one point|a trial is missing"):
        alone(check_many_ask, tmp_path, 6, 30, defect="asks do not know of each other")


# ---------------------------------------------------------------- one asks while many tell


class Pondering(Slow):
    """Thinks for longer than it takes the others to write."""

    def choose(self, belief, k, rng):
        time.sleep(0.3)
        return list(range(k))


def tell_ten_a_second(pipe: int, path: Path, by: int) -> None:
    study, n = covey.Study.load(path), 0
    os.write(pipe, b"ready\n")
    while not path.with_name("stop").exists():
        study.add([{"x": 0.5}], [float(n)], key=f"{by}, {n}")
        n += 1
        time.sleep(0.1)
    os.write(pipe, b"%d\n" % n)


def check_busy_journal(folder: Path, asks: int) -> None:
    """Four processes tell; every ask is answered in the time that it thinks, by its first batch."""
    path = folder / "run"
    covey.Study(SPACE, strategy="random", seed=0, journal=path)
    study = covey.Study.load(path, strategy=Pondering())
    children = [Child(tell_ten_a_second, path, by) for by in range(4)]
    for child in children:
        child.heard()
    asked = []
    for _ in range(asks):
        asked += study.ask(2)
    path.with_name("stop").touch()
    told = sum(int(child.reports()[-1]) for child in children)
    events = stored(path)
    demand([e["seq"] for e in events] == list(range(1, len(events) + 1)), "there are gaps")
    batches = [event for event in events if event["type"] == "asked"]
    demand(len(batches) == asks, "an ask was not answered once", len(batches))
    passed = sum(event["seq"] - 1 - event.get("after", event["seq"] - 1) for event in batches)
    demand(passed >= asks, "nobody told while it thought", passed)
    history = covey.Study.load(path).history
    demand(len(history.told) == told, "a result is missing, or there twice", told)
    demand([t.point for t in history.pending] == [t.point for t in asked], "another trial is there")
    demand([t.id for t in history.pending] == [t.id for t in asked], "a trial has two ids")


def test_every_ask_is_answered_while_four_processes_tell(tmp_path):
    alone(check_busy_journal, tmp_path, times(5))


class Endless:
    """Says that it thinks, and never comes to an end."""

    needs_model = False

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def choose(self, belief, k, rng):
        os.write(self.pipe, b"thinking\n")
        time.sleep(600)


def think_for_ever(pipe: int, path: Path) -> None:
    covey.Study.load(path, strategy=Endless(pipe)).ask(1)


def check_killed_in_thought(folder: Path) -> None:
    """Whoever dies while the others wait for its turn holds nothing and has written nothing."""
    path = folder / "run"
    started(path, 1)
    study = covey.Study.load(path)
    child = Child(think_for_ever, path)
    child.heard()
    study.tell(0, 1.0)
    demand(os.waitpid(child.pid, os.WNOHANG) == (0, 0), "a tell waited until an ask was killed")
    killed = threading.Event()

    def kill() -> None:
        killed.set()
        child.kill()

    threading.Timer(0.3, kill).start()
    with patience(60.0, "an ask waits for the turn of a dead process"):
        demand(len(study.ask(1)) == 1, "nobody can ask any more")
    demand(killed.is_set(), "an ask did not wait for its turn")
    child.reports()
    types = [event["type"] for event in stored(path)]
    demand(types == ["enqueued", "told", "asked"], "half an ask is there")


def test_a_killed_ask_frees_its_turn_and_nobody_waits_to_tell(tmp_path):
    alone(check_killed_in_thought, tmp_path)
