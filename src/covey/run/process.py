"""`Process`: one evaluation in a process of its own, watched by the runner."""

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
from covey.run.reports import FILE, VARIABLE, Reports, Shown
from covey.run.task import Outcome, Task
from covey.run.workdir import (
    TAIL,
    UNWRITTEN,
    Workdir,
    environment,
    group_lives,
    start_time,
    tail,
    trim,
)

GRACE = 10.0  # seconds between SIGTERM and SIGKILL
_OVERDUE, _CANCELLED = "overdue", "cancelled"
_LOOK = 1.0  # seconds between checks of a process that is not our child; its lock tells sooner
_GROUP = 2.0  # seconds for what it left behind to die of SIGKILL
_SHORTAGE = 60.0  # seconds for which its folder may be unreadable before that is an error


class Process:
    """An evaluation that was started here, or by an earlier runner that is dead.

    It leads a process group of its own, which gets all signals, so that what it started ends too.
    No other process is signalled: our own child until it is reaped; a process of an earlier runner
    only while it holds its lock and its start time equals the one recorded in `alive`.
    """

    def __init__(
        self, task: Task, place: Workdir, grace: float, child: subprocess.Popen[bytes] | None
    ) -> None:
        self.task = task
        self._place = place
        self._grace = grace
        self._child = child  # None: not our child
        self._finished_at: float | None = None
        self._stopped_at: float | None = None
        self._why = ""  # why it was stopped; the disk may be too full to write it down
        self._unreadable_at: float | None = None
        self._reports = Reports(place.folder)
        self._alive_until = 0.0  # not our child: when to check its process again

    @classmethod
    def start(cls, task: Task, place: Workdir, call: Path, grace: float, *, tied: bool) -> Self:
        """Start it; with ``tied`` it does not outlive this process.

        Raises:
            OSError: The machine cannot start it.
        """
        place.prepare(task, call)
        locks = place.lock()
        # -P: a random.py in the current folder must not replace the standard library's.
        words = [
            sys.executable,
            "-P",
            "-m",
            "covey.run.evaluate",
            str(place.folder),
            *map(str, locks),
        ]
        try:
            with place.log.open("ab") as log:  # appending, since it is truncated now and then
                child = subprocess.Popen(
                    [*words, "tied"] if tied else words,
                    stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**environment(task), VARIABLE: str(place.folder / FILE)},
                    start_new_session=True,
                    pass_fds=locks,
                )
        finally:
            for lock in locks:
                os.close(lock)
        return cls(task, place, grace, child)

    @classmethod
    def adopt(cls, task: Task, place: Workdir, grace: float) -> Self | None:
        """One that an earlier runner started; None if it neither runs nor left a result."""
        # Checked in this order, or it might finish between the two checks.
        if place.locked or place.finished or place.stopped == _OVERDUE:
            return cls(task, place, grace, None)
        return None

    def check(self) -> list[Outcome]:
        """Its outcome, none while it runs; enforces its time limit.

        While its folder cannot be read, as for want of descriptors, it counts as running.

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
            trim(self._place.log, 2 * TAIL)
            return []
        result, why = self._place.result(), self._why or self._place.stopped
        good = result is not None and result.status == "succeeded"
        if not good:
            self._clear_up()
        self._reap()
        if not good:
            self._await_group()
        trim(self._place.log)
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
        """Wait at most ``seconds`` for its end."""
        until = time.monotonic() + seconds
        while not self._ended() and time.monotonic() < until:
            self._enforce()
            time.sleep(0.01)
        if self._ended():
            self._reap()

    def leave(self) -> None:
        """Let it run on; a thread waits for a child, which would else stay behind as a zombie."""
        if self._child is not None:
            threading.Thread(target=self._child.wait, daemon=True).start()

    def reports(self) -> list[tuple[int, Shown]]:
        """The intermediate values that came since the last call, each with its step."""
        return self._reports.new()

    @property
    def log(self) -> Path:
        """What it printed."""
        return self._place.log

    @property
    def computed(self) -> bool:
        """Whether f has returned; its result may not be written yet."""
        return self._place.computed

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return (self._why or self._place.stopped) == _CANCELLED

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stopped_at is not None

    def _ended(self) -> bool:
        if self._child is not None:
            return _has_exited(self._child)
        if not self._place.locked:
            return True
        who = self._here()
        if who is None or who.get("started") is None:  # only the lock can tell
            return False
        if time.monotonic() < self._alive_until:
            return False
        now = start_time(who["pid"])
        if now == who["started"]:
            self._alive_until = time.monotonic() + _LOOK
            return False
        # It died, but something it forked still holds its lock: in its group, unless the pid is
        # another process's by now.
        if now is None:
            _kill_group(who["pid"], signal.SIGKILL)
        return True

    def _reap(self) -> None:
        """Wait for a child that has ended; from now on its pid may be another's."""
        if self._child is not None:
            self._child.wait()
            if self._child.stdin is not None:
                self._child.stdin.close()

    def _enforce(self) -> None:
        now = time.monotonic()
        if self._stopped_at is not None:
            if now - self._stopped_at > self._grace:
                self._signal(signal.SIGKILL)
        elif self._place.finished:  # it only has to exit
            self._finished_at = self._finished_at or now
            if now - self._finished_at > self._grace:
                self.stop()
        elif self._overdue() and not self._place.computed:  # waiting for disk space does not count
            self.stop(_OVERDUE)

    def _overdue(self) -> bool:
        return self.task.timeout is not None and self._elapsed() > self.task.timeout

    def _elapsed(self) -> float:
        """Seconds since the start that it wrote down; 0 before that."""
        who = self._place.worker
        if who is None:
            return 0.0
        if who["host"] == os.uname().nodename:
            return float(time.monotonic() - who["clock"])
        return float(time.time() - who["since"])

    def _here(self) -> dict[str, Any] | None:
        """What the process wrote about itself, if it is on this machine."""
        who = self._place.worker
        return who if who and who["host"] == os.uname().nodename else None

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            if self._child.returncode is None:  # not waited for, so the pid is its own
                _kill_group(self._child.pid, number)
            return
        with suppress(OSError):  # its folder cannot be read now; it is signalled again later
            who = self._here() if self._place.locked else None
            started = who and who.get("started")
            if who and started is not None and start_time(who["pid"]) == started:
                _kill_group(who["pid"], number)

    def _clear_up(self) -> None:
        """Kill what a child may have left in its group; other groups might not be its own."""
        if self._child is not None:
            self._signal(signal.SIGKILL)

    def _await_group(self) -> None:
        """Wait until what it left behind is dead too: its slot is about to be another's."""
        until = time.monotonic() + _GROUP
        while self._child is not None and time.monotonic() < until:
            if not group_lives(self._child.pid):
                return
            time.sleep(0.01)

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
            return Outcome(name, "killed", reason=reason, log=log)
        last = log.strip().splitlines()[-1:] or [""]
        if self._place.worker is None or code == UNWRITTEN:
            reason = f"its process could not do its work: {last[0]}"
            return Outcome(name, "lost", reason=reason, log=log)
        reason = f"its process ended with status {code} before it returned"
        return Outcome(name, "failed", reason=reason, log=log)


def _has_exited(child: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended, without waiting for it where the system can tell."""
    if child.returncode is None and hasattr(os, "waitid"):
        try:
            return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # another thread has waited for it
            pass
    return child.poll() is not None


def _kill_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
