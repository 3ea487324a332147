"""Every engine, real ones all: the contract that any engine keeps, and what ours do beyond it."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from tests.doors.run.conftest import ALONE, REMEMBERING, by_name

from covey.run import Command
from covey.testing import EngineContract

# Dask says so when it starts a worker in place of one that died; as an error it would not start.
pytestmark = pytest.mark.filterwarnings("ignore:.*surprisingly long time")


class TestEveryEngine(EngineContract):
    @pytest.fixture(autouse=True)
    def _one_of_them(self, workshop):
        self.own_process = workshop.kind in ALONE
        self.found_again = workshop.kind in REMEMBERING
        self.workshop = workshop

    def make_engine(self, folder):
        del folder  # the workshop has one
        return self.workshop.make()


def test_how_many_at_once_is_a_matter_of_the_number_of_workers(bench):
    assert bench.engine.slots == (2 if bench.kind == "local" else None)


def test_what_comes_beside_a_value_comes_back(bench):
    found = bench.outcome_of(lambda p: {"value": p["x"], "latency": 3, "net": object()})
    assert (found.status, found.value, found.metrics) == ("succeeded", 1.5, {"latency": 3})
    assert tuple(found.unkept) == ("net",)


def test_an_exception_is_a_failure(bench):
    def f(point):
        raise OSError("no such sample")

    found = bench.outcome_of(f)
    assert (found.status, found.value, found.reason) == ("failed", None, "OSError: no such sample")
    assert "Traceback" in found.log


def test_what_is_no_number_is_a_failure(bench):
    cases = [
        (lambda p: float("nan"), "nan, not a finite number"),
        (lambda p: -float("inf"), "-inf, not a finite"),
        (lambda p: 1e200, "1e+200, not a finite"),
        (lambda p: None, "None, not a finite"),
        (lambda p: __import__("numpy").complex128(1 + 2j), "(1+2j), not a finite"),
        (lambda p: __import__("numpy").str_("2.5"), "'2.5'), not a finite"),
        (lambda p: True, "True, not a finite"),
        (lambda p: "1.5", "'1.5', not a finite"),
        (lambda p: {"value": 1.0, "sem": -1.0}, "the standard error -1.0"),
        (lambda p: (_ for _ in ()), "<generator object"),  # cannot be pickled
        (lambda p: "x" * 20_000_000, "not a finite number"),
        (lambda p: sys.exit(3), "SystemExit: 3"),
    ]
    tasks = [bench.submit(f, str(i)) for i, (f, _) in enumerate(cases)]
    found = by_name(bench.outcomes(len(cases)))
    for task, (_, reason) in zip(tasks, cases, strict=True):
        assert found[task.name].status == "failed"
        assert reason in found[task.name].reason
        assert len(found[task.name].reason) < 300


def test_a_worker_that_dies_takes_the_evaluation_with_it(bench):
    """Dask moves it to another worker until it has cost four of them; Ray does not."""
    if bench.kind not in ("dask", "ray"):
        pytest.skip("there is nobody between it and the runner")

    def murders(point):
        os.kill(os.getppid(), signal.SIGKILL)  # the worker, not the evaluation
        time.sleep(30.0)

    found = bench.outcome_of(murders)
    assert found.status == "lost"
    assert "KilledWorker" in found.reason or "WorkerCrashed" in found.reason
    assert bench.outcome_of(lambda p: 2.0).value == 2.0  # the cluster has recovered


def test_time_is_counted_from_the_start(bench):
    """Seven of 1 s on two workers: the last waits for as long as its limit, and is in time."""

    def f(point):
        time.sleep(1.0)
        return 1.0

    for i in range(7):
        bench.submit(f, str(i), timeout=3.0)
    assert {found.status for found in bench.outcomes(7)} == {"succeeded"}


def test_a_time_limit_ends_it(bench, tmp_path):
    beat = tmp_path / "beat"

    def f(point):
        for _ in range(15):
            beat.touch()
            time.sleep(0.1)
        return 1.0

    began = time.monotonic()
    task = bench.submit(f, timeout=0.5)
    (found, *_) = bench.engine.poll(120.0)
    assert (found.name, found.status) == (task.name, "timed-out")
    assert "longer than 0.5 s" in found.reason
    assert time.monotonic() - began > 0.5
    if bench.alone:
        time.sleep(0.1)
        beat.unlink(missing_ok=True)
        time.sleep(0.3)
        assert not beat.exists()  # it has ended, and not only been given up
    else:
        bench.outcomes(1)  # it goes on, and its result is late


def test_a_result_after_the_limit_is_late_and_not_lost(bench):
    def stubborn(point):
        if os.environ.get("COVEY_TRIAL"):  # a process of its own
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1.4)
        return 4.0

    bench.submit(stubborn, timeout=0.9)
    first, second = bench.outcomes(2)
    assert (first.status, second.status, second.value) == ("timed-out", "succeeded", 4.0)
    assert first.name == second.name


def test_what_ignores_the_request_to_end_is_killed(bench):
    if bench.kind != "local":
        pytest.skip("the same process, elsewhere")

    def deaf(point):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60.0)

    bench.submit(deaf, timeout=0.3)
    (found,) = bench.outcomes(1, within=15.0)
    assert found.status == "timed-out"


def test_the_end_of_a_long_log_is_kept(bench):
    if not bench.alone:
        pytest.skip("an executor keeps no log")

    def talks(point):
        for i in range(100_000):
            sys.stdout.write(f"{i:>99}\n")
        sys.stderr.write("the end\n")
        return 1.0

    found = bench.outcome_of(talks)
    assert found.value == 1.0
    assert found.log.endswith("the end\n")
    assert 60_000 < len(found.log) <= 65_536


def test_the_seed_is_the_tasks(bench):
    def f(point, seed):
        if os.environ.get("COVEY_TRIAL"):
            assert os.environ["COVEY_TRIAL"] == "5"
            assert os.environ["COVEY_SEED"] == os.environ["PYTHONHASHSEED"] == str(seed)
        return seed

    first = bench.outcome_of(f, id=5, seed=123, attempt=1)
    again = bench.outcome_of(f, id=5, seed=123, attempt=2)
    assert first.value == again.value == 123.0


def test_what_is_cancelled_says_so(bench):
    def f(point):
        time.sleep(1.5)
        return 1.0

    task = bench.submit(f)
    time.sleep(0.8)
    bench.engine.cancel([task.name])
    found = next(iter(bench.engine.poll(120.0)))
    assert "cancelled" in found.reason
    if not bench.alone:
        assert [late.value for late in bench.outcomes(1)] == [1.0]  # it could not be stopped


def test_cancelled_twice_is_killed_at_once(bench, tmp_path):
    if bench.kind != "local":
        pytest.skip("the same process, elsewhere")
    bench.engine._grace = 600.0

    def deaf(point):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (tmp_path / "deaf").touch()
        time.sleep(600.0)

    task = bench.submit(deaf)
    while not (tmp_path / "deaf").exists():
        assert bench.engine.poll(0.05) == []
    bench.engine.cancel([task.name])
    bench.engine.cancel([task.name])
    (found,) = bench.outcomes(1)  # within a minute, not ten
    assert found.status == "lost"


def test_commands_run_everywhere(bench):
    command = Command([sys.executable, "-c", "import sys; print(3 * float(sys.argv[1]))", "{x.x}"])
    assert bench.outcome_of(command).value == 4.5
    failing = Command([sys.executable, "-c", "raise ValueError('too hot')"])
    found = bench.outcome_of(failing)
    assert found.status == "failed"
    assert "too hot" in found.reason
