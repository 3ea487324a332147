"""Diversity: how far the points of a batch are from each other and from earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.space import Pool, Space


@dataclass(frozen=True, slots=True)
class Near:
    """Two trials and their distance in the unit cube."""

    distance: float
    id: int
    other: int


@dataclass(frozen=True, slots=True)
class Diversity:
    """Distances in the unit cube the model sees, each parameter from 0 to 1 (options one-hot).

    Attributes:
        points: of the batch that were or will be looked at.
        width: dimension of the cube.
        pair: the nearest pair in the batch; None for fewer than two points.
        median: median distance of a point to its nearest neighbour in the batch.
        earlier: the point of the batch nearest to an earlier one; None if there is none.
        duplicates: points that repeat another one of the batch.
        repeats: points that repeat an earlier one.
    """

    points: int
    width: int
    pair: Near | None
    median: float | None
    earlier: Near | None
    duplicates: int
    repeats: int


def diversity(space: Space | Pool, trials: Sequence[Trial], ids: Sequence[int]) -> Diversity:
    """Nearest neighbours by a k-d tree; about n log n in few dimensions, n² at worst."""
    live = [t for t in trials if t.status not in ("cancelled", "lost")]
    wanted = set(ids)
    batch = [t for t in live if t.id in wanted]
    last = max(wanted, default=-1)
    before = [t for t in live if t.id not in wanted and t.id < last]
    at, then = _encoded(space, batch), _encoded(space, before)
    pair, median = _within(at, [t.id for t in batch])
    earlier, repeats = _between(at, then, [t.id for t in batch], [t.id for t in before])
    duplicates = len(at) - len(np.unique(at, axis=0)) if len(at) else 0
    return Diversity(len(batch), space.width, pair, median, earlier, duplicates, repeats)


def _encoded(space: Space | Pool, trials: list[Trial]) -> Array:
    points = [trial.point for trial in trials]
    return space.encode(points) if points else np.empty((0, space.width))


def _within(at: Array, ids: list[int]) -> tuple[Near | None, float | None]:
    from scipy.spatial import KDTree

    if len(at) < 2:
        return None, None
    distances, places = map(np.asarray, KDTree(at).query(at, k=2))
    # Of equal points either may come first, and not always the one that asks.
    own = places[:, 0] == np.arange(len(at))
    other = np.where(own, places[:, 1], places[:, 0])
    nearest = np.where(own, distances[:, 1], distances[:, 0])
    i = int(np.argmin(nearest))
    first, second = sorted((ids[i], ids[int(other[i])]))
    return Near(float(nearest[i]), first, second), float(np.median(nearest))


def _between(at: Array, then: Array, ids: list[int], before: list[int]) -> tuple[Near | None, int]:
    from scipy.spatial import KDTree

    if not len(at) or not len(then):
        return None, 0
    distances, places = map(np.asarray, KDTree(then).query(at, k=1))
    i = int(np.argmin(distances))
    near = Near(float(distances[i]), ids[i], before[int(places[i])])
    return near, int(np.count_nonzero(distances == 0.0))
