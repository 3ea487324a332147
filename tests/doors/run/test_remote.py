from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.doors.run.conftest import Bench

from covey.errors import EvaluationError
from covey.run import Outcome, Task
from covey.run.remote import (
    CallPacker,
    FuturesEngine,
    PackedCall,
    evaluate_in_executor,
    evaluate_on_worker,
    task_bytes,
)
from covey.run.task import Function


def sent(f, wanted=lambda: True, timeout=None):
    task = Task(4, 1, "a", {"x": 1.5}, 7, timeout, Function(f))
    payloads = CallPacker()
    assert payloads.of(task.call) is payloads.of(task.call)
    news = evaluate_on_worker(task_bytes(task), payloads.of(task.call), 0.5, wanted)
    return [Outcome(**plain) for one in news for plain in one.outcomes]


def test_it_brings_back_plain_outcomes():
    assert sent(lambda p, seed: p["x"] + seed) == [Outcome("a", "succeeded", 8.5)]


def test_it_stops_what_nobody_wants():
    began = time.monotonic()
    (found,) = sent(lambda p: time.sleep(60.0), wanted=lambda: time.monotonic() < began + 0.3)
    assert (found.status, found.reason) == ("lost", "it was cancelled")


def test_it_takes_the_evaluation_down_with_it(tmp_path):
    """Ray raises in the task; nothing is to go on running then."""
    pid = tmp_path / "pid"

    def f(point):
        pid.write_text(str(os.getpid()))
        time.sleep(60.0)

    def wanted():
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        sent(f, wanted)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_label_holds_no_call(tmp_path):
    import pickle

    task = pickle.loads(task_bytes(Task(4, 1, "a", {}, 7, None, Function(abs))))
    assert task.call.evaluate(task, tmp_path).status == "lost"


# Executors of futures


def bench_of(executor, **options):
    return Bench("futures", FuturesEngine(executor, **options), lambda: None)


def test_a_pool_that_breaks_loses_what_it_had_and_takes_no_more():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        bench = bench_of(pool)
        bench.submit(lambda p: os._exit(1), "a")
        bench.submit(lambda p: 1.0, "b")
        assert {found.status for found in bench.outcomes(2)} == {"lost"}
        with pytest.raises(EvaluationError, match=r"executor broke.*workers=4"):
            bench.submit(lambda p: 1.0)


def test_a_pool_that_was_shut_down_is_named():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(EvaluationError, match="takes nothing more"):
        bench_of(pool).submit(lambda p: 1.0)


class Odd(Executor):
    """Runs nothing, and fails in its own way."""

    def __init__(self, how):
        self.how = how

    def submit(self, f, /, *given, **named):
        future = Future()
        if self.how is None:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_exception(self.how)
        return future


@pytest.mark.parametrize("how", [ValueError("my pickle"), None])
def test_the_trouble_of_an_executor_is_not_the_points(how):
    found = bench_of(Odd(how)).outcome_of(lambda p: 1.0)
    assert found.status == "lost"
    assert ("my pickle" if how else "cancelled") in found.reason


def test_a_function_that_is_interrupted_is_lost():
    def f(point):
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        assert bench_of(pool).outcome_of(f).status == "lost"


def test_one_of_our_own_is_shut_down():
    pool = ThreadPoolExecutor(1)
    engine = FuturesEngine(pool, owned=True)
    Bench("futures", engine, lambda: None).outcome_of(lambda p: 1.0, timeout=9.0)
    assert engine._folder.exists()
    engine.close()
    with pytest.raises(RuntimeError):
        pool.submit(abs, 1)
    assert not engine._folder.exists()


def test_without_a_folder_no_time_is_counted(tmp_path):
    """As on another machine: better no limit than one counted from the submit."""
    with ThreadPoolExecutor(1) as pool:
        bench = bench_of(pool)
        bench.engine._folder = tmp_path / "nowhere"
        bench.submit(lambda p: time.sleep(0.3) or 1.0, timeout=0.1)
        assert [found.status for found in bench.outcomes(1)] == ["succeeded"]


def test_a_parcel_that_cannot_be_opened_is_lost(tmp_path):
    task = Task(0, 1, "a", {}, 0, None, PackedCall(b"not a pickle"))
    assert evaluate_in_executor(task, tmp_path / "mark").status == "lost"
    assert (tmp_path / "mark").exists()


def test_a_task_travels_to_another_process(tmp_path):
    from covey.run.task import pack

    task = Task(0, 1, "a", {"x": 2.0}, 0, None, PackedCall(pack(Function(lambda p: p["x"]))))
    assert (
        evaluate_in_executor(pickle.loads(pickle.dumps(task)), Path(tmp_path / "mark")).value == 2.0
    )
