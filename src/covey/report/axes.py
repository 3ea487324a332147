"""Axes: what each parameter of a space, or input of a pool, can be moved to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.space import Choice, Integer, Parameter, Pool, Space

_STEPS = 41  # values along a numeric axis
_OPTIONS = 200  # looked at of an axis with many more


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter: its ends and values in order if it is a number, else its options."""

    name: str
    values: tuple[Any, ...]
    ends: tuple[float, float] | None = None  # None for options
    log: bool = False
    size: int = 0  # number of options, looked at or not


def axes_of(space: Space | Pool) -> list[Axis]:
    """Every axis along which a point can be moved; one with a single value is none."""
    made = _of_pool(space) if isinstance(space, Pool) else _of_space(space)
    return [axis for axis in made if len(axis.values) > 1]


def _of_space(space: Space) -> Iterator[Axis]:
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Choice):
            options = tuple(parameter.options[:_OPTIONS])
            yield Axis(name, options, size=parameter.size)
        else:
            yield Axis(name, _along(parameter), parameter.span, parameter.log)


def _along(parameter: Parameter) -> tuple[Any, ...]:
    few = isinstance(parameter, Integer) and parameter.size <= _STEPS
    steps = parameter.levels() if few else np.linspace(0.0, 1.0, _STEPS)[:, None]  # type: ignore[union-attr]
    return tuple(dict.fromkeys(parameter.decode(steps)))


def _of_pool(pool: Pool) -> Iterator[Axis]:
    for name in pool.inputs:
        columns = pool.rows[:, pool.columns_of(name)]
        if isinstance(pool.point(0)[name], str | bool):
            rows = columns[:, :_OPTIONS].argmax(axis=0)
            options = tuple(pool.point(int(i))[name] for i in rows)
            yield Axis(name, options, size=columns.shape[1])
            continue
        _, where = np.unique(columns[:, 0], return_index=True)
        values = [pool.point(int(i))[name] for i in where[[0, -1]]]
        ends = float(values[0]), float(values[1])
        if len(where) <= _STEPS:
            values = [pool.point(int(i))[name] for i in where]
        else:
            values = np.linspace(*ends, _STEPS).tolist()
        yield Axis(name, tuple(values), ends)
