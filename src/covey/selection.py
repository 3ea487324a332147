"""The protocols of a strategy, and `Selection`, the batch that it chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from covey.arrays import TIE, Array, Indices, Mask, close_to, first_largest, largest, to_numpy
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


# Sequential greedy choice: each pick is imagined as observed before the next.
#
# A score that only falls within a batch need not be updated for every candidate: an earlier score
# is an upper bound (Minoux 1978). So the best few thousand are scored after each pick, for as long
# as the best of them is above the bound of every other.

_LEAST, _PER_PICK = 8192, 16  # length of the short list: at least, and per pick (our choice)


def sequential_greedy(
    belief: Belief,
    first: int | Sequence[int],
    k: int,
    score: Callable[[Belief], Array],
    size: int | None = None,
) -> list[int]:
    """``first``, one or several; then, up to k, the largest scores given the picks before.

    ``score`` may use the belief's round, which counts observations here. It must not rise as the
    covariance falls or for an earlier round; if it may, ``size``, the length of the short list, has
    to be the number of candidates.

    Where the belief has a resolution, no pick is a copy of another, of a point under way or
    of a known one (``seen_at``), for as long as there are other candidates.
    """
    batch = [first] if isinstance(first, int) else list(first)
    size = max(_LEAST, _PER_PICK * k) if size is None else size
    while len(batch) < k:
        seen = belief.after_looking_at(batch)
        # Scores of the last round of the batch, where the width is largest, bound all others.
        bounds = np.array(score(replace(seen, round=belief.looks + k)))
        bounds[crowded(belief, batch)] = -np.inf
        if belief.resolution is not None and not (bounds > -np.inf).any():
            belief = laxer(belief)  # copies are all that is left
            continue
        listed = _best(bounds, size)
        some = seen if len(listed) == len(seen) else seen.on(listed)
        now = belief.looks + len(batch) + 1
        some = replace(some, round=now, shortlisted_from=belief.offered)
        rest = _Rest(bounds, listed)
        picks = _follow(some, bounds[listed] > -np.inf, rest, score, k - len(batch))
        batch += [int(listed[i]) for i in picks]
        if not picks:  # the bounds are loose: make the list longer
            size *= 2
    return batch


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


class _Rest:
    """The candidates that are not on the short list, of which only upper bounds are known."""

    def __init__(self, bounds: Array, listed: Indices) -> None:
        self._listed = listed
        self._bounds = bounds.copy()
        self._bounds[listed] = -np.inf
        self._most = float(self._bounds.max())

    def may_win(self, place: int, score: float) -> bool:
        """Whether one of them may beat the entry ``place`` of the list, which has this score.

        Scores that agree to a billionth are equal, and the candidate with the lowest index wins.
        """
        level = score - TIE * abs(score)
        if self._most < level:
            return False
        rivals = np.flatnonzero(self._bounds >= level)
        return self._most > score + TIE * abs(score) or bool(rivals[0] < self._listed[place])


def _follow(
    seen: Belief, free: Mask, rest: _Rest, score: Callable[[Belief], Array], most: int
) -> list[int]:
    """At most ``most`` successive picks from the list, while no other candidate may beat them."""
    picks: list[int] = []
    while len(picks) < most and free.any():
        scores = np.where(free, score(seen), -np.inf)
        i = first_largest(scores)
        if rest.may_win(i, float(scores[i])):
            break
        picks.append(i)
        free[i] = False
        free[seen.copies_of(seen.at[[i]])] = False
        seen = replace(seen.after_looking_at([i]), round=seen.round + 1)
    return picks


def _best(bounds: Array, size: int) -> Indices:
    """Indices of the ``size`` largest bounds, ascending; all of them if they are few."""
    if len(bounds) <= 2 * size:
        return np.arange(len(bounds))
    return np.sort(largest(bounds, size))


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
