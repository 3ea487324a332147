"""The protocols of a strategy, and `Selection`, the batch that it chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from covey.arrays import Array, Indices, Mask, close_to, first_largest, largest, to_numpy
from covey.belief import Belief
from covey.errors import StrategyError, brief, several

_SHOWN = 12  # indices in a message


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Indices of k distinct candidates in order of choice, with details for the diagnostics.

    Attributes:
        indices: positions in the belief.
        width: the policy's confidence width √β (None: the strategy has no policy).
        region: the candidates the rest of the batch was chosen from (None: no region).
        sampler: which DPP method drew it, such as "spectral" or "walk, 116 steps" ("" if none).
        error: bound on the total variation of that draw.
        reasons: why each point is in the batch, in words (empty: the strategy does not say).
    """

    indices: tuple[int, ...]
    width: float | None = None
    region: Indices | None = None
    sampler: str = ""
    error: float = 0.0
    reasons: tuple[str, ...] = ()


def distinct_maxima(draws: Iterable[Array]) -> tuple[int, ...]:
    """The maximiser of each draw (n,), among the candidates that no earlier draw has chosen.

    >>> distinct_maxima(np.array([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]]))
    (1, 2)
    """
    chosen: list[int] = []
    for draw in draws:
        values = draw.copy()
        values[chosen] = -np.inf
        chosen.append(int(np.argmax(values)))
    return tuple(chosen)


def checked_selection(chosen: Selection | Sequence[int], k: int, n: int) -> Selection:
    """The selection that a strategy returned, if it is k distinct candidates of n; else an error.

    A strategy of one's own may return plain indices.
    """
    wanted = f"a strategy must choose {k} distinct indices from 0 to {n - 1}"
    if not isinstance(chosen, Selection):
        given = tuple(chosen)
        odd = [i for i in given if not float(i).is_integer()]
        if odd:
            raise StrategyError(
                f"{wanted}, which are whole numbers; it returned {float(odd[0])!r} among "
                f"{len(given)} values. Scores become indices by np.argsort(-scores)[:k]."
            )
        chosen = Selection(tuple(int(i) for i in given))
    found = chosen.indices
    if len(found) != k or len(set(found)) != k or min(found) < 0 or max(found) >= n:
        shown = ", ".join(map(str, found[:_SHOWN])) + (", ..." if len(found) > _SHOWN else "")
        raise StrategyError(f"{wanted}; it chose {len(found)}: ({shown}).")
    reasons = chosen.reasons
    if reasons and (len(reasons) != k or not all(isinstance(why, str) for why in reasons)):
        raise StrategyError(
            f"the reasons of a batch are {several(k, 'text')}, one for each point, or (); got "
            f"{len(reasons)}: {brief(repr(reasons), 80)}."
        )
    return chosen


@runtime_checkable
class Strategy(Protocol):
    """Chooses k distinct candidates of a belief."""

    @property
    def needs_model(self) -> bool:
        """Whether it uses more than the coordinates of the candidates."""
        ...

    def choose(
        self, belief: Belief, k: int, rng: np.random.Generator, /
    ) -> Selection | Sequence[int]:
        """k distinct indices; a pure function of its arguments."""
        ...


@runtime_checkable
class Waits(Protocol):
    """A strategy that wants more than one result before it trusts a model."""

    def ready(self, values: Array, width: int, /) -> bool:
        """Whether the results (n,) are enough, for points with ``width`` encoded inputs."""
        ...


@runtime_checkable
class TimeLimited(Protocol):
    """A strategy that can work within a time limit, at a loss of accuracy that it reports."""

    def within(self, seconds: float, /) -> Strategy:
        """This strategy, limited to about so many seconds."""
        ...


# Sequential greedy choice: each pick is imagined as observed before the next. In a large pool only
# the best candidates take part, those with the largest scores before any pick.

