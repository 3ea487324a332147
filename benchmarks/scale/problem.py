"""What is asked about: a pool of n rows in the unit cube, and results from elsewhere in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey import Pool, Study
from covey.arrays import Array

DIMENSION, RESULTS = 6, 500


def smooth(x: Array) -> Array:
    """One hill: after 500 looks few rows may still be the best."""
    return -np.square(x - 0.4).sum(axis=1)


def rough(x: Array) -> Array:
    """Waves shorter than the looks lie apart: any row may still be the best."""
    turns = np.random.default_rng(5).normal(0.0, 12.0, (64, x.shape[1]))
    return np.cos(x @ turns.T + np.arange(64.0)).sum(axis=1) / 8.0


OBJECTIVES: dict[str, Callable[[Array], Array]] = {"smooth": smooth, "rough": rough}


def rows(n: int) -> Array:
    """The pool."""
    return np.random.default_rng(1).random((n, DIMENSION))


def looks(objective: str, count: int = RESULTS) -> tuple[Array, Array]:
    """Where it was looked, outside the pool, and what was seen, with a little noise."""
    rng = np.random.default_rng(2)
    x = rng.random((count, DIMENSION))
    values = OBJECTIVES[objective](x)
    return x, values + 0.01 * values.std() * rng.standard_normal(count)


def study(n: int, objective: str, **options: str) -> Study:
    """A study over the pool that knows the results."""
    x, values = looks(objective)
    made = Study(Pool(rows(n)), seed=0, **options)  # type: ignore[arg-type]
    made.add([{f"x{j}": float(v) for j, v in enumerate(row)} for row in x], values)
    return made
