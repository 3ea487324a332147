"""What a batch may use, what it would cost, and what is left out to end in time."""

from __future__ import annotations

import math
import sys
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from covey import GP, Pool, Real, Space, Study, arrays
from covey.arrays import each_chunk
from covey.baselines import Random
from covey.candidates import Candidates
from covey.catalog import STRATEGIES
from covey.errors import MissingExtraError, NumericsError, StrategyError
from covey.large import budget
from covey.large.budget import (
    Cost,
    Resources,
    Size,
    TimeLimit,
    _Ticker,
    affordable,
    estimate,
    progress_bar,
    second_per_term,
)
from covey.policies import UCB
from covey.space import Choice
from covey.strategies import DPP


@pytest.mark.parametrize(
    ("given", "expected"),
    [(2**27, 2**27), ("128MiB", 2**27), ("1 GB", 10**9), ("1.5 gib", 3 * 2**29), (None, 2**31)],
)
def test_memory_is_read_as_people_write_it(given, expected):
    assert Resources(memory=given).bytes == expected


@pytest.mark.parametrize("bad", ["plenty", "8 apples", ".", "1.2.3 GiB", True, -5, "1 MiB", 0])
def test_memory_that_is_none_is_refused(bad):
    with pytest.raises(StrategyError, match="memory"):
        Resources(memory=bad)


def test_precision_is_one_of_two():
    with pytest.raises(StrategyError, match='"float64" or "float32"; got \'half\''):
        Resources(precision="half")


def test_on_the_host_nothing_is_moved():
    at = np.zeros((3, 2))
    assert Resources().place(at) is at


def test_an_unknown_device_is_named():
    pytest.importorskip("torch")
    with pytest.raises(NumericsError, match="cannot use device 'abacus'"):
        Resources(device="abacus")
    with pytest.raises(NumericsError, match=r"cannot use device 'abacus'.*Use device=\"cpu\""):
        Study(Pool(np.random.default_rng(0).random((5, 2))), device="abacus")


def test_a_gpu_that_is_not_there_is_refused_at_once():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(NumericsError, match="cannot use device 'cuda'"):
        Resources(device="cuda", memory="1 GiB")


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"covey\[torch\]"):
        Resources(precision="float32")


def test_float32_is_torchs():
    torch = pytest.importorskip("torch")
    placed = Resources(precision="float32").place(np.zeros((3, 2)))
    assert placed.dtype == torch.float32
    assert Resources(precision="float32").bytes > 0


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_study_asks_the_same_whichever_library_computes(strategy, members, monkeypatch):
    torch = pytest.importorskip("torch")

    def refuse(self, *args, **options):
        raise TypeError("NumPy cannot read what lies on a GPU")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    rng = np.random.default_rng(0)
    pool = Pool(rng.random((400, 3)))
    batches = []
    for device in ("cpu", "cpu:0"):  # the second is torch's
        gp = GP(samples=members) if members > 1 else GP()
        study = Study(pool, strategy=strategy, seed=1, device=device, gp=gp)
        study.add([pool.point(i) for i in range(20)], np.sin(5.0 * pool.rows[:20]).sum(axis=1))
        batches.append([trial.point for trial in study.ask(6)])
    assert batches[0] == batches[1]


def test_an_option_that_is_not_there_is_refused():
    with pytest.raises(TypeError, match="devise"):
        Study(Pool(np.zeros((1, 1))), devise="cuda")


# The estimated cost of a batch


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


@pytest.fixture
def typical_machine(monkeypatch):
    """Its speed is not measured, so that it does not depend on what else is done."""
    monkeypatch.setattr(budget, "second_per_term", lambda: budget._TYPICAL)


