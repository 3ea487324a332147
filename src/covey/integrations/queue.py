"""`TrialQueue`: the batches of a study, given out one point at a time to a host's runs.

`snapshot` and `revive` save and restore a study for hosts that keep their own checkpoints.
"""

from __future__ import annotations

import io
import logging
import pickle
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from covey import GP, Pool, Space, Study
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, HistoryError, JournalError, SpaceError, StrategyError
from covey.history import Extended, Trial, event_from_json, event_to_json
from covey.log.header import header_of
from covey.log.journal import Contents, event_line, header_line, parse
from covey.selection import Strategy
from covey.space import space_from_description
from covey.space.covering import searched
from covey.space.description import as_described
from covey.space.names import is_finite, plain

# Snapshots: a study as one journal in bytes.
#
# Options of a space that JSON cannot hold, such as lists or objects, are pickled. Revive only what
# you trust: unpickling runs code.

_log = logging.getLogger("covey")


def snapshot(study: Study, strategy: str | Strategy, notes: Mapping[str, Any]) -> bytes:
    """The study as it stands, in the format of its journal: `Study.load` reads it from a file.

    Args:
        study: any.
        strategy: its strategy, as it was given.
        notes: what the host has to remember beside it, as JSON.
    """
    name, _ = strategy_of(strategy)
    spaces = [*study.recipe.passed, searched(study.space)]  # the later ones are in the events
    named = {"name": name, "object": not isinstance(strategy, str)}
    header = {
        **header_of(replace(study.recipe, space=spaces[0]), named),
        "notes": dict(notes),
        "pickle": _pickled(spaces[0]),
    }
    history, lines = study.history, [header_line(header)]
    firsts = {batch.place: batch.first for batch in history.batches}  # event -> its first id
    for place, (event, at) in enumerate(zip(history.events, history.times, strict=True)):
        if isinstance(event, Extended) and event.changes:
            del spaces[0]
        written = event_to_json(event, spaces[0].to_json, firsts.get(place, 0))
        when = {} if at is None else {"at": at.isoformat(timespec="milliseconds")}
        lines.append(event_line(place + 1, {**when, **written}))
    return b"".join(lines)


def revive(
    data: bytes, name: str, space: Space | Pool | None, strategy: str | Strategy | None
) -> tuple[Study, dict[str, Any]]:
    """The study of a snapshot, or of any journal, in memory; and the host's notes in its header.

    Args:
        data: what `snapshot` gave.
        name: what errors call it.
        space: the space it was of; None builds it from its description.
        strategy: to go on with; None is the one it had.
    """
    contents = parse(io.BytesIO(data), name)
    header = contents.header
    try:
        space = _space(header, name, space)
        chosen = _strategy(header, strategy)
        study = Study(
            space,
            header["goal"],
            chosen,
            header["seed"],
            gp=GP(**header["gp"]),
            limits=header.get("limits"),
            record=header.get("record"),
            worst=header.get("worst"),
        )
    except (KeyError, TypeError) as error:
        raise JournalError(
            f"{name} is not the journal of a study that this covey understands ({error!r})."
        ) from error
    _replay(contents, study)
    return study, {"notes": {}, **header}


def _pickled(space: Space | Pool) -> str | None:
    """An opaque space, pickled, to be restored; None for a pool, which may be large."""
    if isinstance(space, Pool) or not space.describe()["opaque"]:
        return None
    try:
        return b64encode(pickle.dumps(space)).decode()
    except Exception as error:  # pickling an option may raise anything
        _log.info("this space must be passed again to go on with a snapshot: %r", error)
        return None


def _space(header: Mapping[str, Any], name: str, space: Space | Pool | None) -> Space | Pool:
    if space is None and header.get("pickle"):
        try:
            space = pickle.loads(b64decode(header["pickle"]))
        except Exception as error:  # the code it needs is missing or has changed
            raise SpaceError(
                f"the space in {name} cannot be unpickled ({error!r}); pass it again."
            ) from error
    if space is None:
        return space_from_description(header["space"])
    space = as_described(space, header["space"])
    if space.fingerprint != header["fingerprint"]:
        raise JournalError(
            f"{name} belongs to a search of another space, {header['space']!r}; "
            f"it cannot go on in {space!r}."
        )
    return space