_LISTED = 65_536  # candidates that take part, at most (our choice)
_LEAST = 8192  # ... if their rows of V take more than a quarter of the memory, fewer, to so many


def sequential_greedy(
    belief: Belief, first: int, k: int, score: Callable[[Belief], Array]
) -> list[int]:
    """``first``; then, up to k, the largest scores given the picks before.

    ``score`` may use the belief's round, which counts observations here, and the number of
    candidates ``offered``. A candidate's score must not depend on which others are left.

    Where the belief has a resolution, no pick is a copy of another, of a point under way
    or of a known one (``seen_at``), for as long as there are other candidates.
    """
    batch = [first]
    while len(batch) < k:
        now = replace(belief, round=belief.looks + len(batch) + 1)
        free = ~crowded(belief, batch)
        if not free.any():
            belief = laxer(belief)  # copies are all that is left
            continue
        listed, seen = _shortlisted(now, batch, free, k, score)
        free = free[listed]
        while len(batch) < k and free.any():
            i = first_largest(np.where(free, score(seen), -np.inf))
            batch.append(int(listed[i]))
            free[i] = False
            free[seen.copies_of(seen.at[[i]])] = False
            seen = replace(seen.after_looking_at([i]), round=seen.round + 1)
    return batch


def _shortlisted(
    belief: Belief, batch: Sequence[int], free: Mask, k: int, score: Callable[[Belief], Array]
) -> tuple[Indices, Belief]:
    """The free candidates with the best scores, and the batch, ascending; the belief about them.

    It is the belief after the batch has been looked at.
    """
    most = _list_length(belief, k)
    if len(belief) <= most:
        return np.arange(len(belief)), belief.after_looking_at(batch) if batch else belief
    best = largest(np.where(free, score(belief), -np.inf), most)
    listed = np.union1d(best, np.asarray(batch, dtype=np.intp))
    some = replace(belief.on(listed), shortlisted_from=belief.offered)
    return listed, some.after_looking_at(np.searchsorted(listed, batch)) if batch else some


def _list_length(belief: Belief, k: int) -> int:
    """The number of candidates that take part in a choice of k."""
    explained = belief.parts[0].explained
    rows = max(k, sum(len(layer) for layer in explained.layers))
    return int(np.clip(explained.room // (8 * rows), _LEAST, _LISTED))


def crowded(belief: Belief, batch: Sequence[int]) -> Mask:
    """Candidates in the batch, and copies of one in it, of a point under way or of a known one."""
    taken = belief.copies_of(belief.at[list(batch)])
    for points in (belief.under_way, belief.seen_at):
        if points is not None:
            taken |= belief.copies_of(points)
    taken[list(batch)] = True
    return taken


def is_copy(belief: Belief, one: int, others: Sequence[int]) -> bool:
    """Whether a candidate lies within the resolution of one of these others."""
    if belief.resolution is None or not others:
        return False
    at = to_numpy(belief.at[[one, *others]])
    return bool(close_to(at[1:], at[:1], belief.resolution).any())


def laxer(belief: Belief) -> Belief:
    """The belief with one more kind of copies allowed, for when nothing else is left.

    Of known points first, then of points under way, then of any.
    """
    if belief.seen_at is not None:
        return replace(belief, seen_at=None)
    if belief.under_way is not None:
        return replace(belief, under_way=None)
    return replace(belief, resolution=None)


def enough_results(values: Array, width: int, design: int) -> bool:
    """Whether results (n,) are ``design``, or two for each encoded input, and not all equal.

    From one or two results, or from equal ones, a fit reads "flat": it would sit in corners.
    """
    if design <= 1:
        return True
    return len(values) >= min(design, 2 * width) and not _all_equal(values)


def _all_equal(values: Array) -> bool:
    """Whether the results (n,) differ by no more than rounding."""
    most = float(np.abs(values).max())
    return most == 0.0 or float(np.ptp(values / most)) <= 1e-12
