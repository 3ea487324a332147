"""When many results have outgrown their hyper-parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covey.gp.observations import first_and_group

if TYPE_CHECKING:
    from covey.gp.observations import Observations

_GROWTH = 0.1  # more results than so much of those that were fitted
_DRIFT = 0.25  # standard deviations that the fitted values have moved, root mean square


def outgrown(now: Observations, then: Observations) -> bool:
    """Whether hyper-parameters fitted ``then`` are to be fitted anew (our choice).

    They are in standardised units. So they stand while a tenth more results has come at most, and
    while these have not moved the units: a new extreme, another bend or an amended value shows in
    the standardised values of what was known then.
    """
    if now.looks > (1.0 + _GROWTH) * then.looks:
        return True
    both = np.vstack([_keys(now), _keys(then)])
    place = first_and_group(both)[1][len(now) :]
    if np.any(place >= len(now)):  # a standard error came to be known
        return True
    moved = now.values[place] - then.values
    return bool(np.sqrt(np.mean(np.square(moved))) > _DRIFT)


def _keys(data: Observations) -> np.ndarray:
    return np.column_stack([data.at, data.learnt])
