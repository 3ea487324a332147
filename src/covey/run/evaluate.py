"""Evaluate: what the process of one evaluation does, `python -m covey.run.evaluate FOLDER LOCK`.

Everything here is paid for once per evaluation, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from covey.run.task import Outcome
from covey.run.workplace import UNWRITTEN, Workplace


def main(words: Sequence[str]) -> int:
    """Do the task in a folder and leave the result there.

    Args:
        words: the folder; the descriptor that holds its lock; "tied" if it is not to outlive the
            process that started it, whose end of our standard input is then its sign of life.
    """
    place = Workplace(Path(words[0]))
    os.set_inheritable(int(words[1]), False)  # a program we start does not keep us alive
    if "tied" in words[2:]:
        _die_with_parent()
    place.begin()
    task = place.read()
    outcome = task if isinstance(task, Outcome) else task.call.evaluate(task, place.folder)
    with suppress(Exception):  # f may have closed them, or the disk be full; a log is only a log
        sys.stdout.flush()
        sys.stderr.write(outcome.log)
        sys.stderr.flush()
    try:
        place.finish(outcome)
    except OSError as error:
        with suppress(Exception):
            sys.stderr.write(f"the result could not be written: {error}\n")
        return UNWRITTEN
    return 0


def _die_with_parent() -> None:
    """Kill this process and all it started when standard input ends."""
    line = os.dup(0)
    os.set_inheritable(line, False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def wait() -> None:
        while os.read(line, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
