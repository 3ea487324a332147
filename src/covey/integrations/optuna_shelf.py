"""Shelf: the batches of an Optuna study, kept in the storage, and who took which point.

A batch lies in the system attributes of the trial that computed it, as JSON cut into parts, with
a label that is written last; a trial takes a point by writing down whose batch and which place.
Both are written in the trial's turn (`covey.integrations.optuna_turns`), and each trial writes to
itself only, so any storage that several processes share will do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from covey import Space
from covey.errors import SpaceError
from covey.integrations.optuna_points import point_from_optuna

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

BATCH, CLAIM = "covey:batch", "covey:claim"
# Relational storages hold 2045 characters of JSON, where each quote may count twice.
LONGEST = (2045 - 2) // 2


class Place(NamedTuple):
    """Where a point lies: number of the trial, serial of its batch, place in the batch."""

    trial: int
    serial: int
    rank: int


@dataclass(frozen=True)
class Batch:
    """Points computed together; serials count the batches of a study."""

    trial: int
    serial: int
    points: tuple[dict[str, Any], ...]

    @property
    def places(self) -> list[Place]:
        """Where its points lie, in the order in which they are handed out."""
        return [Place(self.trial, self.serial, rank) for rank in range(len(self.points))]


class Shelf:
    """What all trials together say about one space.

    A batch of another space is not seen: when the search space changes, what is left of a batch
    stays on the shelf for good.
    """

    def __init__(self, trials: Sequence[FrozenTrial], space: Space) -> None:
        self.trials = trials
        self.space = space
        self.serial = 0  # the next free one
        self.batches: list[Batch] = []  # of this space, oldest first
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
            self.batches.append(Batch(trial.number, label["serial"], points))

    @cached_property
    def _points(self) -> dict[Place, dict[str, Any]]:
        return {
            place: point
            for batch in self.batches
            for place, point in zip(batch.places, batch.points, strict=True)
        }

    def taken_by(self, number: int) -> dict[str, Any] | None:
        """The point that a trial took, if it took one of this space."""
        return self._points.get(self.claims[number]) if number in self.claims else None

    def point_of(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """Where a trial is, or will be: what it suggested, was fixed to, or took."""
        known = self.taken_by(trial.number) or {}
        fixed = trial.system_attrs.get("fixed_params", {})
        try:
            return point_from_optuna(self.space, {**known, **fixed, **trial.params})
        except SpaceError:  # a parameter is missing, or is outside the space
            return None

    def next_place(self, number: int) -> Place | None:
        """The first point of the newest batch for a trial: not taken, and where nobody else is."""
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
        """Whether another trial took the very point that this one took."""
        mine = self.taken_by(number)
        others = (self.taken_by(other) for other in self.claims if other != number)
        return any(mine == point for point in others)

    def _key(self, point: dict[str, Any]) -> str:
        return json.dumps(self.space.to_json(point), sort_keys=True)


def put_batch(
    study: Study, trial: FrozenTrial, space: Space, serial: int, points: Sequence[dict[str, Any]]
) -> Place:
    """Put a batch on the shelf; where its first point lies."""
    text = json.dumps([space.to_json(point) for point in points])
    parts = [text[start : start + LONGEST] for start in range(0, len(text), LONGEST)]
    key = f"{BATCH}:{serial}"
    for part, piece in enumerate(parts):
        _write(study, trial, f"{key}:{part}", piece)
    _write(study, trial, key, {"serial": serial, "space": space.fingerprint, "parts": len(parts)})
    return Place(trial.number, serial, 0)


def put_claim(study: Study, trial: FrozenTrial, place: Place) -> None:
    """Take the point that lies there."""
    _write(study, trial, CLAIM, list(place))


def _write(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    study._storage.set_trial_system_attr(trial._trial_id, key, value)
