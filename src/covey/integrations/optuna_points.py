"""The points of a space that Optuna's trials are at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from covey import Choice, Space
from covey.space import Parameter

_OFF_GRID = 1e-8  # of a step: how far Optuna lets a value lie from its grid


def point_from_optuna(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a space that a trial's parameters are; others of its parameters are left out.

    >>> space = Space({"p": Choice([0.1, 0.2, 0.3, 0.4], ordered=True)})
    >>> point_from_optuna(space, {"p": 0.1 + 0.2, "q": 7})
    {'p': 0.3}

    Raises:
        SpaceError: one is missing, or outside the space.
    """
    return space.check(
        {name: _told(p, params[name]) for name, p in space.parameters.items() if name in params}
    )


def _told(parameter: Parameter, value: Any) -> Any:
    """A value of a trial as the parameter spells it; what it does not know stays as it is."""
    if not isinstance(parameter, Choice):
        return value
    options = parameter.options
    if _is_nan(value):  # a nan that was stored is another nan
        return next(filter(_is_nan, options), value)
    if parameter.numeric and isinstance(value, float) and math.isfinite(value):
        gap = (options[-1] - options[0]) / max(len(options) - 1, 1) or 1.0
        rank = round(min(max((value - options[0]) / gap, 0), len(options) - 1))
        if abs(options[rank] - value) < _OFF_GRID * gap:
            return options[rank]
    return value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
