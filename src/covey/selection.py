"""Selection: what a strategy chose, and what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.arrays import Array, Indices


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


def distinct_maxima(draws: Array) -> tuple[int, ...]:
    """The maximiser of each draw (k, n), passing over candidates an earlier draw has taken.

    >>> distinct_maxima(np.array([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]]))
    (1, 2)
    """
    taken: list[int] = []
    for draw in draws:
        values = draw.copy()
        values[taken] = -np.inf
        taken.append(int(np.argmax(values)))
    return tuple(taken)
