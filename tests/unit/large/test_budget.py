"""What a batch may use, and what is left out to end in time."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from covey import GP, Pool, Real, Space, Study, arrays
from covey.arrays import each_chunk
from covey.baselines import Random
from covey.candidates import Candidates
from covey.catalog import STRATEGIES
from covey.errors import MissingExtraError, NumericsError, StrategyError
from covey.large import budget
from covey.large.budget import Resources, TimeLimit, progress_bar
from covey.policies import UCB
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
    with pytest.raises(NumericsError, match="'abacus'"):
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
    with pytest.raises(TypeError, match="'devise'"):
        Study(Pool(np.zeros((1, 1))), devise="cuda")


# What an ask leaves out to end in time


ROWS = np.random.default_rng(0).random((20_000, 2))
EVERY = Candidates(ROWS, lambda i: [{"row": int(j)} for j in i])


def study(**options):
    made = Study(Pool(ROWS), seed=0, **options)
    made.add([made.space.point(i) for i in range(30)], np.sin(9.0 * ROWS[:30]).sum(axis=1))
    return made


def never(candidates):
    raise AssertionError("timed")


def test_without_a_budget_nothing_is_left_out_or_timed():
    limit = TimeLimit(Resources())
    rng = np.random.default_rng(0)
    assert limit.left == math.inf
    assert limit.thinned(EVERY, 5, never, rng) is EVERY
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


@pytest.mark.parametrize(("pace", "many"), [(1e-3, 7000 - 1400), (1e-9, 20_000), (1.0, 2000)])
def test_as_many_are_looked_at_as_there_is_time_for(pace, many, monkeypatch):
    """At the pace of the first 2000, which are timed, in 0.7 of the time that they leave."""
    now, seen = [100.0], []
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])

    def work(candidates):
        seen.append(len(candidates))
        now[0] += pace * len(candidates)

    limit = TimeLimit(Resources(seconds=10.0), began=100.0)
    some = limit.thinned(EVERY, 5, work, np.random.default_rng(0))
    assert seen == [2000]
    assert len(some) == pytest.approx(many, abs=1)
    rows = [point["row"] for point in some.points(range(len(some)))]
    assert sorted(set(rows)) == rows
    np.testing.assert_array_equal(some.at, ROWS[rows])
    assert 9000 < np.median(rows) < 11_000  # from all over the pool


@pytest.mark.parametrize(("k", "least"), [(5, 2000), (700, 7000)])
def test_never_fewer_than_make_a_choice(k, least):
    limit = TimeLimit(Resources(seconds=1e-9))
    assert len(limit.thinned(EVERY, k, len, np.random.default_rng(0))) == least


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


@pytest.fixture
def clock(monkeypatch):
    """A clock that is moved by hand, and chunks that are worked at one after the other."""
    now = [50.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(arrays, "cores", lambda: 1)
    monkeypatch.setenv("COLUMNS", "100")
    return now


def work(clock, seconds):
    """Ten chunks that take so many seconds each."""

    def tick(part):
        clock[0] += seconds

    for _ in each_chunk(tick, np.zeros(64 * 10), 2**20):
        pass


@pytest.mark.parametrize(
    ("seconds", "progress", "terminal"),
    [
        (1.0, None, True),
        (1.0, None, False),
        (0.4, None, True),
        (0.4, True, False),
        (1, False, True),
    ],
)
def test_an_ask_shows_how_far_it_is_once_it_takes_long(
    seconds, progress, terminal, clock, capsys, monkeypatch
):
    shown = terminal and seconds > 0.5 if progress is None else progress
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_bar("choosing 5 points", progress=progress):
        work(clock, seconds)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("choosing 5 points" in err) == shown


def test_chunks_done_are_shown(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("choosing", progress=True):
        work(clock, 1.0)
    err = capsys.readouterr().err
    assert "10 chunks done" in err
    assert "left" not in err  # nothing is estimated


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
