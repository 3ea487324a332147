r"""Learning curves: what trials that were stopped early would have come to at their end.

A stopped trial is told the value that it had. Beside values of trainings that came to their end
that is too little: it mixes how good a point is with how long it was trained, and it makes what
learns slowly look bad. `expected_ends` adds what others gained from that step on. It is a function
of the log alone, and says something better as more trainings end.

Of the trainings that have values y at step s and y' at a later one t, with means m and m',

.. math:: y' \approx m' + b\,(y - m), \qquad
          b = \frac{\sum (y_i - m)(y_i' - m') + S}{\sum (y_i - m)^2 + S}

where S is the variance of the values of all that came to step s: least squares with a ridge that
draws b to 1 (the gain is the same for all), with the weight of one training. b is at least 0, so
that who was ahead stays ahead.

Few of those that were left to run came to their end, and many to the steps in between at which
others were stopped. So t is the last of these steps to which enough of those at s came, and the
line from there on is learnt from those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from covey.arrays import Array
from covey.history import History, Reported

_ENOUGH = 5  # trainings that a line is drawn through; fewer if there are not so many (our choice)
_RIDGE = 1.0  # trainings that the prior slope of 1 counts as


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of a training at steps that grow, and the one at its end if it came there."""

    steps: tuple[float, ...]
    values: tuple[float, ...]
    end: float = math.nan

    def at(self, knots: Array) -> Array:
        """Values at the steps ``knots`` (k,), between reports on lines; nan beyond the last.

        One that came to its end keeps its value from there on, and has it at step infinity.

        >>> Curve((1.0, 3.0), (0.0, 4.0), 5.0).at(np.array([0.0, 2.0, 4.0, math.inf]))
        array([nan,  2.,  5.,  5.])
        """
        inside = np.interp(knots, self.steps, self.values, left=np.nan)
        return np.where(knots > self.steps[-1], self.end, inside)


def expected_ends(history: History, sign: float) -> dict[int, float]:
    """The trials that were stopped early, each with the value expected at its end.

    None is expected to be better than the best that came to its end, or than it was itself.

    Args:
        history: trials that count, with their reports; those of excluded ones are left out.
        sign: 1 if more is better, -1 if less is.
    """
    stopped = history.stopped
    if not stopped:
        return {}
    curves = _curves(history, stopped)
    stops = {id: step for id, step in stopped.items() if id in curves}
    knots = np.array([*sorted(set(stops.values())), math.inf])
    table = np.array([curve.at(knots) for curve in curves.values()])
    reached = table[~np.isnan(table[:, -1]), -1]
    most = float((sign * reached).max()) if len(reached) else math.inf
    lines = [_line(table, k) for k in range(len(knots) - 1)]
    found = {}
    for id, step in stops.items():
        value, k = curves[id].values[-1], int(np.searchsorted(knots, step))
        at_least = sign * value
        while k < len(lines) and (line := lines[k]) is not None:
            value, k = line(value), line.until
        found[id] = sign * min(sign * value, max(most, at_least))
    return found


def _curves(history: History, stopped: Mapping[int, int]) -> dict[int, Curve]:
    """The curve of the last attempt of every trial that reported something and is not excluded."""
    reports: dict[int, list[Reported]] = {}
    for event in history.events:
        if isinstance(event, Reported):
            own = reports.setdefault(event.id, [])
            if own and own[-1].attempt != event.attempt:
                own.clear()
            own.append(event)
    found = {}
    for id, own in reports.items():
        trial = history.trial(id)
        ended = trial.status == "told" and id not in stopped and trial.value is not None
        if not trial.excluded:
            steps, values = tuple(float(r.step) for r in own), tuple(r.value for r in own)
            found[id] = Curve(steps, values, trial.value if ended else math.nan)  # type: ignore[arg-type]
    return found


@dataclass(frozen=True, slots=True)
class _Line:
    """From the value at one knot to the one at knot ``until``: y + shift + (b - 1)(y - middle)."""

    until: int
    middle: float
    shift: float
    slope: float

    def __call__(self, value: float) -> float:
        return value + self.shift + (self.slope - 1.0) * (value - self.middle)


def _line(table: Array, k: int) -> _Line | None:
    """The line from knot k of curves (n, knots) on; None if no curve goes on from there."""
    here = table[~np.isnan(table[:, k])]
    counts = (~np.isnan(here[:, k + 1 :])).sum(axis=0)
    if not counts.any():
        return None
    enough = np.flatnonzero(counts >= min(_ENOUGH, int(counts.max())))
    until = k + 1 + int(enough[-1])
    both = here[~np.isnan(here[:, until])]
    y, later = both[:, k], both[:, until]
    off, ridge = y - y.mean(), _RIDGE * float(here[:, k].var())
    weight = float(off @ off) + ridge
    slope = (float(off @ (later - later.mean())) + ridge) / weight if weight > 0.0 else 1.0
    return _Line(until, float(y.mean()), float((later - y).mean()), max(0.0, slope))
