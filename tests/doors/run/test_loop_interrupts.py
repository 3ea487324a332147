"""Ctrl-C during a run: once it ends in order, twice it kills."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.doors.run.scripted import Scripted, dies_of, nothing, value

import covey
from covey.history import Told
from covey.run import Outcome
from covey.run.api import run
from covey.run.loop import Interrupt

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


@pytest.fixture
def study(tmp_path):
    return covey.Study(SPACE, goal="min", seed=3, journal=tmp_path / "run.jsonl")


def test_what_failed_before_ctrl_c_and_before_any_value_is_evaluated_again_by_a_retry(study):
    """Somebody saw the warnings, and mends f."""

    def watch(progress):
        if engine.tasks[2:]:
            raise KeyboardInterrupt

    engine = Scripted(dies_of("oops"), slots=1)
    with pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=8, rounds=1, workers=engine, watch=watch)
    study.retry(study.history.failed)
    run(study, abs, batch=8, rounds=1, workers=Scripted(value))
    assert [trial.status for trial in study.history.trials] == ["told"] * 8


def test_ctrl_c_twice_in_the_midst_of_settling_loses_nothing(study, monkeypatch):
    """The engine is not polled again, or it would forget a value that is not in the log."""
    polls = []

    class Counted(Scripted):
        def poll(self, seconds):
            polls.append(seconds)
            return super().poll(seconds)

    def interrupted(event, note=study.note, **options):
        if isinstance(event, Told):
            raise KeyboardInterrupt
        note(event, **options)

    monkeypatch.setattr(study, "note", interrupted)
    engine = Counted(value, one_by_one=True)
    with pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=2, rounds=1, workers=engine)
    assert len(polls) == 1
    assert engine.cancelled == [engine.tasks[1].name] * 2  # killed


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C interrupts, also where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_says_what_is_safe_and_the_same_call_goes_on(study, caplog):
    engine = Scripted(nothing)

    def answer(task):
        if task.id < 2:
            return value(task)
        os.kill(os.getpid(), signal.SIGINT)
        return []

    engine._answer = answer
    with caplog.at_level(logging.WARNING, logger="covey"), pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=3, rounds=2, workers=engine)
    said = f"2 of 3 results of this batch are recorded in {study.journal}; run the same command"
    assert said in caplog.text
    assert [trial.status for trial in study.history.trials] == ["told", "told", "pending"]
    assert engine.cancelled == [engine.tasks[-1].name]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    run(study, abs, batch=3, rounds=2, workers=Scripted(value))
    assert [trial.status for trial in study.history.trials] == ["told"] * 6


def test_ctrl_c_without_a_journal_says_so(caplog):
    study = covey.Study(SPACE, seed=0)

    def answer(task):
        os.kill(os.getpid(), signal.SIGINT)
        return []

    with pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=3, rounds=2, workers=Scripted(answer))
    assert "0 of 3 results of this batch are recorded in memory" in caplog.text


@pytest.fixture
def nobody_handles_sigterm():
    """Ray handles it in a process that it ran in, and a run leaves handlers of others alone."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("nobody_handles_sigterm")
def test_sigterm_ends_a_run_as_ctrl_c_does(study, caplog):
    """As `docker stop`, Kubernetes, scancel and systemd send it, to all processes of a job."""

    def answer(task):
        if task.id == 0:
            return value(task)
        os.kill(os.getpid(), signal.SIGTERM)
        return [Outcome(task.name, "killed", reason="by signal 15")]

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        run(study, abs, batch=3, rounds=2, workers=Scripted(answer, one_by_one=True), retries=0)
    assert [trial.status for trial in study.history.trials] == ["told", "pending", "pending"]
    assert "1 of 3 results of this batch is recorded" in caplog.text
    assert study.history.events[-1].reason == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) == before


def test_who_handles_sigterm_goes_on_handling_it():
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        with Interrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGTERM)
            assert (came, interrupt.pressed) == ([signal.SIGTERM], False)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("nobody_handles_sigterm")
