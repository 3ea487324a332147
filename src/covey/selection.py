"""Selection: what a strategy chose, and what there is to say about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from covey.arrays import Array, Indices
from covey.errors import StrategyError

_SHOWN = 12  # indices in a message


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Indices of k distinct candidates in order of choice, with the strategy's own account.

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
    """The maximiser of each draw (n,), passing over candidates an earlier draw has taken.

    >>> distinct_maxima(np.array([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]]))
    (1, 2)
    """
    taken: list[int] = []
    for draw in draws:
        values = draw.copy()
        values[taken] = -np.inf
        taken.append(int(np.argmax(values)))
    return tuple(taken)


def checked_selection(chosen: Selection | Sequence[int], k: int, n: int) -> Selection:
    """What a strategy returned, if it is k distinct candidates of n.

    A strategy of one's own may return the plain indices.
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
