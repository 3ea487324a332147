"""Calibration: predicted against measured, and how many fell inside the bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from covey.errors import several
from covey.history import Trial
from covey.report.forecast import HALF, MOST, Forecast
from covey.report.hindsight import Hindsight
from covey.report.lots import Lot

_FEW = 10
_UNLIKELY = 0.025  # in either tail


@dataclass(frozen=True, slots=True)
class Pair:
    """One measurement beside what was expected of it; ``error`` in standard deviations."""

    id: int
    batch: int
    expected: Forecast
    measured: float
    error: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many measurements fell inside the band of this probability."""

    band: float
    inside: int
    of: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Every pair, the coverage of the two bands, and what it says."""

    pairs: tuple[Pair, ...]
    coverage: tuple[Coverage, ...]
    note: str


def calibrate(
    lots: Sequence[Lot], trials: Sequence[Trial], hindsight: Mapping[int, Hindsight]
) -> Calibration:
    """Compare what these lots were expected to give with what they gave."""
    pairs = tuple(
        Pair(i, lot.batch, hindsight[i].forecast, value, error_of(hindsight[i].forecast, value))
        for lot in lots
        for i in lot.ids
        if i in hindsight and lot.batch is not None and (value := trials[i].value) is not None
    )
    coverage = tuple(
        Coverage(band, sum(_inside(pair, band) for pair in pairs), len(pairs))
        for band in (HALF, MOST)
    )
    return Calibration(pairs, coverage, _note(coverage))


def error_of(expected: Forecast, measured: float) -> float:
    """Measured less expected, in standard deviations of the forecast.

    >>> error_of(Forecast(1.0, 0.5, (0.7, 1.3), (0.2, 1.8)), 2.0)
    2.0
    """
    return (measured - expected.mean) / max(expected.std, 1e-300)


def _inside(pair: Pair, band: float) -> bool:
    low, high = pair.expected.half if band == HALF else pair.expected.most
    return low <= pair.measured <= high


def _note(coverage: tuple[Coverage, ...]) -> str:
    n = coverage[0].of
    if n == 0:
        return "No result has come in yet that a model had predicted."
    if n < _FEW:
        return (
            f"Only {several(n, 'result')} so far: fewer than {_FEW} say little about the bands, "
            "whichever way they fall."
        )
    few = [c for c in coverage if at_most(c.inside, c.of, c.band) < _UNLIKELY]
    many = [c for c in coverage if at_most(c.of - c.inside, c.of, 1.0 - c.band) < _UNLIKELY]
    if few:
        return "Fewer than chance allows fell inside: the model was too sure of itself."
    if many:
        return "More than chance allows fell inside: the model was less sure than it could be."
    return "That is what chance allows: the bands can be believed as far as these results tell."


def at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) for a binomial of n tries.

    >>> round(at_most(1, 2, 0.5), 12)
    0.75
    """
    return math.fsum(
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * math.log(p)
            + (n - i) * math.log1p(-p)
        )
        for i in range(k + 1)
    )
