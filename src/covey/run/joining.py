"""What a run logs of an attempt, provided that it is not out of date, where runs share a journal.

Who evaluates which trial is in the log: its last attempt names a run, and nothing is logged of an
attempt that another has followed. Who lives is said by `covey.log.running.Runs`.
"""

from __future__ import annotations

from covey.errors import SupersededError
from covey.history import Dispatched, History, Reported
from covey.log.log import Requirement
from covey.run.task import Task


def follows(sent: Dispatched) -> Requirement:
    """Refuse an attempt unless it is the next one: of two runs that want a trial, one gets it."""

    def require(history: History) -> None:
        if len(history.attempts(sent.id)) != sent.attempt - 1:
            raise SupersededError(f"trial {sent.id} has attempt {sent.attempt} already.")

    return require


def is_last(task: Task) -> Requirement:
    """Refuse what becomes of an attempt unless it is the last one of its trial."""

    def require(history: History) -> None:
        if len(history.attempts(task.id)) > task.attempt:
            raise SupersededError(f"trial {task.id} has an attempt after {task.attempt}.")

    return require


def is_next(said: Reported) -> Requirement:
    """Refuse a report unless it is the next one of an attempt that is awaited.

    Another run may have logged it, if both found the same evaluation; may have stopped the trial,
    whose last report is then the one that it was told; or may have begun the trial again.
    """

    def require(history: History) -> None:
        known = [one.step for one in history.reports(said.id) if one.attempt == said.attempt]
        pending = history.trial(said.id).status == "pending"
        awaited = pending and len(history.attempts(said.id)) <= said.attempt
        if not awaited or said.step <= max(known, default=-1):
            raise SupersededError(f"step {said.step} of trial {said.id} is out of date.")

    return require


def is_newest(said: Reported) -> Requirement:
    """Refuse to stop a trial at a report after which another run has logged one."""

    def require(history: History) -> None:
        if history.reports(said.id)[-1] != said:
            raise SupersededError(f"trial {said.id} has come further than step {said.step}.")

    return require
