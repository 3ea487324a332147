import sys
import time

import numpy as np
import pytest

from covey import Pool, Study
from covey import arrays as chunks
from covey.arrays import each_chunk
from covey.large.budget import Cost, _Ticker, waiting

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
    with waiting(lambda: cost, "choosing 5 points", progress=progress):
        work()
    out, err = capsys.readouterr()
    assert out == ""
    assert (f"choosing 5 points: {cost}" in err) == shown


def test_where_nobody_looks_on_nothing_is_estimated(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)

    def never():
        raise AssertionError("estimated")

    for progress in (None, False):
        with waiting(never, "choosing", progress=progress):
            pass
    with pytest.raises(AssertionError), waiting(never, "choosing", progress=True):
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
    monkeypatch.setattr(chunks, "cores", lambda: 1)
    with waiting(lambda: Cost(0.01, 1.0), "choosing", progress=True):
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
    monkeypatch.setattr(chunks, "CACHE", 1)
    seen = []

    def stop(rows):
        seen.append(rows)
        if len(seen) > after:
            raise KeyboardInterrupt

    with chunks.reporting_chunks(stop), pytest.raises(KeyboardInterrupt):
        study.ask(5)
    assert path.read_bytes() == before
    assert study.history.events == events
    again = study.ask(5)
    other = Study(pool, seed=0)
    other.add([pool.point(i) for i in range(30)], np.sin(9.0 * pool.rows[:30]).sum(axis=1))
    assert [t.point for t in again] == [t.point for t in other.ask(5)]
