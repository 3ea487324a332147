"""Batches of an Optuna study, shared by its workers through the storage: `BatchStore` and `Turns`.

A batch is kept in the system attributes of the trial that computed it, as JSON cut into parts, with
a label that is written last. A trial claims a point by writing down its batch and its place. Both
are written in the trial's turn (see `Turns` below for why), and each trial writes to itself only,
so any storage that several processes share will do.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from covey import Space
from covey.errors import SpaceError
from covey.space import Choice, Parameter

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


# From the parameters of Optuna's trials to points of a space.

_OFF_GRID = 1e-8  # of a step: how far Optuna lets a value lie from its grid


def point_from_optuna(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a space with a trial's parameters; parameters outside the space are left out.

    >>> space = Space({"p": Choice([0.1, 0.2, 0.3, 0.4], ordered=True)})
    >>> point_from_optuna(space, {"p": 0.1 + 0.2, "q": 7})
    {'p': 0.3}

    Raises:
        SpaceError: one is missing, or outside the space.
    """
    known = {
        name: told_value(p, params[name]) for name, p in space.parameters.items() if name in params
    }
    if space.presence is not None:
        checked = {name: space.parameters[name].check(value) for name, value in known.items()}
        known = space.presence.trimmed(checked)
    return space.check(known)


def told_value(parameter: Parameter, value: Any) -> Any:
    """A trial's value as the equal value of the parameter; an unknown one is unchanged."""
    if not isinstance(parameter, Choice):
        return value
    options = parameter.options
    if _is_nan(value):  # a stored nan does not equal the parameter's nan
        return next(filter(_is_nan, options), value)
    if parameter.numeric and isinstance(value, float) and math.isfinite(value):
        gap = (options[-1] - options[0]) / max(len(options) - 1, 1) or 1.0
        rank = round(min(max((value - options[0]) / gap, 0), len(options) - 1))
        if abs(options[rank] - value) < _OFF_GRID * gap:
            return options[rank]
    return value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


BATCH, CLAIM = "covey:batch", "covey:claim"
# Relational storages hold 2045 characters of JSON, where each quote may count twice.
LONGEST = (2045 - 2) // 2


class Place(NamedTuple):
    """The position of a point: number of the trial, serial of its batch, index in the batch."""

    trial: int
    serial: int
    rank: int


@dataclass(frozen=True)
class SharedBatch:
    """Points computed together; serials count the batches of a study."""

    trial: int
    serial: int
    points: tuple[dict[str, Any], ...]

    @property
    def places(self) -> list[Place]:
        """The positions of its points, in the order in which they are claimed."""
        return [Place(self.trial, self.serial, rank) for rank in range(len(self.points))]


