"""Views of the search space around the best point: slices, edges and diversity.

A slice moves one parameter and holds the others, but for those that must make up for it, such as
the other parts of a mixture. An edge is an end of a range at which the best point sits; diversity
is how far the points of a batch are from each other and from earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from covey.arrays import Array, Mask
from covey.report.format import shown, significant
from covey.report.predictions import Forecast, forecasts
from covey.space import Pool, Space
from covey.space.flat import tied_to, with_one_changed

if TYPE_CHECKING:
    from covey.gp import Posterior
    from covey.history import Trial
    from covey.learn import Recipe


# The values that each parameter of a space, or input of a pool, can take.

_STEPS = 41  # values along a numeric axis
_OPTIONS = 200  # considered, of an axis with many more


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter: its values in order if it is a number, else its options."""

    name: str
    values: tuple[Any, ...]
    numeric: bool = False  # else options
    ends: tuple[float, float] | None = None  # of numbers on a line
    log: bool = False
    size: int = 0  # number of options, considered or not


def axes_of(space: Space | Pool) -> list[Axis]:
    """Every axis with more than one value."""
    made = _of_pool(space) if isinstance(space, Pool) else _of_space(space)
    return [axis for axis in made if len(axis.values) > 1]


def _of_space(space: Space) -> Iterator[Axis]:
    for name, parameter in space.parameters.items():
        if parameter.scale is None:
            yield Axis(name, tuple(parameter.examples(_OPTIONS)), size=parameter.size or 0)
        else:
            ends = parameter.span if parameter.numeric else None
            values = tuple(parameter.examples(_STEPS))
            yield Axis(name, values, True, ends, parameter.scale == "log")


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
            between = np.geomspace if name in pool.log else np.linspace
            values = between(*ends, _STEPS).tolist()
        yield Axis(name, tuple(values), True, ends, name in pool.log)


_MOST_SLICES = 6
_MOST_OPTIONS = 12


@dataclass(frozen=True, slots=True)
class Slice:
    """What is expected of f along one parameter.

    Attributes:
        name: of the parameter; what else its values bring along is at the middle of its range.
        numeric: whether ``at`` holds numbers; otherwise the texts of options.
        log: whether its axis is logarithmic.
        at: the values, in order.
        expected: forecasts of f, one for each.
        here: the value at the best point.
        spread: largest less smallest expected mean: the parameter's importance here.
        left_out: values not shown: constraints forbid them, or there are too many options.
        success: the probability of success at each value; empty while too few failed to say.
        tied: the parameters that make up for the change, such as the other parts of a mixture.
    """

    name: str
    numeric: bool
    log: bool
    at: tuple[float | str, ...]
    expected: tuple[Forecast, ...]
    here: float | str
    spread: float
    left_out: int
    success: tuple[float, ...] = ()
    tied: tuple[str, ...] = ()


def model_slices(
    posterior: Posterior, recipe: Recipe, point: Mapping[str, Any]
) -> tuple[Slice, ...]:
    """Slices through a point, those that move the mean most first; six at most (our choice)."""
    axes = [axis for axis in axes_of(recipe.space) if axis.name in point]
    found = [_slice(posterior, recipe, point, axis) for axis in axes]
    kept = [one for one in found if len(one.at) > 1]
    return tuple(sorted(kept, key=lambda one: -one.spread)[:_MOST_SLICES])


def _slice(posterior: Posterior, recipe: Recipe, point: Mapping[str, Any], axis: Axis) -> Slice:
    here = point[axis.name]
    values = list(axis.values)
    if axis.numeric:
        values = sorted({*values, here})
    elif shown(here) not in map(shown, values):  # options may not be comparable
        values.append(here)
    if isinstance(recipe.space, Space) and recipe.space.presence is not None:
        # What another option brings along is at its middle.
        at = recipe.space.placed([{**point, axis.name: value} for value in values])
        allowed = np.flatnonzero(recipe.space.feasible(at))
    elif isinstance(recipe.space, Space):
        at = with_one_changed(recipe.space, point, axis.name, values)
        allowed = np.flatnonzero(recipe.space.feasible(at))
    else:
        at = recipe.space.encode([{**point, axis.name: value} for value in values])
        allowed = np.arange(len(values))
    belief = posterior.belief(at[allowed])
    expected = forecasts(posterior, recipe, belief)
    chances = [None] * len(expected) if belief.weight is None else belief.weight.tolist()
    kept = list(zip([values[i] for i in allowed], expected, chances, strict=True))
    means = [one.mean for one in expected]
    spread = max(means, default=0.0) - min(means, default=0.0)
    if not axis.numeric:
        kept = _likely(kept, recipe.sign, here)
    return Slice(
        name=axis.name,
        numeric=axis.numeric,
        log=axis.log,
        at=tuple(float(value) if axis.numeric else shown(value) for value, _, _ in kept),
        expected=tuple(one for _, one, _ in kept),
        here=float(here) if axis.numeric else shown(here),
        spread=spread,
        left_out=max(axis.size, len(values)) - len(kept),
        success=tuple(p for _, _, p in kept if p is not None),
        tied=tied_to(recipe.space, axis.name),
    )


