from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.doors.run.conftest import Bench

import covey
from covey.disk import hold
from covey.errors import StrategyError
from covey.history import Dispatched
from covey.run import LocalEngine, process
from covey.run.task import name_of


@pytest.fixture
def bench(tmp_path):
    engine = LocalEngine(2, tmp_path / "work", grace=1.0)
    yield Bench("local", engine, lambda: LocalEngine(2, tmp_path / "work", grace=1.0))
    engine.close()


@pytest.mark.parametrize("slots", [0, True, 1.5])
def test_bad_slots_are_named(slots):
    with pytest.raises(StrategyError, match="workers must be a whole number"):
        LocalEngine(slots)


def test_the_function_is_written_once(bench, tmp_path):
    def f(point):
        return 1.0

    for i in range(3):
        bench.submit(f, str(i))
    bench.outcomes(3)
    assert len(list((tmp_path / "work").glob("call-*.pkl"))) == 1


def test_a_run_that_is_over_leaves_no_code_behind(tmp_path):
    """What it leaves are logs of what failed."""
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0, journal=tmp_path / "j")
    study.run(lambda p: p["x"], batch=2, rounds=1, workers=2)
    assert list((tmp_path / "j.work").iterdir()) == []

    low = min(trial.point["x"] for trial in study.ask(2))

    def f(point):
        if point["x"] == low:
            raise ValueError("too low")
        return point["x"]

    study.run(f, batch=2, rounds=2, workers=1)
    assert len(study.history.failed) == 1
    (left,) = (tmp_path / "j.work").iterdir()
    assert left.name == study.history.attempts(study.history.failed[0])[-1].name


def folders(tmp_path):
    return {path.name for path in (tmp_path / "work").iterdir() if path.is_dir()}


def test_a_folder_goes_when_its_outcome_is_in_the_log(bench, tmp_path):
    """Which it is when it polls again; what went wrong is kept to be read."""
    task = bench.submit(lambda p: 1.0)
    assert [found.value for found in bench.engine.poll(120.0)] == [1.0]
    assert folders(tmp_path) == {task.name}
    again = bench.reopen()
    assert again.adopt([task]) == {task.name}  # as after a crash before it was told
    bench.engine.poll(0.0)
    assert folders(tmp_path) == set()
    bad = bench.submit(lambda p: 1 / 0, "bad")
    slow = bench.submit(lambda p: time.sleep(60.0), "slow", timeout=0.2)
    assert {found.status for found in bench.outcomes(2)} == {"failed", "timed-out"}
    bench.engine.poll(0.0)
    assert folders(tmp_path) == {bad.name, slow.name}
    assert "ZeroDivisionError" in (tmp_path / "work" / bad.name / "log").read_text()


def test_what_was_said_and_not_written_down_is_found_again(bench, tmp_path):
    """The log failed; neither closing nor another run with the same engine forgets it."""
    task = bench.submit(lambda p: 1.0)
    bench.engine.poll(120.0)
    bench.engine.close()
    assert folders(tmp_path) == {task.name}
    assert bench.engine.adopt([task]) == {task.name}
    assert [found.value for found in bench.outcomes(1)] == [1.0]
    assert folders(tmp_path) == set()


def test_a_machine_that_cannot_start_it_has_lost_it(bench, monkeypatch):
    def full(*given, **named):
        raise OSError(errno.EAGAIN, "resource temporarily unavailable")

    monkeypatch.setattr(process.subprocess, "Popen", full)
    found = bench.outcome_of(lambda p: 1.0)
    assert found.status == "lost"
    assert "could not be started" in found.reason


def test_without_a_folder_nothing_stays_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = LocalEngine(2)
    bench = Bench("local", engine, lambda: None)
    bench.submit(lambda p: 1.0)
    bench.outcomes(1)
    slept = tmp_path.with_name("slept")
    task = bench.submit(lambda p: time.sleep(60.0) or slept.touch())
    assert LocalEngine(2).adopt([task]) == set()
    assert len(list(tmp_path.iterdir())) == 1
    engine.close()
    assert not slept.exists()  # it was stopped, not waited for
    assert list(tmp_path.iterdir()) == []
    engine.close()  # twice is harmless


