from __future__ import annotations

import os
import time

import pytest

from covey.run import Outcome, Task
from covey.run.remote import CallPacker, evaluate_on_worker, task_bytes
from covey.run.task import Function


def sent(f, wanted=lambda: True, timeout=None):
    task = Task(4, 1, "a", {"x": 1.5}, 7, timeout, Function(f))
    payloads = CallPacker()
    assert payloads.of(task.call) is payloads.of(task.call)
    return [
        Outcome(**plain)
        for plain in evaluate_on_worker(task_bytes(task), payloads.of(task.call), 0.5, wanted)
    ]


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