def _likely(
    options: list[tuple[Any, Forecast, float | None]], sign: float, here: Any
) -> list[tuple[Any, Forecast, float | None]]:
    """The option at the best point and the most promising others, in their own order."""
    ranked = sorted(
        range(len(options)),
        key=lambda i: (shown(options[i][0]) != shown(here), -sign * options[i][1].mean),
    )
    return [options[i] for i in sorted(ranked[:_MOST_OPTIONS])]


# Edges: numeric parameters whose best value sits at the end of its range.

_NEAR = 0.01  # of the range, as the model sees it (our choice)


@dataclass(frozen=True, slots=True)
class Edge:
    """The best point sits at an end of this parameter.

    ``others`` is how many of the ``of`` points of the batch shown sit there too.
    """

    name: str
    side: Literal["lower", "upper"]
    bound: float
    value: float
    others: int
    of: int
    words: str


def edges(
    space: Space | Pool, best: Mapping[str, Any], batch: Sequence[Mapping[str, Any]]
) -> tuple[Edge, ...]:
    """Every end at which the best point sits; an axis of two values has no ends."""
    found = []
    rows = space.encode([best, *batch])
    for axis in axes_of(space):
        if axis.ends is None or len(axis.values) <= 2 or axis.name not in best:
            continue
        low, high = axis.ends
        u = rows[:, space.columns_of(axis.name)][:, 0]
        x = np.array([float(point.get(axis.name, np.nan)) for point in (best, *batch)])
        for side, bound, at in (
            ("lower", low, (u <= _NEAR) | (x <= low)),
            ("upper", high, (u >= 1.0 - _NEAR) | (x >= high)),
        ):
            if at[0] and not _is_all_there_is(space, axis.name, bound):
                found.append(_edge(space, axis, side, bound, x[0], at[1:]))
    return tuple(found)


def _is_all_there_is(space: Space | Pool, name: str, bound: float) -> bool:
    """Whether a bound of a part is nothing, or the whole mixture: there is no wider one."""
    return any(name in m.names and not 0.0 < bound < m.total for m in space.mixtures)


def _edge(
    space: Space | Pool, axis: Axis, side: Any, bound: float, value: float, others: Mask
) -> Edge:
    pool = isinstance(space, Pool)
    beyond = value < bound if side == "lower" else value > bound
    where = "sits at" if value == bound else "lies beyond" if beyond else "is next to"
    end = (
        f"the {'smallest' if side == 'lower' else 'largest'} in the pool"
        if pool
        else f"its {side} bound"
    )
    ask = "add candidates beyond it?" if pool else "widen it?"
    words = f"{shown(axis.name)} {where} {end} {significant(bound)}: {ask}"
    return Edge(axis.name, side, bound, float(value), int(others.sum()), len(others), words)


# Diversity: how far the points of a batch are from each other and from earlier ones.


@dataclass(frozen=True, slots=True)
class Near:
    """Two trials and their distance in the unit cube."""

    distance: float
    id: int
    other: int


@dataclass(frozen=True, slots=True)
class Diversity:
    """Distances in the unit cube the model sees, each parameter from 0 to 1.

    Options are one-hot; where they have features, beside these.

    Attributes:
        points: of the batch that were or will be evaluated.
        width: dimension of the cube.
        pair: the nearest pair in the batch; None for fewer than two points.
        median: median distance of a point to its nearest neighbour in the batch.
        earlier: the point of the batch nearest to an earlier one; None if there is none.
        duplicates: points that repeat another one of the batch.
        repeats: points that repeat an earlier one.
        described: whether options have features, so that those alike are close.
    """

    points: int
    width: int
    pair: Near | None
    median: float | None
    earlier: Near | None
    duplicates: int
    repeats: int
    described: bool = False


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
    described = space.groups is not None
    return Diversity(len(batch), space.width, pair, median, earlier, duplicates, repeats, described)


def _encoded(space: Space | Pool, trials: list[Trial]) -> Array:
    """Coordinates (len(trials), width)."""
    points = [trial.point for trial in trials]
    return space.encode(points) if points else np.empty((0, space.width))


def _within(at: Array, ids: list[int]) -> tuple[Near | None, float | None]:
    from scipy.spatial import KDTree

    if len(at) < 2:
        return None, None
    distances, places = map(np.asarray, KDTree(at).query(at, k=2))
    # Of equal points either may come first, not always the query itself.
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
