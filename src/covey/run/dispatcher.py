"""`Dispatcher`: hands trials to an engine, and logs what becomes of them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from covey.errors import HistoryError, SupersededError
from covey.history import Dispatched, Failed, Late, Lost, Reported, Told, Trial
from covey.log.running import Runs
from covey.run import stopping
from covey.run.command import Command, by_hand
from covey.run.joining import follows, is_last, is_newest, is_next
from covey.run.reports import UNKEPT, UNSAID, of_goal
from covey.run.slots import Places, Slot
from covey.run.standing import kind_of, known_reasons, last_attempts
from covey.run.task import Call, Engine, Outcome, Retries, Task, evaluation_seed, name_of, run_of
from covey.study import Study

_log = logging.getLogger("covey")

_FEW = 4  # first failures, all alike, that suggest f itself is broken (our choice)
_PATIENCE = 30.0  # seconds for an engine to stop what it was told to stop


class Dispatcher:
    """The trials of a run that are queued or running, and their attempts.

    The log comes first: an attempt is logged before the engine gets it, and a result as soon as it
    arrives. All other state may be lost in a crash. An attempt is also a lease: while the run that
    logged it lives, no other run takes the trial.
    """

    def __init__(
        self,
        study: Study,
        engine: Engine,
        call: Call,
        timeout: float | None,
        retries: Retries,
        gpus: Sequence[str] = (),
    ) -> None:
        self._study, self._engine, self._call = study, engine, call
        self._places = Places(engine.slots, gpus)
        self._timeout, self._retries = timeout, retries
        self.runs = Runs()  # this one and the others of the journal
        self._elsewhere: set[int] = set()  # pending trials that they evaluate
        self._looked_for: set[str] = set()  # attempts of dead runs
        self._closed = False  # nothing more begins
        self._sent: dict[str, Task] = {}  # every attempt of this run, for late results
        self._open: dict[str, Task] = {}  # attempts whose outcome is awaited
        self._queue: dict[int, float] = {}  # trial id -> earliest time to start it
        self._used: dict[int, Counter[str]] = {}  # retries in this run
        self._unkept: set[str] = set()  # names of returned values that were warned of
        self.rule: stopping.StoppingRule | None = None  # which evaluations to stop early
        self.is_stopping: Callable[[], bool] = lambda: False  # whether the run is to end at once
        self._settling = False  # whether outcomes may not be in the log yet
        self._failed = {trial.id for trial in study.history.failed}  # others may retry these
        self._known = {kind_of(reason) for reason in known_reasons(study.history)}
        self._first: dict[int, str] = {}  # the kind of each failure before any value of this run
        self._cleared = False  # f is not broken: a value came, or failures differed
        self.settled = 0  # trials that ended in this run
        self.streak = 0  # trials that ended since the last one with a value
        # The last failure, and how to repeat it without a run.
        self.last: tuple[Outcome, str] = Outcome("", "lost"), ""
        self._began: dict[str, float] = {}  # start times of this run's attempts, by name
        self._since: dict[str, float] = {}  # the same, and when others were found
        self._took: list[float] = []  # seconds that ended attempts took
        self.lost = 0  # how many trials in a row were lost, up to the last one

    @property
    def running(self) -> int:
        """How many evaluations the engine has."""
        return len(self._open)

    @property
    def own(self) -> list[int]:
        """The ids of the trials that are running or queued here."""
        return sorted({*self._queue, *(task.id for task in self._open.values())})

    @property
    def awaited(self) -> list[int]:
        """The ids of all trials that are running or queued, in this run or in one beside it."""
        return sorted({*self.own, *self._elsewhere})

    @property
    def seconds(self) -> float | None:
        """What an evaluation takes, on average; None before one has ended in this run."""
        return sum(self._took) / len(self._took) if self._took else None

    @property
    def elapsed(self) -> list[float]:
        """Seconds since each that runs was handed out, or found."""
        now = time.monotonic()
        return [now - self._since[name] for name in self._open]

    @property
    def queued(self) -> int:
        """How many wait for a free place, or for their next attempt."""
        return len(self._queue)

    @property
    def alike(self) -> list[int]:
        """The trials that failed in this run before any value, if all failed alike."""
        return [] if self._cleared else sorted(self._first)

    @property
    def doubtful(self) -> bool:
        """Whether so many failed alike that f may be broken, and no more trials are started."""
        return len(self.alike) >= _FEW

    @property
    def hopeless(self) -> bool:
        """Whether that is so, and nothing runs that might still bring a value."""
        return self.doubtful and not self._open

    def admit(self, trials: Iterable[Trial]) -> None:
        """Queue these trials.

        Raises:
            StrategyError: The command cannot be written for a point; they stay pending.
        """
        now, trials = time.monotonic(), list(trials)
        if isinstance(self._call, Command):
            self._call.check(self._study.space.names, [trial.point for trial in trials])
        self._queue |= {trial.id: now for trial in trials}

    def adopt(self, trials: Iterable[Trial]) -> None:
        """Queue trials that runs which are dead may have had; the engine may still have them."""
        trials, last = list(trials), last_attempts(self._study.history)
        tasks = [self._task(trial, last[trial.id]) for trial in trials if trial.id in last]
        self._elsewhere |= {task.id for task in tasks if self.runs.lives(run_of(task.name))}
        trials = [trial for trial in trials if trial.id not in self._elsewhere]
        tasks = [task for task in tasks if task.id not in self._elsewhere]
        known = self._engine.adopt(tasks) if tasks else set()
        self._looked_for |= {task.name for task in tasks}
        for task in tasks:
            if task.name in known:
                self._sent[task.name] = self._open[task.name] = task
                self._since[task.name] = time.monotonic()
                self._occupy(task)
        found = {task.id for task in self._open.values()}
        self.admit(trial for trial in trials if trial.id not in found)
        if tasks:
            _log.info(
                "of %d evaluations that were out, %d are found again and %d begin again",
                *(len(tasks), len(known), len(tasks) - len(known)),
            )

    def withdraw_strays(self, names: Collection[str]) -> None:
        """End evaluations of an earlier run that nobody waits for, such as those told by hand.

        Their slots are taken until they are dead.
        """
        history = self._study.history
        strays = [
            self._task(trial, sent)
            for trial in history.trials
            for sent in history.attempts(trial.id)
            if sent.name in names
            and sent.name not in self._open
            and not self.runs.lives(run_of(sent.name))
        ]
        known = self._engine.adopt(strays) if strays else set()
        for task in strays:
            if task.name in known:
                self._sent[task.name] = task
                self._occupy(task)
        self._engine.cancel(known)

    def _occupy(self, task: Task) -> None:
        """Note the slot of what was found running, if it runs on this machine."""
        if getattr(self._engine, "is_here", bool)(task.name):
            self._places.occupy(task.name, Slot(task.slot, task.gpu))

    def work(self, seconds: float) -> None:
        """Start what can start, and wait at most ``seconds`` for something to end."""
        self.runs.look()
        self._start()
        startable = self._places.has_room and not self.doubtful
        ready = min(self._queue.values(), default=None) if startable else None
        if ready is not None:  # something is to be started soon
            seconds = min(seconds, max(0.0, ready - time.monotonic()))
        self._settling = True
        outcomes = self._engine.poll(seconds)
        reported = self._take_reports()
        for outcome in outcomes:
            self._places.free(outcome.name)
            self._settle(outcome)
        self._settling = False
        self._study.refresh()
        if reported:
            self.stop_early()
        self._withdraw()
        self._admit_retried()
        self.share()

    def share(self) -> None:
        """Queue the trials that nobody has, and take over what dead runs had; refresh first."""
        self._elsewhere = set()
        if self._closed or not self.runs.shared:
            return
        self._queue = {id: at for id, at in self._queue.items() if not self._is_taken(id)}
        last = last_attempts(self._study.history)
        mine = {id for id, sent in last.items() if run_of(sent.name) == self.runs.id}
        known = {*mine, *self.own}  # one of these that is not queued was left pending
        self.adopt(trial for trial in self._study.history.pending if trial.id not in known)

    def _is_taken(self, id: int) -> bool:
        """Whether another run has this trial, or had it and what it left was not looked for."""
        sent = last_attempts(self._study.history).get(id)
        if sent is None or run_of(sent.name) == self.runs.id:
            return False
        self.runs.shared |= sent.name not in self._looked_for
        return self.runs.lives(run_of(sent.name)) or sent.name not in self._looked_for

    def _take_reports(self) -> bool:
        """Log the intermediate values that came, of each evaluation a few; whether there are."""
        read = getattr(self._engine, "reports", None)
        came, other = of_goal(read() if read is not None else (), self._study.outcomes.only)
        if not other <= self._unkept:
            _log.warning(UNSAID, self._study.outcomes.only or "one goal", ", ".join(sorted(other)))
            self._unkept |= other
        for name, reports in came.items():
            task = self._sent.get(name)
            if task is None or not self._pending(task.id):
                continue
            known = [
                r.step for r in self._study.history.reports(task.id) if r.attempt == task.attempt
            ]
            for step, value in stopping.worth_logging(reports, max(known, default=-1), self.rule):
                with self._unless_settled(task.id):
                    said = Reported(task.id, task.attempt, step, value)
                    self._study.note(said, require=is_next(said))
        return bool(came)

    def stop_early(self) -> None:
        """Tell what the rule stops the last value that it reported; then it is withdrawn."""
        if self.rule is None:
            return
        outcomes = self._study.outcomes
        sign = 1.0 if outcomes.sense(outcomes.only) == "max" else -1.0
        for id, report in stopping.to_stop(self._study.history, self.rule, sign).items():
            with self._unless_settled(id):
                self._study.note(stopping.told_early(report, outcomes), require=is_newest(report))
            if self._pending(id):
                continue  # it has reported again, and whoever logged that decides
            _log.info("trial %d is stopped at step %d: %r", id, report.step, report.value)
            self._queue.pop(id, None)
            self.settled, self.streak, self.lost, self._cleared = self.settled + 1, 0, 0, True

    def leave_queue(self) -> None:
        """Start nothing more; what is queued stays pending."""
        self._queue.clear()
        self._closed = True

    def stop(self) -> None:
        """Cancel what runs and log the results that still come; all else stays pending."""
        self._queue.clear()
        if self._settling:  # Ctrl-C twice: another poll would make the engine forget results
            self.kill()
            return
        self._engine.cancel(list(self._open))
        until = time.monotonic() + _PATIENCE
        while self._open and time.monotonic() < until:
            self._collect(0.2)
        self._collect(0.0)  # so that the engine knows that the last ones are logged

    def kill(self) -> None:
        """End what runs at once."""
        names = list(self._open)
        self._engine.cancel(names)
        self._engine.cancel(names)

    def _collect(self, seconds: float) -> None:
        for outcome in self._engine.poll(seconds):
            task = self._open.pop(outcome.name, None) or self._sent.get(outcome.name)
            if task is not None and outcome.status == "succeeded":
                self._tell(task, outcome)

    def _start(self) -> None:
        now = time.monotonic()
        for id in sorted(self._queue):
            if not self._places.has_room or self.doubtful:
                return
            if self._queue[id] > now:
                continue
            del self._queue[id]
            if self._pending(id) and not self._is_taken(id):
                with self._unless_settled(id):
                    self._dispatch(self._study.history.trial(id))

    def _dispatch(self, trial: Trial) -> None:
        sent = self._next_attempt(trial)
        slot = self._places.take(sent.name)
        sent = replace(sent, slot=slot.number, gpu=slot.gpu)
        try:
            self._study.note(sent, require=follows(sent))  # before the engine gets it
        except BaseException:
            self._places.free(sent.name)
            raise
        task = self._task(trial, sent)
        self._sent[sent.name] = self._open[sent.name] = task
        self._began[sent.name] = self._since[sent.name] = time.monotonic()
        self._engine.submit(task)

    def _next_attempt(self, trial: Trial) -> Dispatched:
        attempt = len(self._study.history.attempts(trial.id)) + 1
        name = name_of(self.runs.id, trial.id, attempt)
        return Dispatched(trial.id, attempt, name, evaluation_seed(self._study.seed, trial.id))

    def _task(self, trial: Trial, sent: Dispatched) -> Task:
        what = trial.id, sent.attempt, sent.name, trial.point, sent.seed
        return Task(*what, self._timeout, self._call, sent.slot, sent.gpu)

    def _settle(self, outcome: Outcome) -> None:
        task = self._sent.get(outcome.name)
        if task is None:
            return  # not of this study
        awaited = self._open.pop(outcome.name, None) is not None
        began = self._began.pop(outcome.name, None)
        if began is not None and outcome.status != "lost":
            self._took.append(time.monotonic() - began)
        if outcome.status == "succeeded":
            self._tell(task, outcome)
        elif awaited:
            self._give_up(task, outcome)

    def _tell(self, task: Task, outcome: Outcome) -> None:
        """Log a value: the first one of a trial counts, whatever its status was before."""
        if self._sent.pop(task.name, None) is None or outcome.result is None:
            return  # the engine reported it twice
        before = self._study.history.trial(task.id).status
        try:
            self._record(task, outcome)
        except HistoryError as error:
            if self._study.history.trial(task.id).status != "told":
                self._give_up(task, Outcome(task.name, "failed", reason=str(error)))
                return
            if task.id in self._study.history.stopped:
                self._complete(task, outcome)
            elif outcome.value is not None:
                with self._unless_settled(task.id):  # another run may have logged this result
                    late = Late(task.id, task.attempt, outcome.value)
                    self._study.note(late, key=self._key(task))
            _log.info("a further result of trial %d came late: %r", task.id, outcome.result)
            return
        self._study.doubt()
        self._name_unkept(outcome)
        self._queue.pop(task.id, None)  # another attempt is not needed
        self.settled += before == "pending"
        self.streak = self.lost = 0
        self._cleared = True
        if before != "pending":
            _log.info("the result of trial %d, which was %s, came late", task.id, before)

    def _complete(self, task: Task, outcome: Outcome) -> None:
        """Log what a stopped trial came to all the same: its value, and what it had none of yet."""
        known, key = self._study.history.trial(task.id).values, self._key(task)
        for place, event in enumerate(stopping.completion(task.id, outcome, known)):
            self._study.note(event, key=f"{key}, {place}" if key and place else key)

    def _record(self, task: Task, outcome: Outcome) -> None:
        values = stopping.values_of(outcome)
        if values:
            goal = self._study.outcomes.goal_in([values])
            sems = (None,) if goal == "" else (outcome.sem,)
            told = Told((task.id,), (values,), sems, (outcome.metrics,), goal)
            self._study.note(told, key=self._key(task))

    def _key(self, task: Task) -> str | None:
        """The key of a result: two runs that both found it tell it once."""
        return task.name if self.runs.shared else None

    def _name_unkept(self, outcome: Outcome) -> None:
        """Warn, once per name, of what was returned beside a value and cannot be logged."""
        new = [name for name in outcome.unkept if name not in self._unkept]
        self._unkept.update(new)
        if new:
            _log.warning(UNKEPT, ", ".join(new))

    def _give_up(self, task: Task, outcome: Outcome) -> None:
        """Try again, or log that the trial failed or was lost."""
        if not self._pending(task.id) or self._is_superseded(task):
            return
        if outcome.status == "killed" and self.is_stopping():
            return  # whoever stops the run, such as SLURM, may have killed this too: it is pending
        used = self._used.setdefault(task.id, Counter())
        if self._retries.left(outcome.status, used[outcome.status]):
            rng = np.random.default_rng([self._study.seed, task.id, task.attempt])
            delay = self._retries.delay(used[outcome.status], rng)
            used[outcome.status] += 1
            self._queue[task.id] = time.monotonic() + delay
            _log.warning(
                "trial %d %s (%s); again in %.1f s", task.id, outcome.status, outcome.reason, delay
            )
            return
        reason = outcome.reason.encode(errors="replace").decode()
        _log.warning("trial %d %s: %s", task.id, outcome.status, reason)
        self.settled, self.streak = self.settled + 1, self.streak + 1
        self.last = outcome, by_hand(task)
        if outcome.status == "lost":
            self.lost += 1
            with self._unless_settled(task.id):
                self._study.note(Lost((task.id,), reason), require=is_last(task))
            return
        self.lost = 0
        self._compare(task.id, outcome)
        with self._unless_settled(task.id):
            self._study.note(Failed((task.id,), reason), require=is_last(task))
            self._failed.add(task.id)

    def _compare(self, id: int, outcome: Outcome) -> None:
        """Compare a failure with those before it, since f itself may be broken.

        A typo makes every trial fail alike, before any value came in this run. A failure that
        differs from the others, or of a kind that the log knew, shows that f is not broken.
        """
        if self._cleared or outcome.status != "failed":
            return
        self._first[id] = kind_of(outcome.reason)
        kinds = set(self._first.values())
        self._cleared = len(kinds) > 1 or kinds <= self._known

    def _withdraw(self) -> None:
        """Stop waiting for trials that others have told, failed, cancelled or taken over."""
        tasks = self._open.values()
        over = [t.name for t in tasks if not self._pending(t.id) or self._is_superseded(t)]
        if over:
            self._engine.cancel(over)
        for name in over:
            del self._open[name]
        self._queue = {id: at for id, at in self._queue.items() if self._pending(id)}

    def _admit_retried(self) -> None:
        """Queue failed trials that another process has made pending again."""
        retried = {id for id in self._failed if self._pending(id)}
        self._failed -= retried
        for id in retried:
            self._used.pop(id, None)
        self.admit(self._study.history.trial(id) for id in retried)

    @contextmanager
    def _unless_settled(self, id: int) -> Iterator[None]:
        """Ignore the log's refusal if another process has just settled the trial, or took it."""
        try:
            yield
        except SupersededError:
            pass
        except HistoryError:
            if self._pending(id):
                raise

    def _pending(self, id: int) -> bool:
        return self._study.history.trial(id).status == "pending"

    def _is_superseded(self, task: Task) -> bool:
        """Whether another run has taken the trial over, since it took this one for dead."""
        return len(self._study.history.attempts(task.id)) > task.attempt
