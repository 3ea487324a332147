"""The process of one evaluation: `python -m covey.run.evaluate FOLDER LOCKS`.

It forks. The parent leads the process group, copies what is printed into a log of bounded size,
ends the group if it must not outlive its runner, and exits as the child does. The child calls f.
In a single process, f could fill the pipe while it holds the interpreter, and block for ever.

Each evaluation pays for these imports, so there are few.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from covey.disk import unlock
from covey.run.task import Outcome
from covey.run.workdir import UNWRITTEN, LogTail, Workdir, relay, remove_temporary


def _main(words: Sequence[str]) -> int:
    """Evaluate the task in a folder and write the result there.

    Args:
        words: the folder; the descriptors that hold the locks of ``alive`` and ``computing``;
            "tied" if it must not outlive the process that started it, which then holds the other
            end of standard input open while it lives.
    """
    place, computing = Workdir(Path(words[0])), int(words[2])
    for lock in words[1:3]:
        os.set_inheritable(int(lock), False)  # not inherited by programs that f starts
    try:
        place.begin()
        ours, theirs = os.pipe()
        f_pid = os.fork()  # before there are threads
    except OSError as error:
        return _unwritten(f"it could not begin: {error}")
    if f_pid == 0:
        os.close(ours)
        _redirect_output(theirs)
        return compute(place, computing)
    os.close(theirs)
    for number in (signal.SIGTERM, signal.SIGINT):  # sent to the group, so f gets it too
        signal.signal(number, lambda *_: None)
    if "tied" in words[3:]:
        _die_with_parent(place)
    log = LogTail(sys.stdout.fileno())
    status = relay({ours: log}, lambda: os.waitpid(f_pid, 0)[1])
    log.close()
    return _end_as(os.waitstatus_to_exitcode(status))


def compute(place: Workdir, computing: int) -> int:
    """Call f and write its result to the folder; the exit status."""
    try:
        task = place.read()
    except Exception as error:  # the folder, or a pickle in it, cannot be read
        return _unwritten(f"its task could not be read: {error}")
    try:
        outcome = task if isinstance(task, Outcome) else task.call.evaluate(task, place.folder)
    except OSError as error:  # of the machine; what f raises is caught in `evaluate`
        return _unwritten(f"it could not be evaluated: {error}")
    with suppress(OSError):
        # f has returned: told by a lock, which needs no disk space, so that its time limit ends.
        unlock(computing)
    with suppress(Exception):  # f may have closed them; a log may be incomplete
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


def _redirect_output(pipe: int) -> None:
    """Redirect all output of f into a pipe, line by line, so that a crash loses none of it."""
    import faulthandler

    for output in (1, 2):
        os.dup2(pipe, output)
    os.close(pipe)
    null = os.open(os.devnull, os.O_RDONLY)  # the given one may show that the runner lives
    os.dup2(null, 0)
    os.close(null)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()  # prints a traceback on a crash


def _end_as(code: int) -> int:
    """End by the signal that f ended by, or return its exit status."""
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # f has left a core file of its own
        with suppress(OSError, ValueError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _die_with_parent(place: Workdir) -> None:
    """When standard input closes, kill this process group and remove its folder."""

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
