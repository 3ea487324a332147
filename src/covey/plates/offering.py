"""Which values of shared parameters are worth a try, and candidates at each of them.

Candidate sets come from above: ``where(values)`` is the set with these parameters held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import ExhaustedError, SpaceError, several
from covey.plates.choosing import BEST, upper_bounds
from covey.plates.spreading import FIRST, in_spread, settled
from covey.space import Space

if TYPE_CHECKING:
    from covey.arrays import Array, Indices
    from covey.candidates import Candidates, CandidateSet
    from covey.gp import Posterior, Posteriors

_LEVELS, _TRIED = 32, 8  # shared values looked at, and those of them that get candidates
_TOP, _SCREEN = 64, 256  # candidates whose shared values are looked at; that screen these
_ALL, _ALL_OF_DESIGN = 16_384, 4096  # candidates of all levels together, about

Where = Callable[[Mapping[str, Any]], "CandidateSet"]


def at_each_level(
    where: Where,
    levels: Sequence[Mapping[str, Any]],
    tried: int,
    most: int,
    posterior: Posterior | Posteriors | None,
    rng: np.random.Generator,
) -> Candidates:
    """Candidates at the first ``tried`` feasible ones of some values of the shared parameters.

    ``most`` is the number of points of a plate. Without a posterior candidates are for a design.
    """
    parts: list[Candidates] = []
    room = max(8 * most, (_ALL_OF_DESIGN if posterior is None else _ALL) // min(tried, len(levels)))
    for level in levels:
        if len(parts) == tried:
            break
        some = where(level)
        try:
            if posterior is None:
                made = some.scattered(1, rng)
            else:
                made = some.promising(1, posterior, rng)
        except ExhaustedError:  # a constraint forbids it
            if not parts and not _any(where({}), rng):
                break  # it forbids everything, so there is no need to try all levels
            continue
        parts.append(_worth(made, posterior, room, rng))
    if not parts:
        raise SpaceError(
            f"no value of {' and '.join(levels[0])}, which the layout shares, is feasible: the "
            f"constraints in `where` or what is fixed forbid all {several(len(levels), 'value')} "
            "that could be tried. Relax one of them, or do not share it."
        )
    return all_of(parts)


def _any(where: CandidateSet, rng: np.random.Generator) -> bool:
    """Whether a set has any candidate."""
    try:
        return len(where.scattered(1, rng)) > 0
    except ExhaustedError:
        return False


def all_of(parts: Sequence[Candidates]) -> Candidates:
    """All candidates of several sets, one after the other."""
    sizes = [len(part) for part in parts]
    ends = np.cumsum(sizes)

    def read(indices: Indices) -> list[dict[str, Any]]:
        of = np.searchsorted(ends, indices, side="right")
        found: list[dict[str, Any]] = [{}] * len(indices)
        for number in np.unique(of).tolist():
            mine = np.flatnonzero(of == number)
            points = parts[number].read(indices[mine] - (ends[number] - sizes[number]))
            for place, point in zip(mine.tolist(), points, strict=True):
                found[place] = point
        return found

    return replace(parts[0], at=np.vstack([part.at for part in parts]), read=read)


def levels_to_try(
    where: Where,
    space: Space,
    names: Sequence[str],
    posterior: Posterior | Posteriors | None,
    rng: np.random.Generator,
    seen: Array,
) -> tuple[list[dict[str, Any]], int]:
    """Values of what is shared, those to try first before others, and how many to try.

    They are in spread, given points (m, d) that are there, until enough values of each parameter
    are `settled`; then by what the best candidates at them may reach.
    """
    from scipy.stats import qmc

    shared = Space({name: space.parameters[name] for name in names})
    grid = shared.grid(_LEVELS)
    if grid is None:
        spots = qmc.Sobol(shared.width, scramble=True, rng=rng).random(2 * _TRIED)
        spread_out = _distinct(shared.snap(spots))
    else:
        spread_out = grid
    values = [spread_out[:, shared.columns_of(name)] for name in names]
    had = [seen[:, space.columns_of(name)] for name in names]
    if posterior is None or not settled(values, had):
        tried = len(spread_out) if posterior is None else FIRST
        return shared.decode(spread_out[in_spread(values, had, rng)]), tried
    if grid is not None and len(grid) <= _TRIED:
        return shared.decode(grid), _TRIED
    base = where({}).promising(1, posterior, rng).at
    order = np.argsort(-upper_bounds(posterior.belief(base)), kind="stable")
    columns = np.concatenate([np.arange(space.width)[space.columns_of(name)] for name in names])
    if grid is None:
        grid = _distinct(base[order[:_TOP]][:, columns])[:_LEVELS]
    screen = base[np.concatenate([order[:_SCREEN], rng.choice(order, _SCREEN)])]
    ranks = [_rank(space, screen, columns, level, posterior) for level in grid]
    return shared.decode(grid[np.argsort(-np.array(ranks), kind="stable")]), _TRIED


def _rank(
    space: Space, screen: Array, columns: Array, level: Array, posterior: Posterior | Posteriors
) -> float:
    """The mean of the highest upper bounds of some candidates, moved to a level."""
    at = screen.copy()
    at[:, columns] = level
    at = at[space.feasible(at)]
    if not len(at):
        return -np.inf
    return float(np.sort(upper_bounds(posterior.belief(at)))[-BEST:].mean())


def _distinct(rows: Array) -> Array:
    """The rows without repeats, in order."""
    _, first = np.unique(np.round(rows, 9), axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


def _worth(
    candidates: Candidates,
    posterior: Posterior | Posteriors | None,
    most: int,
    rng: np.random.Generator,
) -> Candidates:
    """At most so many of the candidates: half of them the best, half at random."""
    if len(candidates) <= most:
        return candidates
    keep = rng.permutation(len(candidates))
    if posterior is not None:
        scores = upper_bounds(posterior.belief(candidates.at))
        best = np.argsort(-scores, kind="stable")[: most // 2]
        keep = np.concatenate([best, keep[~np.isin(keep, best)]])
    return candidates.some(np.sort(keep[:most]))
