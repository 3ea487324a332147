"""R6 for evaluations: a disk that is full costs no result, and no evaluation can fill it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.reliability.alone import alone
from tests.reliability.verdict import Broken, demand

import covey
from covey.errors import CoveyError
from covey.history import Failed
from covey.run import Command
from covey.run.task import Retries

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
LOST = "a result that was computed is lost"
WRONG = "what happened is recorded as something else"
FILLED = "an evaluation has filled the disk"


@pytest.fixture
def small(tmp_path):
    """Where a small disk can be mounted, by a process in a namespace of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this system: install util-linux")
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"run as root, or allow user namespaces: {done.stderr.strip()}")
    return tmp_path


def mounted(folder: Path, size: str) -> Path:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    return folder


def fill(folder: Path) -> None:
    """Leave no room at all."""
    with (folder / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"x" * 4096)
    with (folder / "filler").open("ab", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"x")


def fill_when(ready: Callable[[], bool], folder: Path, seconds: float) -> threading.Thread:
    """Fill the disk at some moment, for so long."""

    def work() -> None:
        until = time.monotonic() + 60.0
        while not ready() and time.monotonic() < until:
            time.sleep(0.01)
        fill(folder)
        time.sleep(seconds)
        (folder / "filler").unlink()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def begun(folder: Path, count: int) -> Callable[[], bool]:
    """Whether so many evaluations have said that they began."""

    def ready() -> bool:
        return sum(p.stat().st_size > 0 for p in folder.glob("run.jsonl.work/*/alive")) >= count

    return ready


def statuses(folder: Path) -> list[str]:
    history = covey.Study.load(folder / "run.jsonl", read_only=True).history
    return sorted(trial.status for trial in history.trials)


# ---------------------------------------------------------------- full while they compute


def check_limits_do_not_count_waiting(folder: Path) -> None:
    """f takes one second of its two; for six there is no room for its result."""
    mounted(folder, "4m")
    filling = fill_when(begun(folder, 3), folder, 6.0)

    def f(point):
        time.sleep(1.0)
        return point["x"]

    run = {"batch": 3, "rounds": 1, "workers": 3, "seed": 0, "retries": Retries(lost=0, killed=0)}
    with suppress(CoveyError):
        covey.minimize(f, SPACE, **run, timeout=2.0, journal=folder / "run.jsonl")
    filling.join()
    demand(statuses(folder) == ["told"] * 3, LOST, statuses(folder))


def test_a_time_limit_does_not_count_the_waiting_for_room(small):
    alone(check_limits_do_not_count_waiting, small, under=("unshare", "-rm"))


def test_it_would_catch_a_limit_that_counts_it(small):
    with pytest.raises(Broken, match=LOST):
        alone(
            check_limits_do_not_count_waiting,
            small,
            under=("unshare", "-rm"),
            defect="waiting counts",
        )


_RUNNER = """
import sys, time, covey
from pathlib import Path

calls = Path(sys.argv[2])

def f(point):
    with calls.open("a") as file:
        file.write("x")
    time.sleep(1.0)
    return point["x"]

space = covey.Space({"x": covey.Real(0.0, 1.0)})
covey.minimize(f, space, batch=2, rounds=1, workers=2, seed=0, timeout=3.0, journal=sys.argv[1])
"""


def check_the_next_run_has_it(folder: Path) -> None:
    """The runner is killed while results wait for room; the next tells them, and repeats none."""
    calls = folder / "calls"
    disk = folder / "disk"
    disk.mkdir()
    mounted(disk, "4m")
    words = [sys.executable, "-c", _RUNNER, str(disk / "run.jsonl"), str(calls)]
    runner = subprocess.Popen(words)
    ready, until = begun(disk, 2), time.monotonic() + 60.0
    while not ready() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    fill(disk)
    time.sleep(2.0)
    runner.kill()
    runner.wait()
    time.sleep(2.0)  # their limit is over
    (disk / "filler").unlink()
    subprocess.run(words, check=True, timeout=300)
    demand(statuses(disk) == ["told"] * 2, LOST, statuses(disk))
    demand(calls.read_text() == "xx", "an evaluation was repeated", calls.read_text())


def test_a_result_that_waits_for_room_outlives_its_runner(small):
    alone(check_the_next_run_has_it, small, under=("unshare", "-rm"))


def check_overdue_is_overdue(folder: Path) -> None:
    """Too slow, on a full disk: timed out, as on any other."""
    mounted(folder, "4m")
    filling = fill_when(begun(folder, 1), folder, 4.0)
    study = covey.Study(SPACE, seed=0, journal=folder / "run.jsonl")
    with suppress(CoveyError):
        study.run(lambda p: time.sleep(60.0), batch=1, rounds=1, workers=1, timeout=1.0)
    filling.join()
    with suppress(CoveyError):  # the log had no room; the next run says the same
        covey.Study.load(folder / "run.jsonl").run(
            lambda p: time.sleep(60.0), batch=1, rounds=1, workers=1, timeout=1.0
        )
    history = covey.Study.load(folder / "run.jsonl", read_only=True).history
    demand(history.trials[0].status == "failed", WRONG, history.trials[0].status)
    reasons = [event.reason for event in history.events if isinstance(event, Failed)]
    demand("longer than 1 s" in str(reasons), WRONG, reasons)
    demand(len(history.attempts(0)) == 1, WRONG, history.attempts(0))


def test_too_slow_on_a_full_disk_is_recorded_as_too_slow(small):
    alone(check_overdue_is_overdue, small, under=("unshare", "-rm"))


# ---------------------------------------------------------------- one that prints without end

_CHATTER = "import sys; [sys.stdout.write('x' * 9999 + chr(10)) for _ in range({n})]; print(0.5)"


def check_chatter(folder: Path, kind: str) -> None:
    """More than a disk of eight megabytes holds; its neighbours and itself come to their end."""
    mounted(folder, "8m")
    code = _CHATTER.format(n=4000)
    most = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            used = shutil.disk_usage(folder)
            most[0] = max(most[0], used.used)

    def f(point):
        for _ in range(16):
            for _ in range(60):
                print("x" * 9999)  # noqa: T201
            os.write(2, b"y" * 100)
            while os.fstat(1).st_size > 131_072:  # until its runner has cut the log
                time.sleep(0.001)
        return point["x"]

    evaluated = f if kind == "function" else Command([sys.executable, "-c", code, "{x.x}"])
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with suppress(CoveyError):
            run = {
                "batch": 2,
                "rounds": 1,
                "workers": 2,
                "seed": 0,
                "retries": Retries(lost=0, killed=0),
            }
            covey.minimize(evaluated, SPACE, **run, journal=folder / "run.jsonl")
    finally:
        done.set()
        watcher.join()
    demand(most[0] < 2_000_000, FILLED, most[0])
    demand(statuses(folder) == ["told"] * 2, LOST, statuses(folder))


@pytest.mark.parametrize("kind", ["function", "command"])
def test_an_evaluation_that_prints_without_end_fills_no_disk(small, kind):
    alone(check_chatter, small, kind, under=("unshare", "-rm"))
