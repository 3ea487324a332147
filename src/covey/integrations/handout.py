"""Handout: the batches of a study, given out one point at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Self

from covey import Pool, Space, Study, Trial
from covey.errors import ExhaustedError, HistoryError
from covey.integrations.snapshot import revive, snapshot
from covey.space.scalars import is_finite, plain
from covey.strategies import Strategy

_log = logging.getLogger("covey")


class Handout:
    """A study whose points go one by one to runs that a host names as it likes.

    Points of the user's own, from ``study.enqueue``, go first.

    >>> from covey import Real, Space
    >>> out = Handout(Study(Space({"x": Real(0, 1)}), seed=0))
    >>> first, second, third = (out.next(run, batch=2) for run in ("a", "b", "c"))
    >>> third is None  # the batch is out
    True
    >>> out.tell("a", 0.5), out.fail("b", "it crashed")
    (None, None)
    >>> out.next("c", batch=2).id
    2
    """

    def __init__(
        self,
        study: Study,
        strategy: str | Strategy = "auto",
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self.study = study
        self._strategy = strategy
        self._runs: dict[str, int] = dict((notes or {}).get("runs", {}))  # the trial of each
        self._heard: dict[str, float] = dict((notes or {}).get("heard", {}))

    def snapshot(self, **more: Any) -> bytes:
        """All of it as a journal, with more that the host wants to remember."""
        return snapshot(
            self.study, self._strategy, {"runs": self._runs, "heard": self._heard, **more}
        )

    @classmethod
    def revive(
        cls,
        data: bytes,
        name: str,
        space: Space | Pool | None = None,
        strategy: str | Strategy | None = None,
    ) -> tuple[Self, Mapping[str, Any]]:
        """The handout of a snapshot, and what was noted with it; see `snapshot.revive`."""
        study, header = revive(data, name, space, strategy)
        chosen = header["strategy"]["name"] if strategy is None else strategy
        return cls(study, chosen, header["notes"]), header["notes"]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.snapshot(), self.study.space, self._strategy)

    def __contains__(self, run: str) -> bool:
        return run in self._runs

    def trial(self, run: str) -> Trial:
        """The trial of a run as it stands."""
        return self.study.history.trial(self._runs[run])

    def next(self, run: str, batch: int, wait: bool = True) -> Trial | None:
        """The trial for a run; None while the batch is out, and ``wait`` says to wait for it.

        Raises:
            ExhaustedError: nothing is left that was not tried before.
        """
        if run not in self._runs:
            pending = self.study.history.pending
            given = set(self._runs.values())
            waiting = [trial for trial in pending if trial.id not in given]
            if not waiting and wait and pending:
                return None
            self._runs[run] = (waiting or self._ask(batch))[0].id
        return self.trial(run)

    def _ask(self, batch: int) -> list[Trial]:
        try:
            return self.study.ask(batch)
        except ExhaustedError as error:
            if not error.left:
                raise
            _log.info("the last %d points of this space are asked for", error.left)
            return self.study.ask(error.left)

    def hear(self, run: str, value: object) -> None:
        """A value on the way, which is the result should the run be ended without one."""
        value = plain(value)
        if is_finite(value):
            self._heard[run] = float(value)

    def tell(self, run: str, value: object) -> None:
        """The result of a run, taken once; what is no finite number counts as failed."""
        self._heard.pop(run, None)
        trial = self.trial(run)
        if trial.status == "told":
            return
        try:
            self.study.tell(trial, value)  # type: ignore[arg-type] # the log judges what it is
        except HistoryError as error:
            self.fail(run, str(error))

    def fail(self, run: str, reason: str) -> None:
        """A run that gave no result."""
        self._heard.pop(run, None)
        trial = self.trial(run)
        if trial.status == "pending":
            self.study.fail(trial, reason)
            _log.warning("run %s at %s failed: %s", run, dict(trial.point), reason)

    def end(self, run: str) -> None:
        """A run that was ended without a result: what was heard last, or it never ran."""
        if run in self._heard:
            self.tell(run, self._heard[run])
        elif self.trial(run).status == "pending":
            self.study.cancel(self.trial(run))

    def cancel_all(self) -> None:
        """Every run that is not over: their host is gone, and what was heard was on the way."""
        self._heard.clear()
        for run in self._runs:
            self.end(run)


def _unpickled(data: bytes, space: Space | Pool, strategy: str | Strategy) -> Handout:
    return Handout.revive(data, "the pickled handout", space, strategy)[0]
