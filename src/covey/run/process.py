"""Process: one evaluation in a process of its own, watched from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from covey.errors import WorkFolderError
from covey.run.task import Outcome, Task
from covey.run.workplace import UNWRITTEN, Workplace, environment, start_time, tail

GRACE = 10.0  # seconds between SIGTERM and SIGKILL
_OVERDUE, _CANCELLED = "overdue", "cancelled"
_LOOK = 1.0  # seconds between two looks at a process that is not ours; its lock says it sooner
_SHORTAGE = 60.0  # seconds for which its folder may be unreadable before that is an error


class Process:
    """An evaluation that was started here, or by an earlier runner that is dead.

    It leads a process group of its own, and signals go to the group: what it has started ends with
    it. Never to somebody else's: a child keeps its number until it is waited for, and of one that
    is not ours the lock has to be held, and the process of its number to be as old as it says.
    """

    def __init__(
        self, task: Task, place: Workplace, grace: float, child: subprocess.Popen[bytes] | None
    ) -> None:
        self.task = task
        self._place = place
        self._grace = grace
        self._child = child  # None: it is not ours
        self._finished_at: float | None = None
        self._stopped_at: float | None = None
        self._why = ""  # it was stopped; the disk may have no room to say so
        self._unreadable_at: float | None = None
        self._alive_until = 0.0  # one that is not ours: when to look at its process again

    @classmethod
    def start(cls, task: Task, place: Workplace, call: Path, grace: float, *, tied: bool) -> Self:
        """Begin; ``tied``: it is not to outlive this process.

        Raises:
            OSError: The machine cannot start it.
        """
        place.prepare(task, call)
        locks = place.lock()
        # -P: a random.py in the current folder is not to stand in for the standard library's.
        words = [
            sys.executable,
            "-P",
            "-m",
            "covey.run.evaluate",
            str(place.folder),
            *map(str, locks),
        ]
        try:
            with place.log.open("ab") as log:  # its end is cut off now and then
                child = subprocess.Popen(
                    [*words, "tied"] if tied else words,
                    stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment(task),
                    start_new_session=True,
                    pass_fds=locks,
                )
        finally:
            for lock in locks:
                os.close(lock)
        return cls(task, place, grace, child)

    @classmethod
    def adopt(cls, task: Task, place: Workplace, grace: float) -> Self | None:
        """One that an earlier runner started; None if it neither runs nor came to anything."""
        # Running before finished: the other way round, it may finish between the two looks.
        if place.locked or place.finished or place.stopped == _OVERDUE:
            return cls(task, place, grace, None)
        return None

    def check(self) -> list[Outcome]:
        """What became of it, nothing while it runs; enforces its time limit.

        While its folder cannot be read, as for want of descriptors, it is taken to run.

        Raises:
            WorkFolderError: Its folder could not be read for a minute; the evaluation goes on.
        """
        try:
            found = self._look()
        except OSError as error:
            now = time.monotonic()
            self._unreadable_at = self._unreadable_at or now
            if isinstance(error, WorkFolderError) or now - self._unreadable_at > _SHORTAGE:
                raise WorkFolderError(
                    f"the evaluation in {self._place.folder} cannot be watched: {error}. It goes "
                    "on; mend that and run again, and its result is found."
                ) from error
            return []
        self._unreadable_at = None
        return found

    def _look(self) -> list[Outcome]:
        if not self._ended():
            self._enforce()
            return []
        result, why = self._place.result(), self._why or self._place.stopped
        good = result is not None and result.status == "succeeded"
        if not good:
            self._clear_up()
        self._bury()
        self._place.trim()
        if why == _OVERDUE:
            limit = f"it took longer than {self.task.timeout or 0.0:g} s"
            ended = Outcome(self.task.name, "timed-out", reason=limit, log=tail(self._place.log))
            return [ended, result] if result is not None and good else [ended]
        if result is not None and (good or not why):
            return [result]
        return [self._without_result(why)]

    def stop(self, why: str = _CANCELLED) -> None:
        """Ask it to end; asked again, or after a while, it is killed."""
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
            if not self._place.finished:
                self._why = why
                self._place.stop(why)
            self._signal(signal.SIGTERM)
        else:
            self._signal(signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait so long for its end."""
        until = time.monotonic() + seconds
        while not self._ended() and time.monotonic() < until:
            self._enforce()
            time.sleep(0.01)
        if self._ended():
            self._bury()

    def leave(self) -> None:
        """Let it run on; somebody has to wait for a child, or it stays behind as a zombie."""
        if self._child is not None:
            threading.Thread(target=self._child.wait, daemon=True).start()

    @property
    def log(self) -> Path:
        """What it printed."""
        return self._place.log

    @property
    def computed(self) -> bool:
        """Whether f has returned, and what is left to do is to write its result down."""
        return self._place.computed

    @property
    def cancelled(self) -> bool:
        """Whether it was told to end for no fault of its own."""
        return (self._why or self._place.stopped) == _CANCELLED

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stopped_at is not None

    def _ended(self) -> bool:
        if self._child is not None:
            return _over(self._child)
        if not self._place.locked:
            return True
        who = self._here()
        if who is None or who.get("started") is None:  # nobody can tell but by the lock
            return False
        if time.monotonic() < self._alive_until:
            return False
        now = start_time(who["pid"])
        if now == who["started"]:
            self._alive_until = time.monotonic() + _LOOK
            return False
        # It died, but something it forked lives on with its lock: in its group, unless the number
        # is somebody else's by now.
        if now is None:
            _kill_group(who["pid"], signal.SIGKILL)
        return True

    def _bury(self) -> None:
        """Wait for a child that has ended; from now on its number may be another's."""
        if self._child is not None:
            self._child.wait()
            if self._child.stdin is not None:
                self._child.stdin.close()

    def _enforce(self) -> None:
        now = time.monotonic()
        if self._stopped_at is not None:
            if now - self._stopped_at > self._grace:
                self._signal(signal.SIGKILL)
        elif self._place.finished:  # all it has to do is end
            self._finished_at = self._finished_at or now
            if now - self._finished_at > self._grace:
                self.stop()
        elif self._overdue() and not self._place.computed:  # waiting for room does not count
            self.stop(_OVERDUE)

    def _overdue(self) -> bool:
        return self.task.timeout is not None and self._elapsed() > self.task.timeout

    def _elapsed(self) -> float:
        """Seconds since it began by its own account; 0 if it has not yet."""
        who = self._place.worker
        if who is None:
            return 0.0
        if who["host"] == os.uname().nodename:
            return float(time.monotonic() - who["clock"])
        return float(time.time() - who["since"])

    def _here(self) -> dict[str, Any] | None:
        """Who is at work, if that is known and on this machine."""
        who = self._place.worker
        return who if who and who["host"] == os.uname().nodename else None

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            if self._child.returncode is None:  # not buried, so the number is its own
                _kill_group(self._child.pid, number)
            return
        with suppress(OSError):  # its folder cannot be read now; it is asked again
            who = self._here() if self._place.locked else None
            started = who and who.get("started")
            if who and started is not None and start_time(who["pid"]) == started:
                _kill_group(who["pid"], number)

    def _clear_up(self) -> None:
        """End what it may have left behind; of a group that is not ours we cannot be sure."""
        if self._child is not None:
            self._signal(signal.SIGKILL)

    def _without_result(self, why: str) -> Outcome:
        name, log = self.task.name, tail(self._place.log)
        if why:
            return Outcome(name, "lost", reason=f"it was {why}", log=log)
        if self._child is None:
            return Outcome(name, "lost", reason="its process ended without a result", log=log)
        code = self._child.returncode
        if code < 0:
            hint = "; perhaps out of memory" if -code == signal.SIGKILL else ""
            reason = f"its process was killed by signal {-code}{hint}"
            return Outcome(name, "lost", reason=reason, log=log)
        last = log.strip().splitlines()[-1:] or [""]
        if self._place.worker is None or code == UNWRITTEN:
            reason = f"its process could not do its work: {last[0]}"
            return Outcome(name, "lost", reason=reason, log=log)
        reason = f"its process ended with status {code} before it returned"
        return Outcome(name, "failed", reason=reason, log=log)


def _over(child: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended, without waiting for it where the system can tell."""
    if child.returncode is None and hasattr(os, "waitid"):
        try:
            return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # somebody else has waited for it
            pass
    return child.poll() is not None


def _kill_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
