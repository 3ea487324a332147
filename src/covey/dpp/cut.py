"""Chains that are cut short, where a draw would take too long."""

from __future__ import annotations

import time

import numpy as np

from covey.dpp.sampler import Sampler
from covey.dpp.swap import Swap
from covey.dpp.walk import Walk

# The pace is found by so many steps, and by more where they take less than so many seconds.
_REHEARSAL, _MOMENT = 64, 0.01


def hurried(sampler: Sampler, seconds: float) -> Sampler:
    """The same sampler, if a draw takes about so long; else with a shorter chain.

    Its ``error`` then says what is left. The pace is found in a rehearsal with random numbers of
    its own: how many steps are taken depends on the clock, and on nothing that is drawn.
    """
    if not isinstance(sampler, Walk | Swap) or sampler.steps <= _REHEARSAL:
        return sampler
    began, tried, pace = time.perf_counter(), _REHEARSAL, 0.0
    while pace == 0.0:
        start = time.perf_counter()
        sampler.cut(tried).draw(np.random.default_rng(0))
        spent = time.perf_counter() - start
        if spent >= _MOMENT or 8 * tried > sampler.steps:
            pace = tried / spent
        tried *= 8
    steps = int(pace * (seconds - (time.perf_counter() - began)))
    return sampler if steps >= sampler.steps else sampler.cut(max(_REHEARSAL, steps))
