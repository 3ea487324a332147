from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time

import pytest

from covey.run import Outcome, Task, workdir
from covey.run.task import Function, pack
from covey.run.workdir import TAIL, Workdir, environment, tail, trim


@pytest.fixture
def place(tmp_path):
    call = tmp_path / "call.pkl"
    call.write_bytes(pack(Function(lambda p: 1.0)))
    place = Workdir(tmp_path / "deep" / "work")
    place.prepare(Task(3, 2, "a", {"x": (1, 2)}, 7, 5.0, Function(len)), call)
    return place


def test_a_task_is_read_as_it_was_written(place, monkeypatch):
    path = list(sys.path)
    task = place.read()
    assert sys.path == path
    assert (task.id, task.attempt, task.name) == (3, 2, "a")
    assert (task.point, task.seed, task.timeout) == ({"x": (1, 2)}, 7, 5.0)
    assert task.call.evaluate(task, place.folder).value == 1.0
    assert place.folder.stat().st_mode & 0o777 == 0o700  # a pickle is code


def test_a_folder_belongs_to_one_attempt(place):
    with pytest.raises(FileExistsError):
        place.prepare(place.read(), place.folder)


def test_what_cannot_be_loaded_here_is_lost(place, monkeypatch):
    monkeypatch.setattr(workdir, "python_version", lambda: "2.7")
    found = place.read()
    assert found.status == "lost"
    assert "this is 2.7; use the same" in found.reason
    monkeypatch.undo()
    (place.folder / "point.pkl").write_bytes(b"cno_such_module\nf\n.")
    found = place.read()
    assert found.status == "lost"
    assert "No module named 'no_such_module'" in found.reason


def test_it_is_alive_while_the_lock_is_held(place):
    assert not place.locked
    assert place.worker is None
    alive, computing = place.lock()
    assert place.locked
    assert not place.computed
    assert place.worker is None  # nobody has begun
    place.begin()
    assert place.locked
    assert place.worker["pid"] == os.getpid()
    os.close(computing)
    assert place.locked
    assert place.computed
    os.close(alive)
    assert not place.locked


def test_a_result_is_whole_or_not_there(place):
    assert not place.finished
    assert place.result() is None
    place.log.write_text("said")
    place.finish(Outcome("a", "succeeded", 0.1 + 0.2, "why", "a log that is elsewhere", 1e-300))
    assert place.finished
    assert place.result() == Outcome("a", "succeeded", 0.1 + 0.2, "why", "said", 1e-300)


def test_a_full_disk_is_waited_for(place, monkeypatch):
    tries = []

    def full(path, data):
        tries.append(data)
        if len(tries) < 3:
            raise OSError(errno.ENOSPC, "no space left on device")
        real(path, data)

    real = workdir.write_whole
    monkeypatch.setattr(workdir, "write_whole", full)
    monkeypatch.setattr(workdir.time, "sleep", lambda seconds: None)
    place.finish(Outcome("a", "succeeded", 2.0))
    assert len(tries) == 3
    assert place.result().value == 2.0


def test_a_broken_disk_is_not(place, monkeypatch):
    def broken(fd):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(workdir.os, "fsync", broken)
    with pytest.raises(OSError, match="input/output"):
        place.finish(Outcome("a", "succeeded", 2.0))
    assert not place.finished


def test_a_reader_never_sees_half_a_result(place):
    """The test of a rename: write many times while another thread reads."""
    done = threading.Event()
    seen = set()

    def read():
        while not done.is_set():
            found = place.result()
            if found is not None:
                seen.add(found.reason)

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(50):
        place.finish(Outcome("a", "failed", reason=str(i % 2) * 100_000))
    time.sleep(0.01)
    done.set()
    thread.join()
    assert seen <= {"0" * 100_000, "1" * 100_000}


def test_why_it_was_stopped_is_kept(place, monkeypatch):
    assert place.stopped == ""
    place.stop("overdue")
    assert place.stopped == "overdue"


def test_the_end_of_a_log(place):
    assert tail(place.log) == ""
    trim(place.log)  # there is none
    place.log.write_text("short")
    trim(place.log)
    assert place.log.read_text() == "short"
    place.log.write_bytes(b"\xff" * TAIL + b"x" * (TAIL - 1))
    trim(place.log, 2 * TAIL)
    assert place.log.stat().st_size == 2 * TAIL - 1
    trim(place.log)
    assert place.log.stat().st_size == TAIL
    assert tail(place.log) == "\ufffd" + "x" * (TAIL - 1)


def test_a_log_is_cut_while_it_is_written_to(place):
    """Who writes appends: what comes after the cut stands after what was kept."""
    with place.log.open("ab", buffering=0) as log:
        log.write(b"a" * (3 * TAIL))
        trim(place.log)
        log.write(b"b")
    assert place.log.read_bytes() == b"a" * TAIL + b"b"


def test_the_environment_names_the_evaluation(place):
    task = place.read()
    own = {"COVEY_TRIAL": "3", "COVEY_SEED": "7", "PYTHONHASHSEED": "7"}
    assert environment(task) == {**os.environ, **own}
    assert json.loads((place.folder / "task.json").read_text())["seed"] == 7
