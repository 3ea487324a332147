"""The protocols of a strategy, and `Selection`, the batch that it chose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from covey.arrays import Array, Indices
from covey.belief import Belief
from covey.errors import StrategyError

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
    """

    indices: tuple[int, ...]
    width: float | None = None
    region: Indices | None = None
    sampler: str = ""
    error: float = 0.0


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
