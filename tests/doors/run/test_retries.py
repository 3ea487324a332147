from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import StrategyError
from covey.run.task import Retries


def test_the_default_forgives_machines_only():
    retries = Retries()
    assert [retries.left("lost", used) for used in range(5)] == [True] * 3 + [False] * 2
    assert not retries.left("failed", 0)
    assert not retries.left("timed-out", 0)
    assert not retries.left("succeeded", 0)
    assert Retries(timed_out=1).left("timed-out", 0)


@given(st.integers(0, 2000), st.floats(0.0, 1e6), st.integers(0, 100))
def test_delays_grow_stay_small_and_can_be_repeated(used, wait, seed):
    delays = [Retries(wait=wait).delay(used, np.random.default_rng(seed)) for _ in range(2)]
    assert delays[0] == delays[1]
    longest = min(60.0, wait * 2.0 ** min(used, 32))
    assert longest / 2 <= delays[0] <= longest


def test_those_that_died_together_do_not_come_back_together():
    delays = [Retries().delay(0, np.random.default_rng([0, id])) for id in range(50)]
    assert len({round(delay, 3) for delay in delays}) > 25


@pytest.mark.parametrize("wrong", [{"lost": -1}, {"failed": 1.5}, {"timed_out": True}])
def test_bad_numbers_are_named(wrong):
    with pytest.raises(StrategyError, match=r"retries: .*got"):
        Retries(**wrong)


@pytest.mark.parametrize("wait", [-1.0, float("nan"), "1"])
def test_bad_waits_are_named(wait):
    with pytest.raises(StrategyError, match="retries: wait"):
        Retries(wait=wait)
