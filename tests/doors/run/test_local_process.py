from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from covey.run import Task
from covey.run.process import Process
from covey.run.task import Function, pack
from covey.run.workdir import Workdir


@pytest.fixture
def begin(tmp_path):
    def begin(f, timeout=None, grace=1.0, tied=False):
        call = tmp_path / "call.pkl"
        call.write_bytes(pack(Function(f)))
        task = Task(0, 1, "a", {"x": 1.5}, 7, timeout, Function(f))
        return Process.start(task, Workdir(tmp_path / "work"), call, grace, tied=tied)

    return begin


def outcomes(process, within=60.0):
    until = time.monotonic() + within
    while not (found := process.check()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


def test_it_runs_and_ends(begin):
    process = begin(lambda p: p["x"])
    assert not process.stopping
    assert [found.value for found in outcomes(process)] == [1.5]


def test_it_runs_unseen_at_no_moment(begin, tmp_path):
    """Locked from before it exists: a runner that is killed now is followed by one that knows."""
    process = begin(lambda p: time.sleep(0.3) or 1.0)
    assert Workdir(tmp_path / "work").locked
    assert outcomes(process)[0].value == 1.0
    assert not Workdir(tmp_path / "work").locked


def test_a_status_before_the_result_is_a_failure(begin):
    (found,) = outcomes(begin(lambda p: os._exit(3)))
    assert found.status == "failed"
    assert "status 3" in found.reason


def test_a_signal_is_named(begin):
    (found,) = outcomes(begin(lambda p: os.kill(os.getpid(), signal.SIGSEGV)))
    assert (found.status, found.reason) == ("killed", "its process was killed by signal 11")


def test_a_process_that_never_began_is_lost(begin, monkeypatch, tmp_path):
    (tmp_path / "covey.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (found,) = outcomes(begin(lambda p: 1.0))
    assert found.status == "lost"
    assert "could not do its work" in found.reason


def test_the_current_folder_stands_in_for_nothing(begin, monkeypatch, tmp_path):
    for name in ("random", "json", "covey"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not this one')")
    monkeypatch.chdir(tmp_path)
    (found,) = outcomes(begin(lambda p: __import__("random").Random(p["x"]) and p["x"]))
    assert (found.status, found.value) == ("succeeded", 1.5)


def test_modules_beside_the_script_are_found(tmp_path):
    """A function by reference: its module is found where the runner found it."""
    (tmp_path / "objective.py").write_text("def f(point):\n    return point['x']\n")
    script = tmp_path / "script.py"
    script.write_text(
        "from covey.run import LocalEngine, Task\n"
        "from covey.run.task import Function\n"
        "from objective import f\n"
        "engine = LocalEngine(1)\n"
        "engine.submit(Task(0, 1, 'covey-00000000-0-a1', {'x': 2.5}, 0, None, Function(f)))\n"
        "print(engine.poll(120.0)[0].value)\n"
        "engine.close()\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd="/", capture_output=True, text=True, check=True
    )
    assert done.stdout == "2.5\n"


def test_a_result_that_cannot_be_written_is_lost(begin):
    def f(point):
        from covey.run import workdir

        def broken(path, data):
            raise OSError(errno.EIO, "input/output error")

        workdir.write_whole = broken
        return 1.0

    (found,) = outcomes(begin(f))
    assert found.status == "lost"
    assert "could not be written" in found.reason


def test_what_it_started_ends_with_it(begin, tmp_path):
    pid = tmp_path / "pid"

    def f(point):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pid.write_text(str(child.pid))
        time.sleep(60.0)

    process = begin(f)
    while not (pid.exists() and pid.read_text()):
        time.sleep(0.01)
    process.stop()
    assert outcomes(process)[0].reason == "it was cancelled"
    gone(int(pid.read_text()))


def gone(pid):
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":  # dead, but not buried
                return
        except FileNotFoundError:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} lives")


def test_it_has_to_end_when_it_has_finished(begin):
    """A thread that was left running does not hold a worker for ever."""

    def f(point):
        import threading

        threading.Thread(target=time.sleep, args=(600.0,)).start()
        return 2.0

    (found,) = outcomes(begin(f, grace=0.3))
    assert found.value == 2.0


def test_a_failure_when_it_was_cancelled_is_not_its_own(begin, tmp_path):
    """It turned SIGTERM into an exception; a later runner must not take that for a failure."""

    def f(point):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        (tmp_path / "ready").touch()
        time.sleep(60.0)

    process = begin(f)
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    process.stop()
    (found,) = outcomes(process)
    assert found.status == "lost"
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    assert again.check()[0].status == "lost"


def test_one_that_was_overdue_when_the_runner_died_is_timed_out(begin, tmp_path):
    process = begin(lambda p: time.sleep(60.0), timeout=0.1)
    while not process.stopping:
        process.check()
        time.sleep(0.01)
    process.stop()  # killed at once
    process.wait(60.0)
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    assert [found.status for found in again.check()] == ["timed-out"]


def test_one_that_is_adopted_keeps_its_clock(begin, tmp_path):
    process = begin(lambda p: time.sleep(60.0), timeout=1.0)
    while process._elapsed() < 0.5:
        time.sleep(0.01)
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    assert again._elapsed() >= 0.5
    assert [found.status for found in outcomes(again)] == ["timed-out"]
    process.wait(60.0)


def test_one_that_died_unseen_is_lost(begin, tmp_path):
    process = begin(lambda p: time.sleep(60.0))
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    assert again.check() == []
    process.stop()
    process.stop()
    process.wait(60.0)
    (found,) = outcomes(again)
    assert found.reason == "it was cancelled"
    (tmp_path / "work" / "stopped").unlink()
    assert again.check()[0].reason == "its process ended without a result"
    assert Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0) is None
    assert Process.adopt(process.task, Workdir(tmp_path / "nowhere"), 1.0) is None


def test_a_lock_that_outlived_its_process_is_broken(begin, tmp_path):
    """A fork of the evaluation inherits the lock; who adopts it is not to wait for that."""

    def f(point):
        if os.fork() == 0:
            time.sleep(60.0)
        os.kill(os.getpid(), signal.SIGKILL)

    process = begin(f)
    process._child.wait(120)
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    assert outcomes(again)[0].status == "lost"
    until = time.monotonic() + 60.0
    while Workdir(tmp_path / "work").locked and time.monotonic() < until:
        time.sleep(0.01)
    assert not Workdir(tmp_path / "work").locked


def test_who_has_its_number_now_is_left_alone(begin, tmp_path):
    """It ended, and its pid was given to another process, which is not to be signalled."""
    process = begin(lambda p: 3.0)
    process._child.wait(120)
    place = Workdir(tmp_path / "work")
    again = Process.adopt(process.task, place, 1.0)
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    alive = tmp_path / "work" / "alive"
    alive.write_text(
        alive.read_text().replace(f'"pid": {process._child.pid}', f'"pid": {other.pid}')
    )
    assert place.worker["pid"] == other.pid
    again.stop()
    again.stop()
    time.sleep(0.1)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_of_another_machine_only_the_files_count(begin, tmp_path, monkeypatch):
    process = begin(lambda p: time.sleep(1.0) or 3.0, timeout=60.0)
    place = Workdir(tmp_path / "work")
    while place.worker is None:
        time.sleep(0.01)
    far = {**place.worker, "host": "far-away", "since": time.time() - 30.0}
    monkeypatch.setattr(Workdir, "worker", property(lambda self: far))
    again = Process.adopt(process.task, place, 1.0)
    again.stop()  # cannot be, from here
    assert again.check() == []
    assert again._elapsed() >= 30.0
    assert outcomes(again)[0].value == 3.0
    process.wait(60.0)


def test_left_behind_it_goes_on(begin, tmp_path):
    process = begin(lambda p: time.sleep(0.3) or 3.0)
    process.leave()
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    assert outcomes(again)[0].value == 3.0
    again.leave()


def test_a_process_is_known_by_when_it_began():
    from covey.run.workdir import start_time

    other = subprocess.Popen(["sleep", "60"])
    began = start_time(other.pid)
    assert began == start_time(other.pid)
    assert began is not None
    other.kill()
    other.wait()
    assert start_time(other.pid) is None


@pytest.mark.parametrize("age", ["another", "unknown"])
def test_a_number_that_was_given_away_is_neither_killed_nor_believed(begin, tmp_path, age):
    """What it forked holds its lock; its own number is a stranger's, who leads a group."""

    def f(point):
        if os.fork() == 0:
            os.setsid()
            time.sleep(20.0)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    process = begin(f, timeout=0.1)
    process._child.wait(120)
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    alive = tmp_path / "work" / "alive"
    who = json.loads(alive.read_text())
    started = None if age == "unknown" else who.get("started")
    alive.write_text(json.dumps({**who, "pid": stranger.pid, "started": started}))
    place = Workdir(tmp_path / "work")
    assert place.locked
    again = Process.adopt(process.task, place, 0.1)
    until = time.monotonic() + (120.0 if age == "another" else 1.0)
    found = []
    while time.monotonic() < until and not (found and age == "another"):
        found += again.check()
        time.sleep(0.05)
    assert stranger.poll() is None
    if age == "another":
        assert found[0].status in ("lost", "timed-out")
    stranger.kill()
    stranger.wait()


def test_a_child_keeps_its_number_until_what_it_left_is_ended(begin, monkeypatch):
    """Killed as a group only while the kernel cannot have given the number to somebody else."""
    killed = []
    process = begin(lambda p: os._exit(3))
    real = os.killpg

    def killpg(pid, number):
        if number:  # 0 only asks
            killed.append(Path(f"/proc/{pid}").exists())  # still there, if only to be buried
        real(pid, number)

    monkeypatch.setattr(os, "killpg", killpg)
    outcomes(process)
    assert killed == [True]


def short_of(monkeypatch, number, times):
    """Have the next so many files that are opened fail."""
    left = [times]
    real = os.open

    def scarce(path, *given, **named):
        if left[0] > 0 and "work" in str(path):
            left[0] -= 1
            raise OSError(number, os.strerror(number))
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", scarce)
    monkeypatch.setattr(
        Path, "open", lambda self, mode="r", **named: os.fdopen(os.open(self, os.O_RDONLY), mode)
    )
    return left


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_passing_want_of_descriptors_harms_nothing(begin, monkeypatch, tmp_path, number):
    process = begin(lambda p: time.sleep(0.3) or 2.5)
    process._child.wait(120)
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    left = short_of(monkeypatch, number, 3)
    assert again.check() == []
    assert again.check() == []
    assert outcomes(again)[0].value == 2.5
    assert left == [0]


def test_a_lasting_want_of_descriptors_is_said_and_lets_it_live(begin, monkeypatch, tmp_path):
    from covey.errors import WorkFolderError
    from covey.run import process as module

    process = begin(lambda p: time.sleep(1.0) or 2.5)
    again = Process.adopt(process.task, Workdir(tmp_path / "work"), 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_SHORTAGE", 0.05)
        short_of(patch, errno.EMFILE, 10**6)
        assert again.check() == []
        time.sleep(0.1)
        with pytest.raises(WorkFolderError, match=r"It goes on; mend that and run again"):
            again.check()
    assert process._child.poll() is None
    assert outcomes(again)[0].value == 2.5
    process.wait(60.0)


def test_f_that_holds_the_interpreter_can_still_print(begin):
    """Its output is read by another process; a thread of its own would wait for the interpreter."""

    def f(point):
        import ctypes

        libc = ctypes.PyDLL(None)  # which keeps the interpreter while it works
        for _ in range(200):
            libc.write(1, b"x" * 4096, 4096)
        return 1.0

    (found,) = outcomes(begin(f))
    assert found.value == 1.0
    assert len(found.log) == 65536


def test_what_was_left_behind_holds_up_nobody(begin):
    """A program that keeps standard output open is no reason to wait for it."""

    def f(point):
        left = subprocess.Popen(["sleep", "600"], start_new_session=True)
        return {"value": 1.0, "pid": left.pid}

    (found,) = outcomes(begin(f))
    assert found.value == 1.0
    os.kill(int(found.metrics["pid"]), signal.SIGKILL)  # it was still there
