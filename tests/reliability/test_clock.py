"""R15: the order of a journal is its numbers, whatever the clocks say."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.reliability.mutants import planted
from tests.reliability.verdict import SCALE, Broken, demand, stored, times

import covey
from covey import disk
from covey.errors import JournalError
from covey.history import History
from covey.log.journal import Journal

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
START = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # half an hour before summer time ends in Europe
ORDER = "the clock changed the order or the content"


class Clock(datetime):
    """What `datetime.now` says."""

    time = START

    @classmethod
    def now(cls, tz=None):
        return cls.time


def at_random(seed: int) -> Callable[[int], timedelta]:
    rng = random.Random(seed)
    return lambda n: timedelta(days=rng.uniform(-3000, 3000))


# By how much the clock is off the start when event n is written; the writers take turns.
CASES: dict[str, Callable[[int], timedelta]] = {
    "steady": lambda n: timedelta(seconds=n),
    "an hour back": lambda n: timedelta(seconds=n, hours=-(n > 5)),
    "ten years on": lambda n: timedelta(seconds=n, days=3653 * (n > 5)),
    "frozen": lambda n: timedelta(0),
    "one of two five minutes behind": lambda n: timedelta(seconds=n, minutes=-5 * (n % 2)),
    "summer time ends": lambda n: timedelta(minutes=20 * n),
}
CASES |= {f"at random {n}": at_random(n) for n in range(times(10) if SCALE >= 10 else 1)}


def two_studies(path: Path, case: Callable[[int], timedelta]) -> History:
    """Two writers take turns, and a third reads what they wrote."""
    Clock.time = START
    first = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    second = covey.Study.load(path)
    for n in range(12):
        Clock.time = START + case(n)
        (first, second)[n % 2].add([{"x": n / 20}], [float(n)], key=f"result {n}")
    for study in (first, second):
        study.refresh()
    demand(first.history.trials == second.history.trials, ORDER, "two writers differ")
    again = covey.Study.load(path)
    demand(again.history.trials == first.history.trials, ORDER, "a reload differs")
    return again.history


def check_clock(folder: Path, case: str) -> None:
    path = folder / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "datetime", Clock)
        try:
            values = [trial.value for trial in two_studies(path, CASES[case]).trials]
        except JournalError as error:
            raise Broken(f"{ORDER}: {case}: {error}") from error
    demand(values == list(range(12)), ORDER, case, values)
    demand([event["seq"] for event in stored(path)] == list(range(1, 13)), ORDER, case)
    with Journal.open(path) as journal:  # and the clock is right again
        demand(journal.append({"n": 0}) == 13, ORDER, case)


@pytest.mark.parametrize("case", CASES)
def test_no_clock_changes_the_order(ram, case):
    """R15."""
    check_clock(ram, case)


@pytest.mark.parametrize("case", ["an hour back", "one of two five minutes behind", "at random 0"])
def test_clocks_would_catch_an_order_by_time(ram, case):
    with pytest.raises(Broken, match=ORDER), planted("order by time"):
        check_clock(ram, case)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "UTC"])
def test_times_are_written_in_utc_wherever_the_machine_is(ram, zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with Journal.create(ram / "run", {}) as journal:
            journal.append({"n": 0})
    finally:
        monkeypatch.undo()
        time.tzset()
    (event,) = stored(ram / "run")
    age = datetime.now(UTC) - datetime.fromisoformat(event["at"])
    assert event["at"].endswith("+00:00")
    assert timedelta(minutes=-1) < age < timedelta(minutes=5)
