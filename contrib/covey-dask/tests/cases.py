"""Posteriors and rows to deal out, and a cluster that is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from covey.arrays import Array, Indices
from covey.gp import Model, Posterior, condition, observe
from covey.kernels import Matern52


class Done:
    """A future that has come."""

    status = "finished"

    def __init__(self, value: Any) -> None:
        self.value = value


class Plain:
    """What is used of a Dask client, without Dask: everything is done here and at once."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = [f"worker-{i}" for i in range(workers)]
        self.tasks: list[str] = []
        self.sent: list[dict[str, Any]] = []

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def scatter(self, thing: Any, **options: Any) -> Done:
        self.sent.append(options)
        return Done(thing)

    def submit(self, task: Callable[..., Any], *args: Any, key: str, pure: bool) -> Done:
        assert not pure
        self.tasks.append(key.split("-")[1])
        return Done(task(*(one.value if isinstance(one, Done) else one for one in args)))

    def gather(self, futures: list[Done]) -> list[Any]:
        return [future.value for future in futures]


def posterior_of(
    members: int = 1, d: int = 3, m: int = 12, noise: float = 0.02, pending: int = 1
) -> Posterior:
    rng = np.random.default_rng(7)
    x = rng.random((m, d))
    y = np.sin(5.0 * x[:, 0]) + 0.1 * rng.standard_normal(m)
    data = observe(x, y, np.full(m, np.nan))
    models = [
        Model(Matern52(tuple(rng.uniform(0.3, 0.6, d)), 1.0), noise * (1 + i))
        for i in range(members)
    ]
    return condition(models, data, rng.random((pending, d)))


def uniform(n: int, d: int = 3, seed: int = 1) -> Array:
    return np.random.default_rng(seed).random((n, d))


def clumped(n: int, d: int = 3, seed: int = 1) -> Array:
    """Nearly all rows in one corner, a few anywhere."""
    rng = np.random.default_rng(seed)
    at = 0.5 + 0.01 * rng.standard_normal((n, d))
    at[: n // 50] = rng.random((n // 50, d))
    return at[rng.permutation(n)]


def split(at: Array, parts: int, how: str) -> list[Indices]:
    """At random, or sorted by a coordinate."""
    order = np.random.default_rng(3).permutation(len(at)) if how == "random" else at[:, 0].argsort()
    return [np.sort(part) for part in np.array_split(order, parts)]
