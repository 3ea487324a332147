"""Slices: one parameter moved, the others held at the best point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.report.axes import Axis, axes_of
from covey.report.forecast import Forecast, forecasts
from covey.report.words import shown
from covey.space import Space

if TYPE_CHECKING:
    from covey.gp import Posterior
    from covey.header import Recipe

_MOST_SLICES = 6
_MOST_OPTIONS = 12


@dataclass(frozen=True, slots=True)
class Slice:
    """What is expected of f along one parameter.

    Attributes:
        name: of the parameter.
        numeric: whether ``at`` holds numbers; otherwise the texts of options.
        log: whether its axis is logarithmic.
        at: the values, in order.
        expected: forecasts of f, one for each.
        here: the value at the best point.
        spread: largest less smallest expected mean: the parameter's importance here.
        left_out: values not shown: constraints forbid them, or there are too many options.
    """

    name: str
    numeric: bool
    log: bool
    at: tuple[float | str, ...]
    expected: tuple[Forecast, ...]
    here: float | str
    spread: float
    left_out: int


def slices(posterior: Posterior, recipe: Recipe, point: Mapping[str, Any]) -> tuple[Slice, ...]:
    """Slices through a point, those that move the mean most first; six at most (our choice)."""
    found = [_slice(posterior, recipe, point, axis) for axis in axes_of(recipe.space)]
    kept = [one for one in found if len(one.at) > 1]
    return tuple(sorted(kept, key=lambda one: -one.spread)[:_MOST_SLICES])


def _slice(posterior: Posterior, recipe: Recipe, point: Mapping[str, Any], axis: Axis) -> Slice:
    here = point[axis.name]
    values = list(axis.values)
    if axis.ends is not None:
        values = sorted({*values, here})
    elif shown(here) not in map(shown, values):  # options may not like to be compared
        values.append(here)
    at = recipe.space.encode([{**point, axis.name: value} for value in values])
    allowed = np.arange(len(values))
    if isinstance(recipe.space, Space):
        allowed = np.flatnonzero(recipe.space.feasible(at))
    expected = forecasts(posterior, recipe, posterior.belief(at[allowed]))
    kept = [(values[i], one) for i, one in zip(allowed.tolist(), expected, strict=True)]
    means = [one.mean for one in expected]
    spread = max(means, default=0.0) - min(means, default=0.0)
    if axis.ends is None:
        kept = _likely(kept, recipe.sign, here)
    numeric = axis.ends is not None
    return Slice(
        name=axis.name,
        numeric=numeric,
        log=axis.log,
        at=tuple(float(value) if numeric else shown(value) for value, _ in kept),
        expected=tuple(one for _, one in kept),
        here=float(here) if numeric else shown(here),
        spread=spread,
        left_out=max(axis.size, len(values)) - len(kept),
    )


def _likely(
    options: list[tuple[Any, Forecast]], sign: float, here: Any
) -> list[tuple[Any, Forecast]]:
    """The option at the best point and the most promising others, in their own order."""
    ranked = sorted(
        range(len(options)),
        key=lambda i: (shown(options[i][0]) != shown(here), -sign * options[i][1].mean),
    )
    return [options[i] for i in sorted(ranked[:_MOST_OPTIONS])]
