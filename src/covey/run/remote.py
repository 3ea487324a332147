"""Evaluations outside our own processes: on executors, and on the workers of Dask and Ray.

`FuturesEngine` hands tasks to any `concurrent.futures.Executor`, which cannot stop what it runs; an
evaluation that reports ends itself. `evaluate_on_worker` is what the Dask and Ray engines call on a
worker of a cluster.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from covey.errors import EvaluationError
from covey.run.process import Process
from covey.run.reports import STOP, Reports, Shown, reporting_to
from covey.run.slots import Slot
from covey.run.task import Call, Outcome, Task, pack
from covey.run.workdir import Workdir, write_private

# One evaluation on a worker of a cluster, in a process of its own there.
#
# A process can be stopped. The threads of a Dask worker cannot, and a Ray worker that is killed
# takes its log with it. If the worker dies, the process dies too.

_SHORT, _LONG = 0.005, 0.1  # seconds between polls


class News(NamedTuple):
    """What a worker says of an evaluation: intermediate values, or its outcomes as plain dicts."""

    reports: Sequence[tuple[int, Shown]] = ()
    outcomes: Sequence[dict[str, Any]] = ()


class CallPacker:
    """Packs each call once, however many tasks share it."""

    def __init__(self) -> None:
        self._last: tuple[Call, bytes] | None = None

    def of(self, call: Call) -> bytes:
        """The packed call."""
        if self._last is None or self._last[0] is not call:
            self._last = call, pack(call)
        return self._last[1]


class _NoCall:
    """Placeholder for a call that is sent separately from its task."""

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        return Outcome(task.name, "lost", reason=f"there is no call in {folder}")


def task_bytes(task: Task) -> bytes:
    """A task without its call, pickled."""
    import cloudpickle

    return bytes(cloudpickle.dumps(replace(task, call=_NoCall())))


def evaluate_on_worker(
    label: bytes,
    payload: bytes,
    grace: float,
    wanted: Callable[[], bool] = lambda: True,
    slot: Slot = Slot(None),  # noqa: B008 - frozen
) -> Iterator[News]:
    """Evaluate a task in a process on this machine: its reports as they come, then its outcomes.

    Args:
        label: the task, from `task_bytes`.
        payload: the call, from `CallPacker`.
        grace: seconds between asking it to end and killing it.
        wanted: whether the run still waits for it.
        slot: its place among those that run on this worker at once.
    """
    task: Task = pickle.loads(label)
    task = replace(task, slot=slot.number, gpu=slot.gpu)
    with tempfile.TemporaryDirectory(prefix="covey-", ignore_cleanup_errors=True) as folder:
        call = Path(folder) / "call.pkl"
        write_private(call, payload)
        place = Workdir(Path(folder) / "work")
        process = Process.start(task, place, call, grace, tied=True)
        try:
            yield from _watched(process, wanted)
        except BaseException:  # Ray stops a task by raising in it
            process.stop()
            process.wait(grace)
            process.stop()
            process.wait(1.0)
            raise


def _watched(process: Process, wanted: Callable[[], bool]) -> Iterator[News]:
    pause = _SHORT
    while True:
        outcomes = process.check()  # before its reports are read: there are no more after it
        reports = process.reports()
        if reports:
            yield News(reports=reports)
        if outcomes:
            yield News(outcomes=[asdict(outcome) for outcome in outcomes])
            return
        if not process.stopping and not wanted():
            process.stop()
        time.sleep(pause)
        pause = min(1.5 * pause, _LONG)


_LOOK = 0.05  # seconds between checks of time limits


class FuturesEngine:
    """Runs tasks on a `concurrent.futures.Executor`.

    Nothing outside can end an evaluation there. One that is timed out or cancelled ends itself when
    it next reports an intermediate value (`Stopped`); otherwise it goes on in its thread or
    process, and if it ends after all, that is a second outcome. The start of an evaluation, its
    reports and the wish to stop it are files on this machine, so time limits, reports and
    stopping are for executors that run here.

    Args:
        executor: stays open, unless it is ``owned``.
        owned: whether to shut it down at the end.
    """

    slots = None

    def __init__(self, executor: Executor, *, owned: bool = False) -> None:
        self._executor = executor
        self._owned = owned
        self._open: dict[Future[Outcome], _Submitted] = {}
        self._ready: list[Outcome] = []
        self._said: list[tuple[str, int, Shown]] = []  # reports of those that have ended
        self._folder: Path | None = None  # of the evaluations' own folders, made for the first
        self._packer = CallPacker()

    def submit(self, task: Task) -> None:
        """Submit it to the executor.

        Raises:
            EvaluationError: The executor is broken or was shut down.
        """
        sent = task
        if isinstance(self._executor, ProcessPoolExecutor):  # its own pickle cannot send every call
            sent = replace(task, call=PackedCall(self._packer.of(task.call)))
        folder = self._place(task.name)
        try:
            future = self._executor.submit(evaluate_in_executor, sent, folder)
        except BrokenExecutor as error:
            raise EvaluationError(
                f"the executor broke ({error}). A worker process died, perhaps for want of memory, "
                "and takes all others with it. Results so far are kept and unfinished trials stay "
                "pending. With workers=4 each evaluation has a process of its own."
            ) from error
        except RuntimeError as error:
            raise EvaluationError(f"the executor takes nothing more: {error}.") from error
        self._open[future] = _Submitted(task, folder, Reports(folder))

    def poll(self, seconds: float) -> list[Outcome]:
        """Outcomes of tasks that have ended, waiting at most ``seconds`` for the first."""
        until = time.monotonic() + seconds
        while True:
            found, self._ready = self._ready, []
            left = until - time.monotonic()
            if self._open and not found:
                wait(self._open, min(max(left, 0.0), _LOOK), FIRST_COMPLETED)
            elif not found:
                time.sleep(max(left, 0.0))
            for future in [future for future in self._open if future.done()]:
                ended = self._open.pop(future)
                self._said += ended.said()
                shutil.rmtree(ended.folder, ignore_errors=True)
                found.append(_outcome(ended.task, future))
            found += self._overdue()
            if found or time.monotonic() >= until:
                return found

    def reports(self) -> list[tuple[str, int, Shown]]:
        """Intermediate values since the last call: name, step and value."""
        said, self._said = self._said, []
        for ticket in self._open.values():
            said += ticket.said()
        return said

    def cancel(self, names: Collection[str]) -> None:
        """Take these out of the queue; those that run end themselves, if they report."""
        for future, ticket in list(self._open.items()):
            if ticket.task.name not in names or ticket.given_up:
                continue
            ticket.given_up = True
            reason = "it was cancelled"
            if future.cancel():
                del self._open[future]
            else:
                ticket.stop()
                reason = f"it was cancelled, and {_GOES_ON}"
            self._ready.append(Outcome(ticket.task.name, "lost", reason=reason))

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Nothing: what an executor runs dies with the process that owns it."""
        return set()

    def close(self) -> None:
        """Leave the executor as it is, or shut it down if it is ours."""
        if self._owned:
            self._executor.shutdown(wait=False, cancel_futures=True)
        if self._folder is None:
            return
        if self._open:  # those that still run are told to end, and the last one clears up
            for ticket in self._open.values():
                ticket.stop()
            with suppress(OSError):
                (self._folder / _CLOSED).touch()
        else:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _place(self, name: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="covey-"))
        return self._folder / name

    def _overdue(self) -> list[Outcome]:
        found = []
        for ticket in self._open.values():
            limit = ticket.task.timeout
            if limit is not None and not ticket.given_up and ticket.elapsed() > limit:
                ticket.given_up = True
                ticket.stop()
                reason = f"it took longer than {limit:g} s, and {_GOES_ON}"
                found.append(Outcome(ticket.task.name, "timed-out", reason=reason))
        return found


