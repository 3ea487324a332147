"""The time left of a run never grows while one waits, by its journal and by its own account."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from tests.doors.run.scripted import Scripted, value
from tests.reliability.mutants import planted
from tests.reliability.verdict import Broken, demand

import covey
from covey.history import Asked, Began, Dispatched, History, Point, Told
from covey.log.running import Run
from covey.run import Progress, dispatcher, loop
from covey.run.standing import standing

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
GROWS = "the time left grows while one waits"
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Shown:
    """A study as whoever looks on has it: its history, and nothing else that counts."""

    def __init__(self, history: History) -> None:
        self.history = history


def check_journal(asynchronous: bool, hours: float | None) -> None:
    """Six of twenty-four asked for: two told, two at work since unequal times, two queued."""
    history = History().then(Asked(tuple(Point(x=i / 6) for i in range(6)), "random"), at(0))
    for id, (began, took) in enumerate(((0, 20), (5, 40))):
        history = history.then(Dispatched(id, 1, f"a{id}", 0), at(began))
        history = history.then(Told((id,), (1.0,)), at(began + took))
    for id, began in ((2, 21), (3, 46)):
        history = history.then(Dispatched(id, 1, f"a{id}", 0), at(began))
    until = None if hours is None else at(3600.0 * hours).isoformat()
    plan = {"total": 24, "batch": 6, "slots": 2, "asynchronous": asynchronous, "until": until}
    history = history.then(Began("0a1b2c3d", 1, "tern", plan), at(50))
    runs = {"0a1b2c3d": Run("0a1b2c3d", 1, "tern", START.isoformat())}
    waits = [standing(Shown(history), runs, at(50 + i)).left for i in range(0, 4000, 7)]
    demand(all(wait is not None for wait in waits), "nobody says how long it takes")
    demand(waits[0] > 100.0, "it is far too short", waits[0])
    for before, after in itertools.pairwise(waits):
        demand(after <= before, GROWS, before, after)
    demand(waits[20] < waits[0], "it stands still while evaluations go on", waits[:21])


def check_run(asynchronous: bool, patch: pytest.MonkeyPatch) -> None:
    """A run by a clock of its own: every evaluation takes 30 s but the sixth, which hangs."""
    clock = [1000.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return clock[0]

    began: dict[str, float] = {}

    def answer(task):
        took = clock[0] - began.setdefault(task.name, clock[0])
        return value(task) if took >= (400.0 if task.id == 5 else 30.0) else []

    engine = Scripted(answer, slots=2)
    real = engine.poll
    engine.poll = lambda seconds: (clock.__setitem__(0, clock[0] + 1.0), real(seconds))[1]
    patch.setattr(loop, "time", Clock)
    patch.setattr(dispatcher, "time", Clock)
    seen: list[Progress] = []
    study = covey.Study(SPACE, strategy="random", seed=0)
    options = {"asynchronous": asynchronous, "watch": seen.append}
    study.run(lambda p: p["x"], batch=4, rounds=2, workers=engine, **options)
    waits = [(one.done, one.running, one.left) for one in seen if one.left is not None]
    demand(len(waits) > 400, "it was not watched for long", len(waits))
    for before, after in itertools.pairwise(waits):
        if before[:2] == after[:2]:  # nothing has happened but that time has passed
            demand(after[2] <= before[2], GROWS, before, after)
    demand(waits[-1][2] == 0.0, "something is left at the end", waits[-1])


CASES = list(itertools.product((False, True), (None, 0.5)))


@pytest.mark.parametrize(("asynchronous", "hours"), CASES)
def test_the_time_left_by_the_journal_never_grows_while_one_waits(asynchronous, hours):
    check_journal(asynchronous, hours)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_time_left_of_a_run_never_grows_while_one_waits(asynchronous, monkeypatch):
    check_run(asynchronous, monkeypatch)


def test_watching_would_catch_a_time_left_that_grows(monkeypatch):
    with planted("the rest takes as long as it took so far"):
        for asynchronous in (False, True):
            with pytest.raises(Broken, match=GROWS):
                check_journal(asynchronous, None)
            with pytest.raises(Broken, match=GROWS):
                check_run(asynchronous, monkeypatch)
