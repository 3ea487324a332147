"""Evaluate: what the process of one evaluation does, `python -m covey.run.evaluate FOLDER LOCKS`.

It parts in two. One attends: it leads the group, copies what is printed into a log that stays
short, ends the group if it is not to outlive its runner, and ends as the other one does. The other
calls f. In one process, f could fill the pipe while it holds the interpreter, and wait for ever.

Everything here is paid for once per evaluation, so it imports little.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from covey.run.task import Outcome
from covey.run.workdir import UNWRITTEN, Scroll, Workdir, relay, remove_temporary


def _main(words: Sequence[str]) -> int:
    """Do the task in a folder and leave the result there.

    Args:
        words: the folder; the descriptors that hold the locks of ``alive`` and ``computing``;
            "tied" if it is not to outlive the process that started it, whose end of our standard
            input is then its sign of life.
    """
    place, computing = Workdir(Path(words[0])), int(words[2])
    for lock in words[1:3]:
        os.set_inheritable(int(lock), False)  # a program we start does not keep us alive
    try:
        place.begin()
        ours, theirs = os.pipe()
        f_pid = os.fork()  # before there is any thread
    except OSError as error:
        return _unwritten(f"it could not begin: {error}")
    if f_pid == 0:
        os.close(ours)
        _speak_into(theirs)
        return compute(place, computing)
    os.close(theirs)
    for number in (signal.SIGTERM, signal.SIGINT):  # for the group, so f has it too
        signal.signal(number, lambda *_: None)
    if "tied" in words[3:]:
        _die_with_parent(place)
    log = Scroll(sys.stdout.fileno())
    status = relay({ours: log}, lambda: os.waitpid(f_pid, 0)[1])
    log.close()
    return _as(os.waitstatus_to_exitcode(status))


def compute(place: Workdir, computing: int) -> int:
    """Call f and write its result down; the status to end with."""
    try:
        task = place.read()
    except Exception as error:  # of the folder, or what was made of it
        return _unwritten(f"its task could not be read: {error}")
    try:
        outcome = task if isinstance(task, Outcome) else task.call.evaluate(task, place.folder)
    except OSError as error:  # of the machine; what f raises is caught with it
        return _unwritten(f"it could not be evaluated: {error}")
    with suppress(OSError):
        # Said by a lock, which needs no room: from here on its time limit does not count.
        fcntl.flock(computing, fcntl.LOCK_UN)
    with suppress(Exception):  # f may have closed them; a log is only a log
        sys.stdout.flush()
        sys.stderr.write(outcome.log)
        sys.stderr.flush()
    try:
        place.finish(outcome)
    except OSError as error:
        return _unwritten(f"the result could not be written: {error}")
    return 0


def _unwritten(why: str) -> int:
    with suppress(Exception):
        sys.stderr.write(f"{why}\n")
    return UNWRITTEN


def _speak_into(pipe: int) -> None:
    """Have all that f prints go into a pipe, line by line: one that crashes has said it."""
    import faulthandler

    for output in (1, 2):
        os.dup2(pipe, output)
    os.close(pipe)
    null = os.open(os.devnull, os.O_RDONLY)  # what we were given may be our runner's sign of life
    os.dup2(null, 0)
    os.close(null)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()  # where it was when it crashed


def _as(code: int) -> int:
    """End by the signal that f ended by, or give its status."""
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # f has left its own
        with suppress(OSError, ValueError):  # of SIGKILL, which nobody handles
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _die_with_parent(place: Workdir) -> None:
    """When standard input ends, kill this process and all it started, and leave nothing behind."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        import shutil

        shutil.rmtree(place.folder, ignore_errors=True)
        remove_temporary(place.folder.parent)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
