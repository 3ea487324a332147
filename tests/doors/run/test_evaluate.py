from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import pytest

from covey.run import Outcome, Task
from covey.run.evaluate import compute
from covey.run.task import Function, pack
from covey.run.workdir import UNWRITTEN, Workdir


def prepared(folder, f):
    (folder / "call.pkl").write_bytes(pack(Function(f)))
    place = Workdir(folder / "work")
    place.prepare(Task(3, 1, "a", {"x": 1.5}, 7, None, Function(f)), folder / "call.pkl")
    return place


@pytest.fixture
def main(tmp_path):
    """What the half that calls f does, with a lock to let go."""
    fd = os.open(tmp_path, os.O_RDONLY)
    yield lambda place: compute(place, fd)
    os.close(fd)


def test_it_leaves_a_result(tmp_path, main, capfd):
    place = prepared(tmp_path, lambda p: sys.stdout.write("hello\n") and p["x"])
    assert main(place) == 0
    assert place.result() == Outcome("a", "succeeded", 1.5)
    assert capfd.readouterr().out == "hello\n"


def test_a_traceback_goes_to_the_log(tmp_path, main, capfd):
    place = prepared(tmp_path, lambda p: p["y"])
    assert main(place) == 0
    assert place.result().reason == "KeyError: 'y'"
    assert "Traceback" in capfd.readouterr().err


def test_what_cannot_be_loaded_is_lost(tmp_path, main):
    place = prepared(tmp_path, lambda p: 1.0)
    (tmp_path / "call.pkl").write_bytes(b"not a pickle")
    assert main(place) == 0
    assert place.result().status == "lost"


def test_a_closed_output_is_no_reason_to_lose_a_result(tmp_path, main, monkeypatch):
    place = prepared(tmp_path, lambda p: 1.0)
    monkeypatch.setattr(sys, "stdout", None)
    assert main(place) == 0
    assert place.result().value == 1.0


def test_a_result_that_cannot_be_written_is_said(tmp_path, main, monkeypatch, capsys):
    def broken(self, outcome):
        raise OSError(errno.EIO, "input/output error")

    place = prepared(tmp_path, lambda p: 1.0)
    monkeypatch.setattr(Workdir, "finish", broken)
    assert main(place) == UNWRITTEN
    assert "could not be written" in capsys.readouterr().err


def test_it_imports_little(tmp_path):
    """Every evaluation pays for it."""
    place = prepared(tmp_path, lambda p: 1.0)
    code = (
        "import sys; from pathlib import Path\n"
        "from covey.run.evaluate import Workdir, compute\n"
        "compute(Workdir(Path(sys.argv[1])), 0)\n"
        "print([m for m in ('numpy', 'scipy', 'covey.study', 'subprocess') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, place.folder], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
    assert place.result().value == 1.0


def test_tied_it_dies_with_who_started_it(tmp_path):
    def f(point):
        time.sleep(30.0)

    place = prepared(tmp_path, f)
    locks = place.lock()
    child = subprocess.Popen(
        [sys.executable, "-m", "covey.run.evaluate", place.folder, *map(str, locks), "tied"],
        stdin=subprocess.PIPE,
        pass_fds=locks,
        start_new_session=True,
    )
    for lock in locks:
        os.close(lock)
    while place.worker is None:
        time.sleep(0.01)
    assert child.poll() is None
    child.stdin.close()  # as the kernel does when we die
    assert child.wait(300) == -9
    assert not place.locked
