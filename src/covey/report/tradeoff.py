"""Several outcomes on a report card: the front, the trade-off, and what each batch added to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covey.gp import Scale, learnt_scale, scaled
from covey.history import Batch, History, Trial
from covey.hypervolume import hypervolume
from covey.outcomes import Outcomes, best_trial, complete, front, goal_values
from covey.report.format import significant

_MOST_GOALS = 4  # of a hypervolume, whose cost grows with their number


@dataclass(frozen=True, slots=True)
class OutcomeDot:
    """The outcomes of one told trial; ``values`` has one for each name, None where it is not in."""

    id: int
    batch: int | None
    values: tuple[float | None, ...]
    kept: bool  # whether all limits are known to be kept
    on_front: bool
    excluded: bool


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The outcomes of a study and how they stand.

    Attributes:
        names: goals, then limited outcomes.
        goals: those to trade off, each with "max" or "min".
        limits: in words.
        worst: the reference point, given or learnt from all results of today.
        tail: where the reference point is learnt, what is worse than these counts a tenth.
        dots: every told trial.
        attained: after each batch, in percent, the share of today's hypervolume of the front; empty
            for one goal, or more than four.
        recorded: names of what is told beside the outcomes.
    """

    names: tuple[str, ...]
    goals: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    worst: tuple[float, ...]
    tail: tuple[float, ...]
    dots: tuple[OutcomeDot, ...]
    attained: tuple[tuple[str, float], ...]
    recorded: tuple[str, ...]

    @property
    def front(self) -> tuple[OutcomeDot, ...]:
        """Those that no other beats, the best in the first goal first."""
        found = [dot for dot in self.dots if dot.on_front]
        sign = -1.0 if self.goals[0][1] == "max" else 1.0
        return tuple(sorted(found, key=lambda dot: sign * (dot.values[0] or 0.0)))


def trade_off(history: History, outcomes: Outcomes, dimension: int) -> TradeOff:
    """The trade-off of a study whose outcomes have names, in a space of so many coordinates."""
    names, on_front = outcomes.names, {trial.id for trial in front(history, outcomes)}
    dots = [_dot(trial, history, outcomes, trial.id in on_front) for trial in history.told]
    known = [t for t in history.told if not t.excluded and outcomes.goals.keys() <= t.values.keys()]
    scale, signs = _scale(known, outcomes, dimension), outcomes.signs()
    return TradeOff(
        names=names,
        goals=tuple(outcomes.goals.items()),
        limits=tuple(map(str, outcomes.limits)),
        worst=tuple((signs * scale.low).tolist()) if scale else (),
        tail=tuple((signs * scale.tail).tolist()) if scale and scale.tail is not None else (),
        dots=tuple(dots),
        attained=_attained(history, outcomes, scale) if scale and known else (),
        recorded=outcomes.record,
    )


def _dot(trial: Trial, history: History, outcomes: Outcomes, on_front: bool) -> OutcomeDot:
    values = tuple(trial.values.get(name) for name in outcomes.names)
    kept = outcomes.keeps(trial.values)
    return OutcomeDot(trial.id, history.batch(trial), values, kept, on_front, trial.excluded)


def _scale(known: Sequence[Trial], outcomes: Outcomes, dimension: int) -> Scale | None:
    """From where goals count; None while there is nothing to learn it from."""
    values, worst = goal_values(known, outcomes), outcomes.worst_values()
    if worst is not None:
        return scaled(np.vstack([values, worst]), worst)
    return learnt_scale(values, values, dimension) if known else None


def _attained(history: History, outcomes: Outcomes, scale: Scale) -> tuple[tuple[str, float], ...]:
    """Hypervolume after each batch, as a share of today's in percent."""
    if not 1 < len(outcomes.goals) <= _MOST_GOALS:
        return ()
    trials, at = complete(history, outcomes), np.zeros(len(outcomes.goals))
    values = scale(goal_values(trials, outcomes))
    whole = hypervolume(values, at)
    if whole <= 0.0:
        return ()
    ids = np.array([trial.id for trial in trials])
    return tuple(
        (_lot(batch), 100.0 * hypervolume(values[ids <= batch.ids[-1]], at) / whole)
        for batch in history.batches
    )


def _lot(batch: Batch) -> str:
    return batch.origin[:3] if batch.round is None else str(batch.round)


def front_headline(history: History, outcomes: Outcomes, found: TradeOff) -> str:
    """How the best, or the front, stands: one sentence."""
    if not history.told:
        return "Nothing has been told, so there is no front yet."
    if outcomes.only:
        leader = best_trial(history, outcomes)
        if leader is None or leader.value is None:
            return f"No result is known to keep {', '.join(found.limits) or 'what counts'} yet."
        keeping = f", which keeps {', '.join(found.limits)}" if found.limits else ""
        return f"Best {outcomes.only} {significant(leader.value)} (trial {leader.id}{keeping})."
    if not found.front:
        return f"No result is known to keep {', '.join(found.limits) or 'what counts'} yet."
    grown = ""
    if len(found.attained) > 1 and found.attained[-2][1] < 100.0:
        before = 100.0 - found.attained[-2][1]
        grown = f"; the last batch added {before:.2g} % to what it dominates"
    of = sum(not dot.excluded for dot in found.dots)
    return f"{len(found.front)} of {of} results are on the front{grown}."


def of_front(found: TradeOff) -> str:
    """The chart of the front in words."""
    better = ", ".join(
        f"{name} {'up' if sense == 'max' else 'down'}" for name, sense in found.goals
    )
    text = f"Better is {better}. {len(found.front)} of {len(found.dots)} results are on the front"
    broken = sum(not dot.kept for dot in found.dots)
    if found.limits:
        text += f"; {broken} break a limit ({', '.join(found.limits)}), or lack its value"
    return text + "."


def of_attained(found: TradeOff) -> str:
    """The chart of the hypervolume in words."""
    first, last = found.attained[0], found.attained[-1]
    text = (
        f"The hypervolume that the front dominates went from {first[1]:.3g} % of today's after "
        f"the first lot of points to {last[1]:.3g} %; it is counted from "
        f"{_in_words(found, found.worst)} on"
    )
    if not found.tail:
        return f"{text}, as `worst` says."
    return (
        f"{text}, which is learnt from the results, and what is worse than "
        f"{_in_words(found, found.tail)} counts a tenth. `worst` sets it, if you know it."
    )


def _in_words(found: TradeOff, values: tuple[float, ...]) -> str:
    pairs = zip(found.goals, values, strict=True)
    return ", ".join(f"{name} {significant(value)}" for (name, _), value in pairs)
