"""Plates in a report: what stands on each, what was measured, and by how much it is shifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.arrays import plus_diagonal
from covey.history import PlateRecord
from covey.history.wells import mean_and_error
from covey.report.format import plain_text, plus_minus, shown, significant

if TYPE_CHECKING:
    from covey.arrays import Array
    from covey.gp import Posterior
    from covey.history import History
    from covey.learn import Recipe


@dataclass(frozen=True, slots=True)
class Shift:
    """How much higher a plate, row, column or day reads, in your units and sign."""

    effect: str
    name: str
    mean: float
    std: float


@dataclass(frozen=True, slots=True)
class PlateFacts:
    """One plate: its wells by what became of them, what it shares, and its controls."""

    name: str
    shared: str  # in words
    trials: int
    wells: int  # in use
    measured: int  # and not marked
    marked: int
    controls: tuple[str, ...]  # name, mean and standard error, in words
    shift: Shift | None


@dataclass(frozen=True, slots=True)
class Plates:
    """All plates of a study, the shifts of rows, columns and days, and what they mean."""

    each: tuple[PlateFacts, ...]
    others: tuple[Shift, ...]  # of rows, columns and days
    note: str
    level: float | None = None  # by how much the level of f is unknown, in your units


def plates_of(history: History, recipe: Recipe, posterior: Posterior | None) -> Plates | None:
    """What a report says about plates; None if there are none. ``posterior`` is that of today."""
    records = history.plates.records
    if not records:
        return None
    shifts = () if posterior is None else _shifts(posterior, recipe)
    by_plate = {one.name: one for one in shifts if one.effect == "plate"}
    level = None if posterior is None else _level(posterior, len(by_plate))
    return Plates(
        each=tuple(
            _facts(record, history, recipe.outcomes.only, by_plate.get(name))
            for name, record in records.items()
        ),
        others=tuple(sorted((one for one in shifts if one.effect != "plate"), key=_natural)),
        note=_note(records.values(), shifts, level, posterior),
        level=level,
    )


def _natural(one: Shift) -> tuple[str, int, str]:
    """Row B after row A and before row AA, column 9 before column 10."""
    return one.effect, len(one.name), one.name


def _facts(record: PlateRecord, history: History, outcome: str, shift: Shift | None) -> PlateFacts:
    ids = sorted({use.trial for use in record.uses.values() if use.trial is not None})
    counted = [well for well in record.readings if well not in record.marks]
    by_control: dict[str, list[float]] = {n: [] for n in record.layout.get("controls", {})}
    for well in counted:
        if record.uses[well].trial is None:
            by_control.setdefault(record.uses[well].control, []).append(
                record.readings[well][outcome]
            )
    names = [n for n, level in record.layout.get("shared", {}).items() if level == "plate"]
    point: Mapping[str, Any] = history.trial(ids[0]).point if ids else {}
    return PlateFacts(
        name=plain_text(record.name),
        shared=", ".join(f"{shown(n)} {shown(point.get(n, ''))}" for n in names),
        trials=len(ids),
        wells=len(record.uses),
        measured=len(counted),
        marked=len(record.marks),
        controls=tuple(_control(name, values) for name, values in by_control.items() if values),
        shift=shift,
    )


def _control(name: str, values: Sequence[float]) -> str:
    mean, error = mean_and_error(values)
    told = significant(mean, 4) if error is None else plus_minus(mean, error)
    return f"{plain_text(name)} {told} ({len(values)})"


def _shifts(posterior: Posterior, recipe: Recipe) -> tuple[Shift, ...]:
    """The shifts that the model of today learnt, with their uncertainty."""
    data = posterior.data
    if data.shifts is None:
        return ()
    means, stds = [], []
    for model in posterior.models:
        gram = plus_diagonal(model.kernel(data.at, data.at), data.noise(model.noise))
        residual = data.residual(model.mean, model.earlier)
        means.append(data.shifts.estimated(model, gram, residual))
        stds.append(data.shifts.doubt(model, gram))
    mean = np.mean(means, axis=0)
    std = np.sqrt(np.mean(np.square(stds), axis=0) + np.var(means, axis=0))
    slope = _slope(posterior)
    return tuple(
        Shift(
            data.shifts.names[effect],
            plain_text(label),
            recipe.sign * slope * float(b),
            slope * float(s),
        )
        for effect, label, b, s in zip(
            data.shifts.of.tolist(), data.shifts.labels, mean, std, strict=True
        )
    )


def _slope(posterior: Posterior) -> float:
    """Outcome units of one unit of the model, in the middle of the data if outcomes are bent."""
    middle = float(np.mean(posterior.data.values))
    ends: Array = posterior.outcome(np.array([middle - 0.25, middle + 0.25]))
    return float(abs(ends[1] - ends[0])) / 0.5


def _level(posterior: Posterior, plates: int) -> float | None:
    """τ/√plates in outcome units; None if no shift of plates is learnt."""
    taus = [dict(model.shifts).get("plate") for model in posterior.models]
    known = [tau for tau in taus if tau is not None]
    if not known or plates < 1:
        return None
    return _slope(posterior) * float(np.sqrt(np.mean(known) / plates))


def _note(
    records: Any, shifts: Sequence[Shift], level: float | None, posterior: Posterior | None
) -> str:
    if level is not None:
        return (
            "A shift is by how much all readings of a plate are higher than those of others, for "
            "reasons that are not in the space. Expected values are of the function without "
            "shifts. Its level is then unknown by the size of a shift over the root of the number "
            f"of plates, about {significant(level, 2)}, which widens every band alike; how "
            "points differ is known better."
        )
    if shifts:
        kinds = Counter(one.effect for one in shifts)
        return f"Expected values are of the function without shifts of {' and '.join(kinds)}."
    if any("plate" in one.layout.get("effects", ["plate"]) for one in records):
        if posterior is None:
            return "Shifts of plates are learnt once there are results."
        return "A shift of a plate is told apart from the level of the function by a second plate."
    return "The layouts model no shifts of plates."