class BatchStore:
    """The batches of one space and the claims on their points, read from all trials of a study.

    Batches of another space are ignored: when the search space changes, what is left of a batch is
    never used.
    """

    def __init__(self, trials: Sequence[FrozenTrial], space: Space) -> None:
        self.trials = trials
        self.space = space
        self.serial = 0  # the next free serial
        self.batches: list[SharedBatch] = []  # of this space, oldest first
        self.claims: dict[int, Place] = {}
        for trial in trials:
            for key, label in trial.system_attrs.items():
                if key == CLAIM:
                    self.claims[trial.number] = Place(*label)
                elif key.startswith(BATCH) and isinstance(label, dict):
                    self._read(trial, key, label)
        self.batches.sort(key=lambda batch: (batch.serial, batch.trial))

    def _read(self, trial: FrozenTrial, key: str, label: dict[str, Any]) -> None:
        self.serial = max(self.serial, label["serial"] + 1)
        if label["space"] == self.space.fingerprint:
            parts = [trial.system_attrs[f"{key}:{part}"] for part in range(label["parts"])]
            points = tuple(map(self.space.from_json, json.loads("".join(parts))))
            self.batches.append(SharedBatch(trial.number, label["serial"], points))

    @cached_property
    def _points(self) -> dict[Place, dict[str, Any]]:
        """Every stored point by its place."""
        return {
            place: point
            for batch in self.batches
            for place, point in zip(batch.places, batch.points, strict=True)
        }

    def taken_by(self, number: int) -> dict[str, Any] | None:
        """The point that a trial claimed, if it claimed one of this space."""
        return self._points.get(self.claims[number]) if number in self.claims else None

    def point_of(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The point of a trial: what it suggested, was fixed to, or claimed."""
        known = self.taken_by(trial.number) or {}
        fixed = trial.system_attrs.get("fixed_params", {})
        try:
            return point_from_optuna(self.space, {**known, **fixed, **trial.params})
        except SpaceError:  # a parameter is missing, or is outside the space
            return None

    def next_place(self, number: int) -> Place | None:
        """The first point of the newest batch that no trial has claimed or evaluates."""
        if not self.batches:
            return None
        claimed = {place for other, place in self.claims.items() if other != number}
        left = [place for place in self.batches[-1].places if place not in claimed]
        if not left:
            return None
        others = (self.point_of(trial) for trial in self.trials if trial.number != number)
        held = {self._key(point) for point in others if point is not None}
        return next((place for place in left if self._key(self._points[place]) not in held), None)

    def contested(self, number: int) -> bool:
        """Whether another trial claimed the same point as this one."""
        mine = self.taken_by(number)
        others = (self.taken_by(other) for other in self.claims if other != number)
        return any(mine == point for point in others)

    def _key(self, point: dict[str, Any]) -> str:
        return json.dumps(self.space.to_json(point), sort_keys=True)


def store_batch(
    study: Study, trial: FrozenTrial, space: Space, serial: int, points: Sequence[dict[str, Any]]
) -> Place:
    """Write a batch to the storage; the position of its first point."""
    text = json.dumps([space.to_json(point) for point in points])
    parts = [text[start : start + LONGEST] for start in range(0, len(text), LONGEST)]
    key = f"{BATCH}:{serial}"
    for part, piece in enumerate(parts):
        _write(study, trial, f"{key}:{part}", piece)
    _write(study, trial, key, {"serial": serial, "space": space.fingerprint, "parts": len(parts)})
    return Place(trial.number, serial, 0)


def store_claim(study: Study, trial: FrozenTrial, place: Place) -> None:
    """Claim the point at this position."""
    _write(study, trial, CLAIM, list(place))


def _write(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    study._storage.set_trial_system_attr(trial._trial_id, key, value)


# Turns: mutual exclusion among the trials of an Optuna study, in any process.
#
# Optuna's storages offer no lock. They do promise that a running trial's attributes are written
# by the one worker that runs it, that numbers of trials are unique, and that a read after a
# write sees it. That is enough (Burns & Lynch 1980; the one-bit algorithm of Lamport 1986):
#
# 1. raise a flag on your own trial, then read all flags; 2. if no other flag is up, it is
# your turn; lower the flag when you are done; 3. if a trial of lower number has its flag up, put
# yours at half-mast until no trial of lower number has one up or at half-mast, and go to 1; 4. if
# only trials of higher number have theirs up, look again.
#
# Two trials never have the turn together: each looked after it had raised its flag and saw the
# other's not up; but the one that raised later must have seen the earlier one's. And there
# is progress: of those that want a turn, the lowest number does not give way, and all others
# give way to it. Half-mast only saves writes: those that wait come back one by one, not all at
# once.
#
# A worker that is killed in its turn leaves its flag up. When nothing has moved for ``patience``
# seconds, those that wait go on without it, and log a warning. Trials that Optuna has marked
# as failed count no more; its heartbeat does that.
#
# Why turns, if a batch is a function of the log? Because two trials that ask at different moments
# read different logs: results come in between, and no storage has an order of events on which
# all would agree. To agree on one batch all the same is consensus, which reads and writes cannot
# give without waiting (Herlihy 1991). Alternatives with less waiting were considered:
#
# - A batch from the results of all trials of lower number needs no agreement, but no worker could
#   go on before every earlier trial has ended; and workers on unlike machines may round to unlike
#   batches.
# - A batch computed by the trials of number 0, B, 2B ..., the others taking the place that their
#   number gives: but that trial may be enqueued with all its parameters fixed, be run by another
#   sampler, or know a smaller search space, and then no trial computes it; deciding which one does
#   instead needs turns again.

FLAG = "covey:turn"
UP, HALF, DOWN = "up", "half", "down"
_SHORTEST, _LONGEST = 0.005, 0.1  # seconds between polls

_log = logging.getLogger("covey")


def all_trials(study: Study) -> list[FrozenTrial]:
    """All trials as the storage has them now, those of all Hyperband brackets; not to be changed.

    Cost: one read of the storage, which caches finished trials.
    """
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def set_flag(study: Study, trial: FrozenTrial, flag: str) -> None:
    """Move the flag of a running trial."""
    study._storage.set_trial_system_attr(trial._trial_id, FLAG, flag)


class Turns:
    """Gives the trials of a study turns, one at a time."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._gone: set[tuple[str, int, str]] = set()  # flags of workers believed dead

    @contextmanager
    def take(self, study: Study, trial: FrozenTrial) -> Iterator[list[FrozenTrial]]:
        """Wait for the turn of a running trial; yields all trials as they are during the turn."""
        try:
            yield self._wait(study, trial)
        finally:
            set_flag(study, trial, DOWN)

    def _wait(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        mine = UP
        set_flag(study, trial, mine)
        seen, since, pause = dict[int, str](), time.monotonic(), _SHORTEST
        while True:
            trials = all_trials(study)
            others = self._others(study, trial, trials)
            if mine == UP and UP not in others.values():
                return trials
            first = not any(n < trial.number and mine in (HALF, f) for n, f in others.items())
            if first != (mine == UP):
                mine = UP if first else HALF
                set_flag(study, trial, mine)
                if first:
                    continue
            if others != seen:
                seen, since, pause = others, time.monotonic(), _SHORTEST
            if time.monotonic() - since > self._patience:
                self._leave_behind(study, others)
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST)

    def _others(
        self, study: Study, trial: FrozenTrial, trials: list[FrozenTrial]
    ) -> dict[int, str]:
        """Numbers and flags of the other trials that want a turn, or have it."""
        flags = {
            t.number: t.system_attrs[FLAG]
            for t in trials
            if t.state.name == "RUNNING"
            and t.number != trial.number
            and t.system_attrs.get(FLAG, DOWN) != DOWN
        }
        return {n: f for n, f in flags.items() if (study.study_name, n, f) not in self._gone}

    def _leave_behind(self, study: Study, others: dict[int, str]) -> None:
        """Ignore from now on the flags that are up; if there are none, those at half-mast.

        Other waiting workers do the same with the same flags.
        """
        held = UP if UP in others.values() else HALF
        numbers = sorted(number for number, flag in others.items() if flag == held)
        self._gone.update((study.study_name, number, held) for number in numbers)
        _log.warning(
            "trials %s of study %r have not moved on for %.0f seconds while they asked for a "
            "point, and are not waited for any more. If their workers are dead, tell the trials "
            "failed: until then they count as running.",
            numbers,
            study.study_name,
            self._patience,
        )