_CLOSED = "closed"  # a file: nobody reads what evaluations leave there any more
_GOES_ON = "goes on in its thread or process until it next reports"


@dataclass(slots=True)
class _Submitted:
    """A task that was submitted to the executor."""

    task: Task
    folder: Path  # exists once it has begun
    reports: Reports
    began: float | None = None
    given_up: bool = False

    def elapsed(self) -> float:
        """Seconds since it was first seen to have begun."""
        if self.began is None:
            if not self.folder.exists():
                return 0.0
            self.began = time.monotonic()
        return time.monotonic() - self.began

    def said(self) -> list[tuple[str, int, Shown]]:
        """What it has reported since the last call."""
        return [(self.task.name, step, value) for step, value in self.reports.new()]

    def stop(self) -> None:
        """Have it end itself when it next reports."""
        with suppress(OSError):  # it has not begun, or runs on another machine
            (self.folder / STOP).touch()


@dataclass(frozen=True, slots=True)
class PackedCall:
    """A call as bytes, unpickled where it is evaluated."""

    payload: bytes

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        """Unpickle the call and evaluate the task."""
        try:
            call: Call = pickle.loads(self.payload)
        except Exception as error:  # importing a module may raise anything
            reason = f"f cannot be loaded in its process ({type(error).__name__}: {error})"
            return Outcome(task.name, "lost", reason=reason)
        return call.evaluate(task, folder)


def evaluate_in_executor(task: Task, folder: Path) -> Outcome:
    """Evaluate a task in a thread or process of an executor."""
    if (folder.parent / _CLOSED).exists():
        return Outcome(task.name, "lost", reason="the run ended before it began")
    try:
        folder.mkdir()
    except OSError:  # on another machine, or after the run: no time limit, and no reports
        with tempfile.TemporaryDirectory(prefix="covey-", ignore_cleanup_errors=True) as other:
            return task.call.evaluate(task, Path(other))
    try:
        with reporting_to(folder):
            return task.call.evaluate(task, folder)
    finally:
        with suppress(OSError):  # another has just cleared up
            if (folder.parent / _CLOSED).exists():
                shutil.rmtree(folder, ignore_errors=True)
                if [path.name for path in folder.parent.iterdir()] == [_CLOSED]:
                    shutil.rmtree(folder.parent)


def _outcome(task: Task, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenExecutor as error:
        return Outcome(task.name, "lost", reason=f"the executor broke: {error}")
    except CancelledError:
        return Outcome(task.name, "lost", reason="it was cancelled")
    except Exception as error:  # an error of the executor; those of f are caught where it runs
        reason = f"the executor could not run it ({type(error).__name__}: {error})"
        return Outcome(task.name, "lost", reason=reason)
