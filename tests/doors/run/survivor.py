"""A run to be killed: `python survivor.py JOURNAL ENDED [--die MOMENT:N] [--defect NAME]`.

Every evaluation writes its trial into ENDED when it ends. With ``--die`` the runner is killed by
its own hand at the N-th moment of a kind; with ``--defect`` it has a fault that must be noticed.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import time
from pathlib import Path

import covey
import covey.run.dispatcher
import covey.run.process
import covey.run.stopping
from covey.history import Dispatched, Reported, Told
from covey.run import LocalEngine, report
from covey.run.dispatcher import Dispatcher
from covey.run.slots import Places
from covey.study import Study

STEPS = 3  # that an evaluation reports
SPACE = covey.Space({"x": covey.Real(-1.0, 1.0), "y": covey.Real(-1.0, 1.0)})


def around(owner: object, name: str, *, before=lambda *_: None, after=lambda *_: None) -> None:
    """Do something before and after each call of a function."""
    function = getattr(owner, name)

    def wrapped(*given, **named):
        before(*given)
        result = function(*given, **named)
        after(*given)
        return result

    setattr(owner, name, wrapped)


def die_at(moment: str) -> None:
    """Kill this process, and no other, at the N-th such moment."""
    kind, count = moment.split(":")
    left = int(count)
    noted = {
        "before-intent": Dispatched,
        "after-intent": Dispatched,
        "after-report": Reported,
        "before-tell": Told,
        "after-tell": Told,
    }

    def die(*given):
        nonlocal left
        if kind in noted and not isinstance(given[-1], noted[kind]):
            return
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    owner, name, place = {
        "before-intent": (Study, "note", "before"),
        "after-intent": (Study, "note", "after"),
        "after-report": (Study, "note", "after"),
        "before-process": (covey.run.process.subprocess, "Popen", "before"),
        "after-process": (covey.run.process.subprocess, "Popen", "after"),
        "after-submit": (LocalEngine, "submit", "after"),
        "before-tell": (Study, "note", "before"),
        "after-tell": (Study, "note", "after"),
        "after-ask": (Study, "ask", "after"),
    }[kind]
    around(owner, name, **{place: die})


def forgets() -> None:
    """An engine that does not look for what it started in an earlier life."""
    LocalEngine.adopt = lambda self, tasks: set()


def acknowledges_first() -> None:
    """An engine that throws a result away when it has said it, before it is in the log."""

    def poll(self, seconds, real=LocalEngine.poll):
        outcomes = real(self, seconds)
        for outcome in outcomes:
            (self._folder / outcome.name / "result.json").unlink()
        return outcomes

    LocalEngine.poll = poll


def submits_first() -> None:
    """A runner that writes an attempt down after the engine has heard of it."""

    def dispatch(self, trial, real=Dispatcher._dispatch):
        noted = []
        study, engine = self._study, self._engine
        note, submit = study.note, engine.submit
        study.note = lambda event, **_: noted.append(event)
        engine.submit = lambda task: (submit(task), [note(event) for event in noted])
        try:
            real(self, trial)
        finally:
            del study.note, engine.submit

    Dispatcher._dispatch = dispatch


def forgets_slots() -> None:
    """A runner that does not know which slots an earlier life has given out."""
    Places.occupy = lambda self, name, slot: None


def reports_again() -> None:
    """A runner that logs whatever is reported, though an earlier life has done so."""
    covey.run.stopping.worth_logging = lambda reports, after, rule: reports
    covey.run.dispatcher.is_next = lambda said: None  # the fence on the log notices it too


def forgets_reports() -> None:
    """An engine that does not read what was reported before its own life began."""

    def adopt(self, tasks, real=LocalEngine.adopt):
        known = real(self, tasks)
        for name in known:
            self._open[name].reports()
        return known

    LocalEngine.adopt = adopt


def ignores_strays() -> None:
    """A runner that lets run on what nobody waits for, and gives its slot to another."""
    Dispatcher.withdraw_strays = lambda self, names: None


def claim(slots: Path) -> None:
    """Hold the lock of this slot for life; leave a word if somebody else has it."""
    file = os.open(slots / os.environ["COVEY_SLOT"], os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        (slots / "clash").write_text(os.environ["COVEY_TRIAL"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("journal")
    parser.add_argument("ended")
    parser.add_argument("--die", default="")
    parser.add_argument("--defect", default="")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--linger", action="store_true", help="until another has its slot")
    given = parser.parse_args()
    if given.defect:
        globals()[given.defect]()
    if given.die:
        die_at(given.die)
    ended, seconds = Path(given.ended).absolute(), given.seconds
    linger = 300.0 if given.linger else 0.0

    slots = ended.with_name("slots")
    slots.mkdir(exist_ok=True)

    def f(point, seed):
        claim(slots)
        until = time.monotonic() + linger
        while time.monotonic() < until and not (slots / "clash").exists():
            time.sleep(0.02)
        for step in range(1, STEPS + 1):
            time.sleep(seconds * (1.0 + abs(point["x"])) / STEPS)
            report(step, point["x"] + step)
        file = os.open(ended, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{os.environ['COVEY_TRIAL']}\n".encode())
        os.close(file)
        return (point["x"] - 0.3) ** 2 + point["y"] ** 2 + 1e-9 * (seed % 97)

    covey.minimize(f, SPACE, batch=3, rounds=3, workers=2, seed=5, journal=given.journal)


if __name__ == "__main__":
    main()
