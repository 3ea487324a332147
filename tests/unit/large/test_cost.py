from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from covey import GP, Pool, Real, Space, Study
from covey.large import budget
from covey.large.budget import Cost, Size, affordable, estimate, second_per_term
from covey.space import Choice


def test_more_of_anything_costs_more():
    base = estimate(Size(100_000, 400, 10), 2**40)
    for more in (Size(200_000, 400, 10), Size(100_000, 800, 10), Size(100_000, 400, 10, 10)):
        cost = estimate(more, 2**40)
        assert cost.seconds > 1.2 * base.seconds
        assert cost.bytes > base.bytes


def test_memory_is_bounded_by_what_is_allowed():
    small = estimate(Size(1_000_000, 500, 10), 2**28)
    large = estimate(Size(1_000_000, 500, 10), 2**34)
    assert small.bytes < 2**28
    assert large.bytes == pytest.approx(8.0 * 500 * 1_000_000, rel=0.1)


def test_time_grows_with_the_pool_as_the_pool_does():
    none, ten, hundred = (estimate(Size(n, 500, 10), 2**31).seconds for n in (0, 10**6, 10**7))
    assert hundred - none == pytest.approx(10.0 * (ten - none), rel=0.01)


def test_more_time_affords_more_and_more_work_less():
    rows = affordable(Size(1, 500, 10), 30.0)
    assert affordable(Size(1, 500, 10), 60.0) == pytest.approx(2 * rows, abs=1)
    for more in (Size(1, 1000, 10), Size(1, 500, 400), Size(1, 500, 10, 10)):
        assert 0 < affordable(more, 30.0) < rows / 1.2


def test_an_estimate_knows_how_fast_the_machine_is_and_measures_it_once(monkeypatch):
    second_per_term.cache_clear()
    clock = count()
    monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    one = estimate(Size(10**6, 500, 10), 2**40).seconds
    looks = next(clock)
    assert estimate(Size(10**6, 500, 10), 2**40).seconds == one
    assert next(clock) == looks + 1  # nobody has looked at the clock again
    second_per_term.cache_clear()
    slow = count(step=3)
    monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=lambda: next(slow)))
    assert estimate(Size(10**6, 500, 10), 2**40).seconds == pytest.approx(3.0 * one)
    monkeypatch.undo()
    second_per_term.cache_clear()


def test_on_a_device_the_pass_is_left_out():
    pytest.importorskip("torch", reason="install torch to test tensors")
    pool = Pool(np.random.default_rng(0).random((50_000, 2)))
    host, device = Study(pool, seed=0), Study(pool, seed=0, precision="float32")
    for study in (host, device):
        study.add([pool.point(i) for i in range(200)], np.arange(200.0))
    assert device.cost(5).seconds < host.cost(5).seconds


@pytest.mark.parametrize("strategy", ["auto", "random"])
def test_many_options_cost_time_and_memory(strategy):
    """Choosing among 4000 options was seen to take 2 to 6 s and 0.8 GiB."""
    cost = {
        n: Study(Space({"c": Choice(range(n)), "x": Real(0, 1)}), strategy=strategy).cost(4)
        for n in (4, 4000)
    }
    assert cost[4].seconds < 0.2
    assert 0.7 < cost[4000].seconds < 30.0
    assert cost[4000].bytes > 100 * cost[4].bytes


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Cost(0.0123, 10.0), "about 0.1 s and 0.0 GiB"),
        (Cost(7.4, 2**30), "about 7 s and 1.0 GiB"),
        (Cost(187.0, 3 * 2**29), "about 200 s and 1.5 GiB"),
    ],
)
def test_it_reads_as_an_estimate(cost, words):
    assert str(cost) == words


def test_a_study_tells_what_an_ask_will_cost():
    pool = Pool(np.random.default_rng(0).random((500, 2)))
    one, ten = Study(pool, seed=0), Study(pool, seed=0, gp=GP(samples=10))
    for study in (one, ten):
        study.add([pool.point(i) for i in range(20)], np.arange(20.0))
    assert ten.cost(5).seconds > one.cost(5).seconds > 0.0
    assert len(one.history.events) == 1


def test_it_knows_the_batch_the_strategy_and_the_budget():
    pool = Pool(np.random.default_rng(0).random((100_000, 2)))
    study, random = Study(pool, seed=0), Study(pool, seed=0, strategy="random")
    for each in (study, random):
        each.add([pool.point(i) for i in range(200)], np.arange(200.0))
    assert study.cost(1000).seconds > 1.5 * study.cost(1).seconds
    assert random.cost(10).seconds < 0.1
