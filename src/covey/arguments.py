"""What users pass to a study, made plain."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from covey.errors import HistoryError, StrategyError
from covey.history import Trial

Trials = Trial | int | Sequence[Trial | int]


def checked_seed(seed: int | None) -> int:
    """A seed, drawn if none is given."""
    if seed is None:
        return secrets.randbits(32)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise StrategyError(f"seed must be a whole number >= 0, or None; got {seed!r}.")
    return int(seed)


def several(values: Any, what: str) -> tuple[Any, ...]:
    """A sequence, as the user gave it."""
    if np.ndim(values) == 0:
        raise HistoryError(f"several trials need a sequence of {what}; got {values!r}.")
    return tuple(values)


def each(sem: Any, count: int) -> tuple[Any, ...]:
    """Standard errors for ``count`` values; one number stands for all."""
    if sem is None:
        return ()
    return (sem,) * count if np.ndim(sem) == 0 else tuple(sem)


def ids_of(trials: Trials) -> tuple[int, ...]:
    """Ids of trials, of their ids, or of one of either."""
    if isinstance(trials, Trial | int | np.integer):
        trials = (trials,)
    return tuple(trial.id if isinstance(trial, Trial) else trial for trial in trials)
