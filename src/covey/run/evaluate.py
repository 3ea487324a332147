"""The process of one evaluation: `python -m covey.run.evaluate FOLDER LOCKS`.

It leads a process group of its own, and what it prints goes straight into its log, so that f can
print however long it holds the interpreter.

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
from covey.run.workdir import UNWRITTEN, Workdir, remove_temporary


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
    _set_up_streams(place, tied="tied" in words[3:])
    try:
        place.begin()
    except OSError as error:
        return _unwritten(f"it could not begin: {error}")
    return compute(place, computing)


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


def _set_up_streams(place: Workdir, *, tied: bool) -> None:
    """Print line by line, so that a crash loses none of it, and leave f an empty standard input."""
    import faulthandler

    if tied:
        _die_with_parent(place, os.dup(0))  # a copy that programs started by f do not inherit
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()  # prints a traceback on a crash


def _die_with_parent(place: Workdir, tie: int) -> None:
    """When the other end of ``tie`` closes, kill this process group and remove its folder.

    If f holds the interpreter then, as soon as it lets it go.
    """

    def wait() -> None:
        while os.read(tie, 1):
            pass
        import shutil

        shutil.rmtree(place.folder, ignore_errors=True)
        remove_temporary(place.folder.parent)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