def test_closed_it_leaves_running_what_can_be_found_again(bench):
    kept = bench.submit(lambda p: time.sleep(1.0) or 2.0, "kept")
    dropped = bench.submit(lambda p: time.sleep(60.0), "dropped")
    bench.engine.cancel([dropped.name])
    bench.engine.close()
    again = bench.reopen()
    assert again.adopt([kept, dropped]) == {kept.name}
    (found,) = bench.outcomes(1, engine=again)
    assert found.value == 2.0


def test_without_a_folder_evaluations_end_with_their_runner(tmp_path):
    """Killed, not closed: nobody could ever find them again."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, time, sys\n"
        "from pathlib import Path\n"
        "from covey.run import LocalEngine, Task\n"
        "from covey.run.task import Function\n"
        "def f(point):\n"
        "    Path(point['pid']).write_text(str(os.getpid()))\n"
        "    time.sleep(60.0)\n"
        "engine = LocalEngine(1)\n"
        "name, point = 'covey-00000000-0-a1', {'pid': sys.argv[1]}\n"
        "engine.submit(Task(0, 1, name, point, 0, None, Function(f)))\n"
        "while not (Path(sys.argv[1]).exists() and Path(sys.argv[1]).read_text()):\n"
        "    time.sleep(0.01)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    pid = tmp_path / "pid"
    done = subprocess.run([sys.executable, script, pid], check=False)
    assert done.returncode == -9
    until = time.monotonic() + 120.0
    stat = Path(f"/proc/{pid.read_text()}/stat")
    while stat.exists() and stat.read_text().split()[2] != "Z" and time.monotonic() < until:
        time.sleep(0.02)
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_it_waits_without_burning_the_processor(bench):
    bench.submit(lambda p: time.sleep(1.0) or 1.0)
    before = os.times()
    bench.outcomes(1)
    after = os.times()
    assert after.user + after.system - before.user - before.system < 0.3


def crashes(point):
    sys.stdout.write("about to\n")
    os.kill(os.getpid(), signal.SIGSEGV)


def test_the_log_of_a_crash_is_kept_and_named(bench, tmp_path):
    task = bench.submit(crashes)
    (found,) = bench.outcomes(1)
    bench.engine.poll(0.0)
    log = tmp_path / "work" / task.name / "log"
    assert found.status == "killed"
    assert found.reason == f"its process was killed by signal 11; its log is {log}"
    assert "about to" in log.read_text()
    assert "Segmentation fault" in log.read_text()  # and where, by faulthandler


def test_the_log_of_what_was_cancelled_goes(bench, tmp_path):
    task = bench.submit(lambda p: sys.stdout.write("here\n") and time.sleep(60.0))
    while not list((tmp_path / "work").glob(f"{task.name}/log")):
        time.sleep(0.01)
    bench.engine.cancel([task.name])
    (found,) = bench.outcomes(1)
    assert found.reason == "it was cancelled"
    assert folders(tmp_path) == set()


def test_what_has_computed_and_waits_for_room_is_not_cancelled(bench, tmp_path):
    """Ctrl-C, twice even: hours of work may be in it, and the next run finds them."""

    def f(point):
        from covey.run import workdir

        def full(path, data, real=workdir.write_whole):
            if not (tmp_path / "room").exists():
                raise OSError(errno.ENOSPC, "no space left on device")
            real(path, data)

        workdir.write_whole = full
        return 2.5

    task = bench.submit(f, timeout=1.0)
    until = time.monotonic() + 120.0
    while not bench.engine._open[task.name].computed and time.monotonic() < until:
        time.sleep(0.01)
    bench.engine.cancel([task.name])
    bench.engine.cancel([task.name])
    assert bench.engine.poll(1.5) == []  # nor is it overdue
    bench.engine.close()
    again = bench.reopen()
    assert again.adopt([task]) == {task.name}
    (tmp_path / "room").touch()
    assert [found.value for found in bench.outcomes(1, engine=again)] == [2.5]


def test_what_a_killed_run_left_of_told_trials_is_removed_by_the_next(tmp_path):
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, strategy="random", seed=0, journal=tmp_path / "run.jsonl")
    trials = study.ask(3)
    work = tmp_path / "run.jsonl.work"
    names = [name_of("0a1b2c3d", trial.id, 1) for trial in trials]
    for trial, name in zip(trials, names, strict=True):
        study.note(Dispatched(trial.id, 1, name, 7))
        (work / name).mkdir(mode=0o700, parents=True)
    work.chmod(0o700)
    (work / "call-0123456789abcdef.pkl").touch()
    (work / "notes").mkdir()
    study.tell(trials[0], 1.0)
    study.fail(trials[1], "it raised")
    study.tell(trials[2], 2.0)
    busy = hold(work / names[2] / "alive")
    study.run(lambda p: p["x"], batch=3, rounds=1, workers=1)
    assert {path.name for path in work.iterdir() if path.is_dir()} == {*names[1:], "notes"}
    assert (work / "call-0123456789abcdef.pkl").exists()  # it may not have been read yet
    os.close(busy)
    study.run(lambda p: p["x"], batch=3, rounds=1, workers=1)
    assert {path.name for path in work.iterdir()} == {names[1], "notes"}


def test_a_run_without_a_journal_that_is_killed_leaves_nothing(tmp_path):
    """What it started removes its files; what nothing could remove, the next such run does."""
    script = tmp_path / "script.py"
    script.write_text(
        "import time, sys, covey\n"
        "from pathlib import Path\n"
        "def f(point):\n"
        "    Path(f'{mark}-{time.monotonic_ns()}').touch()\n"
        "    time.sleep(60.0)\n"
        "mark = sys.argv[1]\n"
        "space = covey.Space({'x': covey.Real(0.0, 1.0)})\n"
        "covey.maximize(f, space, batch=2, workers=2)\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for number in (signal.SIGTERM, signal.SIGKILL):
        mark = tmp_path / f"mark{number}"
        words = [sys.executable, script, mark]
        runner = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(temporary)})
        until = time.monotonic() + 120.0
        while len(list(tmp_path.glob(f"{mark.name}-*"))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        runner.send_signal(number)
        runner.wait(120)
        until = time.monotonic() + 120.0
        while list(temporary.iterdir()) and time.monotonic() < until:
            time.sleep(0.02)
        assert list(temporary.iterdir()) == []


def test_temporary_folders_of_the_dead_are_removed_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def left(name, mode=0o700, host=None, age=3600.0):
        folder = tmp_path / f"covey-{name}"
        folder.mkdir(mode=mode)
        folder.chmod(mode)
        owner = folder / "owner"
        owner.write_text(os.uname().nodename if host is None else host)
        os.utime(owner, (time.time() - age,) * 2)
        return folder

    dead, alive = left("dead"), left("alive")
    busy = hold(alive / "owner")
    kept = [alive, left("new", age=1.0), left("far", host="far-away"), left("open", mode=0o755)]
    (tmp_path / "covey-empty").mkdir(mode=0o700)
    (tmp_path / "covey-link").symlink_to(kept[1])
    engine = LocalEngine(1)
    bench = Bench("local", engine, lambda: None)
    assert bench.outcome_of(lambda p: 1.0).value == 1.0
    engine.close()
    os.close(busy)
    assert not dead.exists()
    left_now = {path.name for path in tmp_path.iterdir()}
    assert left_now == {*(path.name for path in kept), "covey-empty", "covey-link"}