@pytest.mark.usefixtures("typical_machine")
@pytest.mark.parametrize("strategy", ["auto", "random"])
def test_many_options_cost_time_and_memory(strategy):
    """Choosing among 4000 options was seen to take 2 to 6 s and 0.8 GiB."""
    cost = {
        n: Study(
            Space({"c": Choice(range(n), ordered=False), "x": Real(0, 1)}), strategy=strategy
        ).cost(4)
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


@pytest.mark.usefixtures("typical_machine")
def test_it_knows_the_batch_the_strategy_and_the_budget():
    pool = Pool(np.random.default_rng(0).random((100_000, 2)))
    study, random = Study(pool, seed=0), Study(pool, seed=0, strategy="random")
    for each in (study, random):
        each.add([pool.point(i) for i in range(200)], np.arange(200.0))
    assert study.cost(1000).seconds > 1.5 * study.cost(1).seconds
    assert random.cost(10).seconds < 0.1


# What an ask leaves out to end in time


ROWS = np.random.default_rng(0).random((20_000, 2))
EVERY = Candidates(ROWS, lambda i: [{"row": int(j)} for j in i])
SIZE = Size(len(ROWS), 30, 5)


def study(**options):
    made = Study(Pool(ROWS), seed=0, **options)
    made.add([made.space.point(i) for i in range(30)], np.sin(9.0 * ROWS[:30]).sum(axis=1))
    return made


def test_without_a_budget_nothing_is_left_out():
    limit = TimeLimit(Resources())
    rng = np.random.default_rng(0)
    assert limit.left == math.inf
    assert limit.thinned(EVERY, SIZE, rng) is EVERY
    assert rng.random() == np.random.default_rng(0).random()
    strategy = DPP(UCB())
    assert limit.apply(strategy) is strategy


def test_time_runs(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    limit = TimeLimit(Resources(seconds=3.0), began=100.0)
    assert limit.left == 3.0
    now[0] = 102.0
    assert limit.left == 1.0
    assert limit.apply(DPP(UCB())).seconds == 1.0
    assert limit.apply(Random()) == Random()
    now[0] = 110.0
    assert limit.left == 0.0


def test_as_many_are_looked_at_as_there_is_time_for(monkeypatch):
    monkeypatch.setattr(budget, "affordable", lambda size, seconds: int(1000 * seconds))
    some = TimeLimit(Resources(seconds=10.0)).thinned(EVERY, SIZE, np.random.default_rng(0))
    assert 6900 <= len(some) <= 7000
    rows = [point["row"] for point in some.points(range(len(some)))]
    assert sorted(set(rows)) == rows
    np.testing.assert_array_equal(some.at, ROWS[rows])
    assert 4500 < np.median(rows) * 0.5 < 5500  # from all over the pool


def test_never_fewer_than_make_a_choice(monkeypatch):
    monkeypatch.setattr(budget, "affordable", lambda size, seconds: 0)
    rng = np.random.default_rng(0)
    assert len(TimeLimit(Resources(seconds=1e-9)).thinned(EVERY, SIZE, rng)) == 2000
    large = Size(len(ROWS), 30, 700)
    assert len(TimeLimit(Resources(seconds=1e-9)).thinned(EVERY, large, rng)) == 7000


@pytest.mark.parametrize("strategy", ["ucb-dpp-sample", "auto"])
def test_an_ask_in_haste_says_what_it_left_out(strategy):
    made = study(strategy=strategy)
    batch = made.ask(40, time_budget=1e-6)
    told = made.diagnostics
    assert told.candidates == 2000
    assert told.left_out == 20_000 - 30 - 2000
    assert len({tuple(t.point.values()) for t in batch}) == 40


def test_a_search_in_haste_keeps_what_was_climbed_to():
    """The largest upper bounds of a search are found by gradient: they are not left to chance."""
    space = Space({f"x{i}": Real(0.0, 1.0) for i in range(3)})
    rng = np.random.default_rng(0)
    at = rng.random((40, 3))
    points = [dict(zip(space.names, row, strict=True)) for row in at.tolist()]
    values = np.sin(5.0 * at[:, 0]) + at[:, 1] * at[:, 2]
    for seed in range(5):
        heads = []
        for seconds in (None, 1e-6):
            made = Study(space, seed=seed, strategy=DPP(UCB(beta=4.0)))
            made.add(points, values)
            heads.append(made.ask(2, time_budget=seconds)[0].point)
        assert made.diagnostics.candidates == 2000
        assert made.diagnostics.left_out > 1000
        assert heads[0] == heads[1]


def test_a_large_batch_from_a_search_costs_what_its_picks_do():
    space = Space({f"x{i}": Real(0.0, 1.0) for i in range(6)})
    made = Study(space, seed=0)
    made.add([dict.fromkeys(space.names, v) for v in (0.1, 0.5, 0.8)], [0.1, 0.5, 0.2])
    assert made.cost(1000).seconds > 20.0 * made.cost(10).seconds


def test_a_walk_in_haste_says_so():
    made = study(strategy=DPP(UCB(), method="walk"))
    made.ask(40, time_budget=1e-6)
    told = made.diagnostics
    assert told.sampler.startswith("walk, 64 steps of ")
    assert told.sampler.endswith("for want of time")
    assert told.error > 0.01


def test_a_generous_budget_changes_nothing():
    plain, timed = study(strategy="ucb-dpp-sample"), study(strategy="ucb-dpp-sample")
    batches = plain.ask(8), timed.ask(8, time_budget=3600.0)
    assert [t.point for t in batches[0]] == [t.point for t in batches[1]]
    assert timed.diagnostics.left_out == 0


def test_a_first_batch_looks_at_some_of_a_large_pool():
    made = Study(Pool(ROWS), seed=0)
    batch = made.ask(20)
    assert (made.diagnostics.candidates, made.diagnostics.left_out) == (4096, 15_904)
    at = made.space.encode([t.point for t in batch])
    gaps = np.square(at[:, None] - at).sum(axis=-1) + np.eye(20)
    assert np.sqrt(gaps.min()) > 0.1  # spread out all the same
    assert [t.point for t in Study(Pool(ROWS), seed=0).ask(20)] == [t.point for t in batch]


# Messages while an ask takes long


LONG, SHORT = Cost(100.0, 2**30), Cost(0.1, 2**20)


def work():
    for _ in each_chunk(lambda part: time.sleep(0.03), np.zeros(64 * 10), 2**20):
        pass


@pytest.mark.parametrize(
    ("cost", "progress", "terminal", "shown"),
    [
        (LONG, None, True, True),
        (LONG, None, False, False),
        (SHORT, None, True, False),
        (SHORT, True, False, True),
        (LONG, False, True, False),
    ],
)
def test_who_is_shown_a_bar(cost, progress, terminal, shown, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_bar(lambda: cost, "choosing 5 points", progress=progress):
        work()
    out, err = capsys.readouterr()
    assert out == ""
    assert (f"choosing 5 points: {cost}" in err) == shown


def test_where_nobody_looks_on_nothing_is_estimated(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)

    def never():
        raise AssertionError("estimated")

    for progress in (None, False):
        with progress_bar(never, "choosing", progress=progress):
            pass
    with pytest.raises(AssertionError), progress_bar(never, "choosing", progress=True):
        pass


class Bar:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def update(self, task, completed, left):
        self.told.append((completed, left))


def test_a_bar_follows_the_clock_and_is_never_full_before_the_end(monkeypatch):
    now, bar = [50.0], Bar()
    monkeypatch.setattr("covey.large.budget.time.monotonic", lambda: now[0])
    tick = _Ticker(bar, 0, 10.0)
    for now[0] in (50.1, 55.0, 58.0, 60.5, 80.0):
        tick(64)
    done, left = zip(*bar.told, strict=True)
    assert done[:2] == (0.5, 0.8)
    assert len(done) == 4  # the first came too soon to be worth showing
    assert max(done) < 1.0
    assert left[0] == "about 5 s left"
    assert left[3] == "about 4 s left"  # 30 seconds gone where 10 were expected


def test_the_time_left_is_shown(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("covey.large.budget._OFTEN", 0.0)
    monkeypatch.setattr(arrays, "cores", lambda: 1)
    with progress_bar(lambda: Cost(0.01, 1.0), "choosing", progress=True):
        work()
    assert "s left" in capsys.readouterr().err


@pytest.mark.parametrize("after", [0, 2])
def test_an_interrupt_leaves_the_log_as_it_was(after, tmp_path, monkeypatch):
    """Ctrl-C in the middle of a pass: nothing asked, nothing written, and the same ask after."""
    pool = Pool(np.random.default_rng(0).random((3000, 2)))
    path = tmp_path / "run.jsonl"
    study = Study(pool, seed=0, journal=path)
    study.add([pool.point(i) for i in range(30)], np.sin(9.0 * pool.rows[:30]).sum(axis=1))
    before, events = path.read_bytes(), study.history.events
    monkeypatch.setattr(arrays, "CACHE", 1)
    seen = []

    def stop(rows):
        seen.append(rows)
        if len(seen) > after:
            raise KeyboardInterrupt

    with arrays.reporting_chunks(stop), pytest.raises(KeyboardInterrupt):
        study.ask(5)
    assert path.read_bytes() == before
    assert study.history.events == events
    again = study.ask(5)
    other = Study(pool, seed=0)
    other.add([pool.point(i) for i in range(30)], np.sin(9.0 * pool.rows[:30]).sum(axis=1))
    assert [t.point for t in again] == [t.point for t in other.ask(5)]