def test_sigterm_ends_what_was_forked_during_a_run():
    """A pool that breaks ends its other workers by it, and waits for them."""
    with Interrupt():
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM


def test_ctrl_c_asynchronously_counts_all_results(study, caplog):
    def answer(task):
        if task.id < 3:
            return value(task)
        os.kill(os.getpid(), signal.SIGINT)
        return []

    with pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=3, rounds=2, workers=Scripted(answer, slots=1), asynchronous=True)
    assert "stopped: 3 results are recorded in " in caplog.text


def test_ctrl_c_again_while_it_stops(study):
    class Slow(Scripted):
        def poll(self, seconds):
            os.kill(os.getpid(), signal.SIGINT)
            return []

    engine = Slow(nothing)
    with pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=1, rounds=1, workers=engine)
    assert engine.cancelled == [engine.tasks[0].name] * 3  # asked, then twice more: killed


def test_any_number_of_ctrl_c_kills_all_that_runs(study):
    """Somebody who leans on the key does not break off the killing."""

    class Leaning(Scripted):
        def poll(self, seconds):
            os.kill(os.getpid(), signal.SIGINT)
            return []

        def cancel(self, names):
            super().cancel(names)
            os.kill(os.getpid(), signal.SIGINT)

        def close(self):
            os.kill(os.getpid(), signal.SIGINT)

    engine = Leaning(nothing)
    with pytest.raises(KeyboardInterrupt):
        run(study, abs, batch=2, rounds=1, workers=engine)
    asked_then_killed = 3 * [task.name for task in engine.tasks]
    assert sorted(engine.cancelled) == sorted(asked_then_killed)


def test_ctrl_c_twice_kills_at_once(tmp_path):
    """A real one: evaluations that do not want to end, and a user who does not want to wait."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys, time, covey\n"
        "def deaf(point):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    open(f'{sys.argv[0]}.{os.getpid()}', 'w').close()\n"
        "    time.sleep(600)\n"
        "import covey.run.local  # a grace that would be noticed\n"
        "covey.run.local.LocalEngine.__init__.__kwdefaults__['grace'] = 600.0\n"
        "space = covey.Space({'x': covey.Real(0.0, 1.0)})\n"
        f"covey.maximize(deaf, space, batch=2, workers=2, journal={str(tmp_path / 'j')!r})\n"
    )
    script.write_text(script.read_text().replace("{sys.argv[0]}", f"{tmp_path}/pid"))
    runner = subprocess.Popen(
        [sys.executable, script], stderr=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 60.0
    while len(list(tmp_path.glob("pid.*"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    runner.send_signal(signal.SIGINT)
    time.sleep(1.0)
    assert runner.poll() is None  # it gives them their grace
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=60)  # of ten minutes
    for path in tmp_path.glob("pid.*"):
        stat = Path(f"/proc/{path.suffix[1:]}/stat")
        assert not stat.exists() or stat.read_text().split()[2] == "Z"
    history = covey.Study.load(tmp_path / "j").history
    assert [trial.status for trial in history.trials] == ["pending"] * 2


# The handler of the signal


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_noted_and_the_second_obeyed_at_once(caplog):
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        interrupt.check()
        with caplog.at_level(logging.WARNING, logger="covey"):
            press()
        assert interrupt.pressed
        assert "Ctrl-C again kills" in caplog.text
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupt.twice
        for _ in range(5):
            press()  # what runs is being killed, and that is not broken off
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_fails_in_the_midst_of_it_is_no_matter(monkeypatch):
    """As logging does, if Ctrl-C comes while another line is being written."""

    def reentrant(*_):
        raise RuntimeError("reentrant call inside <_io.BufferedWriter>")

    monkeypatch.setattr("covey.run.loop._log.warning", reentrant)
    with Interrupt() as interrupt:
        press()
        assert interrupt.pressed


def test_elsewhere_it_does_nothing():
    found = []

    def enter():
        with Interrupt():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]


def test_who_ignores_it_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            press()
            assert not interrupt.pressed
    finally:
        signal.signal(signal.SIGINT, before)
