"""`Standing`: how far a run is, from its journal alone; what `covey status` and `covey watch` show.

Also how long the rest will take (`time_left`) and whether evaluations fail one after the other
(`failing_alike`), which the run itself says too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from covey.disk import time_of
from covey.errors import several
from covey.history import Began, Dispatched, Ended, Failed, History, Retried, Trial
from covey.log.running import Run
from covey.run.budget import ended_in_order, spent
from covey.run.task import run_of
from covey.study import Study

_ALIKE = 3  # failures in a row that are worth a word
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Running:
    """An evaluation that is under way."""

    id: int
    attempt: int
    slot: int | None
    gpu: str | None
    seconds: float  # since it was handed out
    step: int | None = None  # of the last value it reported
    value: float | None = None
    by: str = ""  # which run has it, where there are several


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run that is over, or was killed: what the log says of it."""

    pid: int
    host: str
    since: str  # a time in ISO format
    ended: str = ""  # the same; empty if it was killed
    why: str = ""  # it ended

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is."""

    runner: Run | None  # who runs it now, the oldest of several
    done: int  # evaluations told or failed
    total: int | None  # evaluations in all; None where nobody runs it, or it has no such limit
    failed: int
    stopped: int  # of those told, before their end
    slots: int | None  # of the run; None if it has none, or nobody runs it
    running: tuple[Running, ...]
    left: float | None  # estimated seconds; None if that cannot be told
    spent: float | None  # what evaluations have cost, if the run has a cost
    purse: float | None  # how much that may be
    costly: str  # its name
    trouble: str  # what looks wrong, in a sentence
    last: LastRun | None = None  # who ran it last, where nobody does
    joined: tuple[Run, ...] = ()  # the runs beside the first

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def standing(study: Study, runs: Mapping[str, Run], now: datetime) -> Standing:
    """How far a study is.

    Args:
        study: opened from the journal.
        runs: those that have a file beside the journal (`covey.log.running.runs_of`).
        now: the time.
    """
    living = {id: run for id, run in runs.items() if run.lives}
    runner, joined = next(iter(living.values()), None), tuple(living.values())[1:]
    history, plans = study.history, _plans(study.history)
    plan = dict(plans.get(runner.id, {})) if runner else {}
    if joined:
        plan["slots"] = sum(plans.get(id, {}).get("slots") or 0 for id in living) or None
    under_way = _running(history, now, living if joined else {}) if runner is not None else ()
    ended = [t for t in history.trials if t.origin != "added" and t.status in ("told", "failed")]
    total = plan.get("total")
    costly = str(plan.get("cost") or "")
    return Standing(
        runner,
        len(ended),
        total,
        sum(trial.status == "failed" for trial in ended),
        len(history.stopped),
        plan.get("slots"),
        under_way,
        None if runner is None else _left(history, under_way, plan, now),
        spent(history, costly)[0] if costly else None,
        plan.get("purse"),
        costly,
        failing_alike(history),
        _last_run(history, runs) if runner is None else None,
        joined,
    )


def _plans(history: History) -> dict[str, dict[str, Any]]:
    """What each run was to do, by its name."""
    return {event.run: event.plan for event in history.events if isinstance(event, Began)}


def _last_run(history: History, left: Collection[str]) -> LastRun | None:
    """The run that was the last to say something, or that was killed since and has left its file.

    A run that is killed leaves it, and the next one to look removes it.
    """
    last: dict[str, LastRun] = {}
    for event, at in zip(history.events, history.times, strict=True):
        when = "" if at is None else at.isoformat(timespec="seconds")
        if isinstance(event, Began):
            last[event.run] = LastRun(event.pid, event.host, when)
        elif isinstance(event, Ended) and event.run in last:
            last[event.run] = replace(last.pop(event.run), ended=when, why=event.reason)
    killed = [run for id, run in last.items() if id in left and not run.ended]
    return [*last.values(), *killed][-1] if last else None


def _running(history: History, now: datetime, runs: Mapping[str, Run]) -> tuple[Running, ...]:
    last = last_attempts(history)
    found = []
    for trial in history.pending:
        sent = last.get(trial.id)
        if sent is None:
            continue
        began = trial.started_at
        seconds = 0.0 if began is None else max(0.0, (now - began).total_seconds())
        reports = [one for one in history.reports(trial) if one.attempt == sent.attempt]
        step, value = (reports[-1].step, reports[-1].value) if reports else (None, None)
        who = runs.get(run_of(sent.name))
        named = "a run that is dead" if who is None else f"process {who.pid} on {who.host}"
        by = named if runs else ""
        one = Running(trial.id, sent.attempt, sent.slot, sent.gpu, seconds, step, value, by)
        found.append(one)
    return tuple(sorted(found, key=lambda one: (one.by, one.slot is None, one.slot or 0, one.id)))


@lru_cache(maxsize=2)  # a history never changes, and a run asks for its attempts often
def last_attempts(history: History) -> Mapping[int, Dispatched]:
    """The last attempt of each trial, by id; those before a retry are over, and not among them."""
    last: dict[int, Dispatched] = {}
    for event in history.events:
        if isinstance(event, Dispatched):
            last[event.id] = event
        elif isinstance(event, Retried):
            for id in event.ids:
                last.pop(id, None)
    return MappingProxyType(last)


def last_asked(history: History) -> range:
    """The ids of the last batch that was asked for."""
    asked = (batch.ids for batch in reversed(history.batches) if batch.origin == "asked")
    return next(asked, range(0))


def _left(
    history: History, under_way: Sequence[Running], plan: Mapping[str, Any], now: datetime
) -> float | None:
    """Seconds until the run ends, by its evaluations or by its hours, whichever is first."""
    deadline = time_of(plan.get("until"))
    limit = None if deadline is None else max(0.0, (deadline - now).total_seconds())
    total, wide = plan.get("total"), plan.get("slots") or plan.get("batch") or 1
    took = [t.seconds for t in history.trials if t.status in ("told", "failed")]
    known = [seconds for seconds in took if seconds is not None]
    if total is None or not known:
        return limit
    used = sum(
        t.origin == "asked" and t.status in ("told", "failed", "pending") for t in history.trials
    )
    pace = Tempo(math.fsum(known) / len(known), wide, plan.get("batch") or wide)
    if plan.get("asynchronous"):
        pace = Tempo(pace.one, pace.wide, None)
    queued = len(history.pending) - len(under_way)
    rest = pace.left([one.seconds for one in under_way], queued, max(0, total - used))
    return rest if limit is None else min(limit, rest)


@dataclass(frozen=True, slots=True)
class Tempo:
    """What one evaluation takes, in seconds, how many go on at once, and in batches of how many.

    Without batches (None) the next begins wherever one has ended.
    """

    one: float
    wide: int
    batch: int | None = None

    def left(self, elapsed: Sequence[float], queued: int, later: int) -> float:
        """Seconds until all is evaluated, if each evaluation takes as long as those so far.

        It falls while one waits, and never grows: one that takes longer than expected counts as
        about to end.

        >>> Tempo(10.0, wide=2).left([4.0, 0.0], queued=0, later=2), Tempo(10.0, 2).left([], 0, 3)
        (20.0, 20.0)
        >>> Tempo(10.0, wide=2, batch=3).left([], queued=0, later=6)
        40.0

        Args:
            elapsed: seconds since the start of each that runs.
            queued: how many of this batch wait for a free place.
            later: how many have yet to be asked for.
        """
        ends = sorted(max(0.0, self.one - seconds) for seconds in elapsed)
        if self.batch is None:
            return self._ended(ends, queued + later)
        whole, rest = divmod(later, self.batch)
        rounds = whole * math.ceil(self.batch / self.wide) + math.ceil(rest / self.wide)
        return self._ended(ends, queued) + rounds * self.one

    def _ended(self, ends: Sequence[float], waiting: int) -> float:
        """When the last of those that wait has ended, if each takes the first place that is free.

        No place is taken for longer than one evaluation, so that they take turns.
        """
        free = sorted([*ends, *[0.0] * (self.wide - len(ends))])
        return free[(waiting - 1) % len(free)] + math.ceil(waiting / len(free)) * self.one


def failing_alike(history: History) -> str:
    """What to say if the last few evaluations failed for one reason; empty if they did not.

    A program that breaks in the middle of a run fails from then on, and a run goes on through
    failures.
    """
    ended = [history.trial(id) for id in ended_in_order(history)]
    failed: list[Trial] = []
    for trial in reversed(ended):
        alike = not failed or kind_of(history.reason(trial)) == kind_of(history.reason(failed[0]))
        if trial.status != "failed" or not alike:
            break
        failed.append(trial)
    if len(failed) < _ALIKE:
        return ""
    why = history.reason(failed[0]).strip() or "nobody said why"
    return f"the last {several(len(failed), 'evaluation')} in a row failed alike: {why}"


def known_reasons(history: History) -> set[str]:
    """Why trials failed; a trial that is retried was not to blame for its failures before."""
    reasons: dict[int, set[str]] = {}
    for event in history.events:
        if isinstance(event, Failed):
            for id in event.ids:
                reasons.setdefault(id, set()).add(event.reason)
        elif isinstance(event, Retried):
            for id in event.ids:
                reasons.pop(id, None)
    return set().union(*reasons.values())


def kind_of(reason: str) -> str:
    """A reason without its numbers, which may be those of the point.

    >>> kind_of("KeyError: 'lr' in trial 12 at 1e-05") == kind_of("KeyError: 'lr' in trial 3 at 1")
    True
    """
    return _NUMBER.sub("#", reason)
