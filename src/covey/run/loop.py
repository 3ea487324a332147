"""`Loop`: ask, dispatch and wait until a plan is done, in batches or asynchronously.

`Interrupt` defers Ctrl-C and SIGTERM to a point between two steps.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self

from covey.errors import (
    EvaluationError,
    ExhaustedError,
    JournalError,
    duration,
    several,
)
from covey.history import Trial
from covey.log.running import is_asked
from covey.run.budget import spent
from covey.run.dispatcher import Dispatcher
from covey.run.plan import Plan, Progress
from covey.run.standing import Tempo, failing_alike, last_asked
from covey.study import Study

# Ctrl-C, or SIGTERM: the first one takes effect between two steps, the second at once.
# There is no third: the second kills what runs, and that is not interrupted half way.

_log = logging.getLogger("covey")


class Interrupt:
    """A context in which Ctrl-C and SIGTERM do not interrupt the writing of the log.

    Signals reach only the main thread; elsewhere it does nothing, nor to Ctrl-C where that is
    ignored, nor to SIGTERM where the program handles it itself.
    """

    def __init__(self) -> None:
        self.pressed = False
        self.twice = False
        self.name = "Ctrl-C"  # what ends the run
        self._before: dict[int, Any] = {}
        self._pid = os.getpid()

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
            self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._note)
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed, or SIGTERM came."""
        if self.pressed:
            raise KeyboardInterrupt(self.name)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.twice:
            return
        if number == signal.SIGTERM and os.getpid() != self._pid:
            # This process was forked meanwhile, such as a worker of a pool, which ends it so.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self.name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if self.pressed:
            self.twice = True
            raise KeyboardInterrupt(self.name)
        self.pressed = True
        # While another line is written to the same stream, logging raises RuntimeError.
        with suppress(OSError, RuntimeError):
            _log.warning("stopping; %s again kills what runs at once", self.name)


_ENDLESS = 2**60  # evaluations of a run that only time, cost or a plateau ends
_TICK = 0.5  # seconds of waiting for the engine before Ctrl-C is checked
_TALK = 60.0  # seconds between log messages about what is awaited


