"""The two samplers that need no method."""

from __future__ import annotations

import numpy as np

from covey.dpp.sampler import Everything, Single


def test_single_draws_by_weight():
    sampler = Single(np.cumsum([0.0, 2.0, 0.0]))
    assert sampler.draw(np.random.default_rng(0)) == [1]
    assert (sampler.method, sampler.steps, sampler.error) == ("direct", 0, 0.0)


def test_everything_is_everything_and_uses_no_randomness():
    rng = np.random.default_rng(0)
    assert Everything(3).draw(rng) == [0, 1, 2]
    assert rng.random() == np.random.default_rng(0).random()
    assert (Everything(3).method, Everything(3).steps, Everything(3).error) == ("direct", 0, 0.0)