def _strategy(header: Mapping[str, Any], strategy: str | Strategy | None) -> str | Strategy:
    if strategy is not None:
        return strategy
    if header["strategy"]["object"]:
        raise StrategyError(
            f"this search used a strategy object ({header['strategy']['name']}), which a log "
            "cannot hold; pass it again, as strategy=..."
        )
    return str(header["strategy"]["name"])


def _replay(contents: Contents, study: Study) -> None:
    for line in contents.events:
        event = event_from_json(line, study.space.from_json, len(study.history))
        if event is not None:
            study.note(event)  # appended as they are; nothing is asked or told again


class TrialQueue:
    """Hands out the points of a study one by one to runs, which the host names.

    Points of the user's own, from ``study.enqueue``, and retried ones go first.

    >>> from covey import Real, Space
    >>> out = TrialQueue(Study(Space({"x": Real(0, 1)}), seed=0))
    >>> first, second, third = (out.next(run, batch=2) for run in ("a", "b", "c"))
    >>> third is None  # the whole batch is handed out
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
        self._runs: dict[str, int] = dict((notes or {}).get("runs", {}))  # run -> id of its trial
        self._reported: dict[str, float] = dict((notes or {}).get("heard", {}))
        over = [run for run in self._runs if self.trial(run).status != "pending"]
        self._over = {*over, *(notes or {}).get("over", ())}  # runs that have ended

    def snapshot(self, **more: Any) -> bytes:
        """The study and its runs as a journal, with further notes of the host."""
        notes = {"runs": self._runs, "heard": self._reported, "over": sorted(self._over)}
        return snapshot(self.study, self._strategy, {**notes, **more})

    @classmethod
    def revive(
        cls,
        data: bytes,
        name: str,
        space: Space | Pool | None = None,
        strategy: str | Strategy | None = None,
    ) -> tuple[Self, Mapping[str, Any]]:
        """The queue of a snapshot, and the host's notes; see `revive`."""
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
        """The trial for a run; None if ``wait`` and the batch is handed out but not finished.

        Raises:
            ExhaustedError: nothing is left that was not tried before.
        """
        if run not in self._runs:
            pending = self.study.history.pending
            given = {id for run, id in self._runs.items() if run not in self._over}
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

    def report(self, run: str, value: object) -> None:
        """Note an intermediate value: it is the result if the run ends without one."""
        value = plain(value)
        if is_finite(value):
            self._reported[run] = float(value)

    def tell(self, run: str, value: object) -> None:
        """Record the result of a run, once; a value that is not a finite number is a failure."""
        self._reported.pop(run, None)
        self._over.add(run)
        trial = self.trial(run)
        if trial.status == "told":
            return
        try:
            self.study.tell(trial, value)  # type: ignore[arg-type] # checked by the log
        except HistoryError as error:
            self.fail(run, str(error))

    def fail(self, run: str, reason: str) -> None:
        """Record a run that gave no result; if its trial is retried, another run gets it."""
        self._reported.pop(run, None)
        self._over.add(run)
        trial = self.trial(run)
        if trial.status == "pending":
            self.study.fail(trial, reason)
            _log.warning("run %s at %s failed: %s", run, dict(trial.point), reason)

    def end(self, run: str) -> None:
        """End a run without a result: with its last intermediate value, or else as cancelled."""
        if run in self._reported:
            self.tell(run, self._reported[run])
        elif run not in self._over and self.trial(run).status == "pending":
            self.study.cancel(self.trial(run))
        self._over.add(run)

    def cancel_all(self) -> None:
        """Cancel every run that is not over, since their host is gone; drop intermediate values."""
        self._reported.clear()
        for run in self._runs:
            self.end(run)


def _unpickled(data: bytes, space: Space | Pool, strategy: str | Strategy) -> TrialQueue:
    return TrialQueue.revive(data, "the pickled handout", space, strategy)[0]