class Loop:
    """Asks for trials, dispatches them and waits, until the budget is spent."""

    def __init__(
        self, study: Study, plan: Plan, dispatcher: Dispatcher, interrupt: Interrupt, wide: int
    ) -> None:
        self._study = study
        self._plan = plan
        self._dispatcher = dispatcher
        self._interrupt = interrupt
        self._wide = wide  # how many evaluations to keep running, if asynchronous
        self._talked = time.monotonic()
        self._batch: Sequence[int] = ()
        self._unwatched = False  # ``watch`` has raised, and is not called again
        self._stopped = False  # what runs was stopped, or killed
        self._bar = False if plan.progress else None  # of an ask: there is room for one only
        self._began = time.monotonic()
        self._judged = -1  # the number of events at which limits were last looked at
        self.over = ""  # which limit is reached, in words

    def go(self) -> None:
        """Run to the end; on any error, say what is recorded."""
        try:
            try:
                self._to_the_end()
            except KeyboardInterrupt:
                self._stop()
                raise
        except JournalError:
            # The log cannot be written, so nothing is stopped: evaluations that can be found
            # again go on, and the next run takes their results.
            out = self._dispatcher.running
            was = "was" if out == 1 else "were"
            _log.error(
                "%s %s out when the log, or their folder, failed", several(out, "evaluation"), was
            )
            raise
        except BaseException:
            if not self._stopped:  # a second Ctrl-C may come before the first took effect
                self._dispatcher.kill()
            raise

    def _to_the_end(self) -> None:
        self._take_up()
        self._dispatcher.stop_early()
        self._check_limits()
        if self._plan.asynchronous:
            self._keep_busy()
        else:
            self._in_batches()
        self._dispatcher.work(0.0)  # so that the engine knows that the last ones are logged
        self._count_failures()

    def _take_up(self) -> None:
        history = self._study.history
        self._batch = sorted({*last_asked(history), *(t.id for t in history.pending)})
        self._dispatcher.adopt(history.pending)

    def _in_batches(self) -> None:
        while True:
            while self._dispatcher.awaited:
                self._work()
            self._check_batch()
            with self._turn():
                if self._dispatcher.awaited:  # another run has asked meanwhile
                    self._batch = last_asked(self._study.history)
                    continue
                trials = self._ask(min(self._plan.batch, self._left()))
            if not trials:
                return
            self._batch = [trial.id for trial in trials]
            self._dispatcher.admit(trials)

    def _keep_busy(self) -> None:
        exhausted = False
        while True:
            stopped = exhausted or self.over or self._dispatcher.doubtful
            if self._free() > 0 and not stopped:
                with self._turn():
                    free = self._free()
                    trials = self._ask(free)
                exhausted = free > 0 and not trials
                self._dispatcher.admit(trials)
            elif not self._dispatcher.awaited:
                return
            else:
                self._work()
            self._batch = self._dispatcher.awaited
            streak = self._dispatcher.lost if self._study.history.told else self._dispatcher.streak
            if streak >= self._plan.batch:
                raise _nothing_came(streak, "the last", "", self._dispatcher)

    def _free(self) -> int:
        """How many more to begin, if asynchronous."""
        return min(self._wide - len(self._dispatcher.own), self._left())

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A turn to ask among the runs of this journal, with what they have done before it."""
        runs = self._dispatcher.runs
        if runs.journal is None:
            yield
            return
        while is_asked(runs.journal):  # another run may take long, or be frozen
            self._work()
        with self._study.asking():
            runs.look(now=True)
            if runs.shared:
                self._study.refresh()
                self._dispatcher.share()
            yield

    def _work(self) -> None:
        self._interrupt.check()
        before = self._dispatcher.settled
        self._dispatcher.work(_TICK)
        self._interrupt.check()
        self._check_limits()
        self._report(something=self._dispatcher.settled > before)
        if self._dispatcher.hopeless:
            raise _nothing_came(len(self._dispatcher.alike), "the first", "", self._dispatcher)

    def _ask(self, count: int) -> list[Trial]:
        """The next trials; fewer if fewer points of a finite space are left."""
        self._interrupt.check()
        if count <= 0 or self.over:
            return []
        try:
            return self._study.ask(count, progress=self._bar)
        except ExhaustedError as error:
            if self._study.space.size is None:
                raise
            if error.left:
                return self._study.ask(error.left, progress=self._bar)
            _log.info("the space is exhausted after %d trials", len(self._study.history))
            return []

    def _left(self) -> int:
        counted = ("told", "failed", "pending")
        trials = self._study.history.trials
        used = sum(t.origin == "asked" and t.status in counted for t in trials)
        return (_ENDLESS if self._plan.total is None else self._plan.total) - used

    def _check_limits(self) -> None:
        """Start nothing more once a limit of the budget is reached."""
        seconds, events = time.monotonic() - self._began, len(self._study.history.events)
        hours = self._plan.hours
        if not self.over and (events != self._judged or hours is not None):
            self._judged = events
            self.over = self._plan.reached(self._study, seconds)
            if self.over:
                _log.info("nothing more begins: %s", self.over)
        if self.over:
            self._dispatcher.leave_queue()  # again and again: what is lost is queued anew

    def _check_batch(self) -> None:
        """Raise if a whole batch of this run gave no value, and the next would fare no better.

        Failures do not end a study that has values: they count against its budget, and the next
        batch avoids them. Lost trials do not count, so without this check a run might never end.
        """
        ended = {self._study.history.trial(id).status for id in self._batch} - {"cancelled"}
        if not self._dispatcher.streak or not ended or "told" in ended or self.over:
            return
        count = len(self._batch)
        if not self._study.history.told or ended == {"lost"}:
            raise _nothing_came(count, "all", " of this batch", self._dispatcher)
        whole = "the only evaluation" if count == 1 else f"all {count} evaluations"
        _log.warning("%s of this batch failed; the run goes on", whole)

    def _count_failures(self) -> None:
        trials = [t.status for t in self._study.history.trials if t.origin != "added"]
        if self._dispatcher.settled and "failed" in trials:
            failed, all_ = trials.count("failed"), trials.count("told") + trials.count("failed")
            _log.warning(
                "%d of %d evaluations failed; the log says why. If it was not their points: "
                "study.retry(ids), or covey retry IDS, and run again",
                *(failed, all_),
            )
            if trouble := failing_alike(self._study.history):
                _log.warning("%s", trouble)

    def _report(self, *, something: bool) -> None:
        progress, now = self._progress(), time.monotonic()
        self._show(progress)
        if something or now - self._talked > _TALK:
            self._talked = now
            left = "" if progress.left is None else f", about {duration(progress.left)} left"
            _log.info(
                "%d of %d done, %d running, best %s%s; waiting for %s",
                *(progress.done, progress.total, progress.running, progress.best),
                *(left, progress.waiting_for),
            )

    def _show(self, progress: Progress) -> None:
        if self._plan.watch is None:
            return
        try:
            self._plan.watch(progress)
        except (OSError, RuntimeError) as error:  # a closed pipe is no reason to lose evaluations
            if not self._unwatched:
                self._unwatched = True
                _log.warning("watch raised %r; the run goes on", error)

    def _progress(self) -> Progress:
        best = self._study.best if self._study.outcomes.only else None  # of several goals, none is
        ended = [t.status for t in self._study.history.trials if t.origin != "added"]
        failed = ended.count("failed")
        done = ended.count("told") + failed
        later = 0 if self.over or self._plan.total is None else max(0, self._left())
        total = done + later + len(self._dispatcher.awaited)
        costly = self._plan.costly
        return Progress(
            done,
            total,
            self._dispatcher.running,
            failed,
            None if best is None else best.value,
            self._waiting_for(),
            self._time_left(later),
            spent(self._study.history, costly)[0] if costly else None,
            failing_alike(self._study.history) if failed else "",
        )

    def _time_left(self, later: int) -> float | None:
        """Seconds, by the time that evaluations took, and by the hours that the run may take."""
        hours, total = self._plan.hours, self._plan.total
        spare = None if hours is None else max(0.0, 3600.0 * hours - time.monotonic() + self._began)
        one = self._dispatcher.seconds
        if one is None or (total is None and not self.over):
            return spare
        pace = Tempo(one, self._wide, None if self._plan.asynchronous else self._plan.batch)
        rest = pace.left(self._dispatcher.elapsed, self._dispatcher.queued, later)
        return rest if spare is None or self.over else min(rest, spare)

    def _waiting_for(self) -> str:
        awaited = self._dispatcher.awaited
        if not awaited:
            return "the next points" if self._left() > 0 and not self.over else "nothing more"
        shown = ", ".join(map(str, awaited[:4])) + (", ..." if len(awaited) > 4 else "")
        noun = "trial" if len(awaited) == 1 else "trials"
        if self._plan.asynchronous:
            return f"{noun} {shown}"
        return f"{len(awaited)} of {len(self._batch)} of this batch ({noun} {shown})"

    def _stop(self) -> None:
        """After Ctrl-C, stop what runs, and say what is recorded."""
        try:
            if self._interrupt.twice:
                self._dispatcher.kill()
            else:
                self._dispatcher.stop()
            self._stopped = True
        except BaseException:
            self._dispatcher.kill()
            self._stopped = True
            raise
        finally:
            with suppress(OSError, RuntimeError):  # its error would hide the interrupt
                _log.warning("stopped: %s", self._safe())

    def _safe(self) -> str:
        """What is recorded, and how to go on."""
        history, journal = self._study.history, self._study.journal
        if self._plan.asynchronous:
            kept, verb = several(len(history.told), "result"), _are(len(history.told))
        else:
            here = [history.trial(id).status != "pending" for id in self._batch]
            many = several(len(here), "result")
            kept, verb = f"{sum(here)} of {many} of this batch", _are(sum(here))
        if journal is None:
            return f"{kept} {verb} recorded in memory, in this study; run it again to go on"
        return f"{kept} {verb} recorded in {journal}; run the same command again to go on"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _nothing_came(count: int, which: str, where: str, dispatcher: Dispatcher) -> EvaluationError:
    last, by_hand = dispatcher.last
    alike = dispatcher.alike
    one = count == 1
    was = "was" if one else "were"
    passive = {status: f"{was} {status}" for status in ("lost", "killed")}
    verb = {**passive, "timed-out": "timed out"}.get(last.status, "failed")
    whose = f"the only evaluation{where}" if one else f"{which} {count} evaluations{where}"
    how = f"{verb} alike" if alike and not one else verb
    ids = ",".join(map(str, alike))
    back = f" If it was f: study.retry({alike}), or covey retry {ids}, and run again."
    why = f"{last.reason.rstrip('.')}.{back if alike else ''} {by_hand}"
    error = EvaluationError(f"{whose} {how}{'' if one else '; the last one'}: {why}")
    if last.log.strip():
        error.add_note(last.log[-2000:])
    return error
