"""Which of many results the hyper-parameters are learnt from."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, Indices

MANY = 1000  # distinct points; of more, so many are picked


def informative(at: Array, rng: np.random.Generator) -> Indices:
    """At most `MANY` of the points (n, d): pairs of neighbours, wherever there are points.

    Points are taken at random, each with the nearest that is left: as dense as the data, for the
    long reach of f, and close enough together for noise and for its short reach. Chosen without a
    look at the outcomes, so that the likelihood of what is left out is not bent (decision 12).
    """
    n = len(at)
    if n <= MANY:
        return np.arange(n)
    left = np.ones(n, dtype=bool)
    picks: list[int] = []
    for centre in rng.permutation(n).tolist():
        if not left[centre]:
            continue
        left[centre] = False
        distance = np.where(left, np.square(at - at[centre]).sum(axis=1), np.inf)
        picks += [centre, int(np.argmin(distance))]
        left[picks[-1]] = False
        if len(picks) >= MANY:
            break
    return np.sort(np.array(picks[:MANY]))
