"""Problems of the race: a space, an objective, its optimum and the noise of one look."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.race.functions import FUNCTIONS, MANY_INPUTS, Function
from covey import Integer, Pool, Real, Space
from covey.space import Choice

Points: TypeAlias = list[dict[str, Any]]


class Unsupported(Exception):  # noqa: N818 - a state, not a fault
    """An optimiser is not entered for this kind of problem."""


NOISES = {"": 0.0, "~1%": 0.01, "~10%": 0.1}
"""Suffix of a problem's name -> noise, as a share of the function's range."""


@dataclass(frozen=True)
class Problem:
    """Something to maximise; values are noise-free, ``noise`` is what one look adds."""

    name: str
    space: Space | Pool
    f: Callable[[Mapping[str, Any]], float]
    optimum: float
    range: float  # from the least of many random points to the optimum
    noise: float = 0.0

    def first_batch(self, batch: int, seed: int) -> Points:
        """The same random points for every optimiser: they depend on seed and batch alone."""
        rng = np.random.default_rng([seed, batch, self.space.width])
        if isinstance(self.space, Pool):
            rows = rng.choice(self.space.size, size=batch, replace=False)
            return [self.space.point(int(i)) for i in rows]
        return self.space.decode(self.space.snap(rng.random((batch, self.space.width))))


def _of_function(function: Function, point: Mapping[str, Any]) -> float:
    at = np.array([[point[f"x{i}"] for i in range(len(function.box))]])
    return float(function.f(at)[0])


def _continuous(name: str) -> Problem:
    function = {**FUNCTIONS, **MANY_INPUTS}[name]
    space = Space({f"x{i}": Real(low, high) for i, (low, high) in enumerate(function.box)})
    low, high = np.array(function.box).T
    many = low + np.random.default_rng(0).random((4096, len(low))) * (high - low)
    spread = function.optimum - float(function.f(many).min())
    return Problem(name, space, partial(_of_function, function), function.optimum, spread)


def _mixed_branin(point: Mapping[str, Any]) -> float:
    """Branin with a rounded second input and a category that tilts and shifts it."""
    tilt = {"a": 0.0, "b": 0.5, "c": -0.3}[point["kind"]]
    at = np.array([[point["x"], float(point["n"])]])
    return float(FUNCTIONS["branin2"].f(at)[0]) - 20.0 * abs(tilt) + tilt * point["x"]


def _mixed_hartmann(point: Mapping[str, Any]) -> float:
    """Hartmann-6 on four reals, an integer of eleven steps and an ordered choice."""
    at = [point[f"x{i}"] for i in range(4)]
    at += [point["n"] / 10.0, point["level"]]
    return float(FUNCTIONS["hartmann6"].f(np.array([at]))[0])


def _mixed() -> dict[str, Callable[[], Problem]]:
    branin = Space({"x": Real(-5.0, 10.0), "n": Integer(0, 15), "kind": Choice(["a", "b", "c"])})
    hartmann = Space(
        {
            **{f"x{i}": Real(0.0, 1.0) for i in range(4)},
            "n": Integer(0, 10),
            "level": Choice([0.05, 0.35, 0.65, 0.95], ordered=True),
        }
    )
    return {
        # Optima by multi-start search over the reals, for every setting of the rest.
        "mixed-branin3": lambda: Problem(
            "mixed-branin3", branin, _mixed_branin, -0.4323359532, 308.0
        ),
        "mixed-hartmann6": lambda: Problem(
            "mixed-hartmann6", hartmann, _mixed_hartmann, 3.3141948122, 3.32
        ),
    }


@dataclass(frozen=True)
class _Catalogue:
    """A measured pool: where it lies, what to maximise, and what to leave out."""

    path: str
    target: str
    sign: float = 1.0
    ignore: tuple[str, ...] = ()


CATALOGUES = {
    "pool-arylation": _Catalogue(
        "direct_arylation/experiment_index.csv", "yield", ignore=("entry",)
    ),
    "pool-barrel": _Catalogue("crossed_barrel/Crossed_barrel_dataset.csv", "toughness"),
    "pool-p3ht": _Catalogue("p3ht/P3HT_dataset.csv", "Conductivity (measured) (S/cm)"),
    "pool-oer": _Catalogue(
        "oer_plate_4098/plate_4098.csv", "Eta.V_ave", -1.0, ("", "sample_no", "plate_id")
    ),
}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _pool(name: str) -> Problem:
    catalogue = CATALOGUES[name]
    folder = Path(os.environ["COVEY_DATA"]) / "pools"
    with (folder / catalogue.path).open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file, skipinitialspace=True)
        rows = [{k.strip(): _number(v) for k, v in row.items()} for row in table]
    target = catalogue.target
    inputs = [k for k in rows[0] if k not in (target, *catalogue.ignore)]
    measured: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:  # replicates of one design are one candidate, with their mean
        value = catalogue.sign * float(row[target])
        measured.setdefault(tuple(row[k] for k in inputs), []).append(value)
    truth = {key: float(np.mean(values)) for key, values in measured.items()}
    pool = Pool([dict(zip(inputs, key, strict=True)) for key in truth])

    def look_up(point: Mapping[str, Any]) -> float:
        return truth[tuple(point[k] for k in inputs)]

    best, worst = max(truth.values()), min(truth.values())
    return Problem(name, pool, look_up, best, best - worst)


def names() -> Iterator[str]:
    """Every problem that can be had here; pools need the folder named in COVEY_DATA."""
    for name in (*FUNCTIONS, *_mixed()):
        yield from (f"{name}{suffix}" for suffix in NOISES)
    yield from MANY_INPUTS
    if "COVEY_DATA" in os.environ:
        yield from CATALOGUES


@cache
def problem(name: str) -> Problem:
    """A problem by name, such as "levy4" or "levy4~10%"."""
    base, mark, share = name.partition("~")
    mixed = _mixed()
    if base in CATALOGUES:
        made = _pool(base)
    else:
        made = mixed[base]() if base in mixed else _continuous(base)
    noise = NOISES[mark + share] * made.range
    return Problem(name, made.space, made.f, made.optimum, made.range, noise)
