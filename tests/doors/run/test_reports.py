"""Intermediate values from every engine, and evaluations that end when they are stopped."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.doors.run.conftest import Bench

import covey
from covey.run import Halving, Stopped, report, run
from covey.run.dask import topic_of
from covey.run.remote import FuturesEngine

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})


def test_reports_come_from_every_engine(bench):
    def f(point):
        for step in (1, 2, 5):
            time.sleep(0.1)
            report(step, {"gain": 0.5, "cost": step} if step == 5 else 0.5 * step)
        return 1.0

    tasks = [bench.submit(f, id=id) for id in range(2)]
    came, ended = [], []
    until = time.monotonic() + 60.0
    while len(ended) < 2 and time.monotonic() < until:
        ended += bench.engine.poll(0.05)
        came += bench.engine.reports()
    assert [outcome.value for outcome in ended] == [1.0, 1.0]
    for task in tasks:
        mine = [(step, value) for name, step, value in came if name == task.name]
        assert mine == [(1, 0.5), (2, 1.0), (5, {"gain": 0.5, "cost": 5.0})]
    assert bench.engine.reports() == []


def test_what_is_cancelled_ends_wherever_it_runs(bench, tmp_path):
    """Its process is ended; in a thread or a process of a pool it ends at its next report."""
    steps = tmp_path / "steps"

    def f(point):
        for step in range(1, 1000):
            steps.write_text(str(step))
            time.sleep(0.05)
            report(step, 0.5)

    task = bench.submit(f)
    until = time.monotonic() + 60.0
    while not steps.exists() and time.monotonic() < until:
        bench.engine.poll(0.05)
    bench.engine.cancel([task.name])
    found = bench.engine.poll(120.0)
    assert [outcome.status for outcome in found] == ["lost"]
    time.sleep(0.3)
    reached = steps.read_text()
    time.sleep(0.3)
    assert steps.read_text() == reached


def test_a_run_stops_what_does_badly_on_every_engine(workshop):
    def train(point):
        for step in range(1, 17):
            time.sleep(0.1)
            report(step, point["x"] * step / 16)
        return point["x"]

    study = covey.Study(SPACE, seed=0)
    study.enqueue([{"x": x} for x in (0.9, 0.8, 0.1, 0.95)])
    engine = workshop.make()
    result = run(study, train, batch=1, rounds=1, workers=engine, stopping=Halving(1, 2))
    stopped = study.history.stopped
    assert 2 in stopped
    assert 3 not in stopped
    assert result.value >= 0.95
    assert study.history.trial(2).value == study.history.reports(2)[-1].value < 0.1


@pytest.mark.host
def test_what_was_said_while_nobody_listened_is_heard_by_the_next_run(cluster):
    from distributed import Client

    from covey.run import DaskEngine

    def f(point):
        report(1, 0.25)
        time.sleep(1.0)
        return 1.0

    with Client(cluster.scheduler_address) as client:
        engine = DaskEngine(client)
        task = Bench("dask", engine, lambda: None).submit(f)
        until = time.monotonic() + 60.0
        while not client.get_events(topic_of(task.name)) and time.monotonic() < until:
            time.sleep(0.02)
        engine.close()
    with Client(cluster.scheduler_address) as client:
        again = DaskEngine(client)
        assert again.adopt([task]) == {task.name}
        assert again.reports() == [(task.name, 1, 0.25)]
        assert [outcome.value for outcome in again.poll(120.0)] == [1.0]
        again.poll(0.0)
        again.close()


def test_an_evaluation_that_outlives_its_run_clears_up_after_itself():
    """In a thread; the run is over, so its next report ends it, and its files go with it."""
    began, go_on = threading.Event(), threading.Event()
    raised = []

    def f(point):
        began.set()
        go_on.wait(120.0)
        try:
            report(1, 0.5)
        except Stopped as stopped:
            raised.append(str(stopped))
            raise

    with ThreadPoolExecutor(1) as threads:
        engine = FuturesEngine(threads)
        Bench("threads", engine, lambda: None).submit(f)
        began.wait(120.0)
        folder = engine._folder
        engine.close()
        assert folder.exists()
        go_on.set()
    assert raised == ["the evaluation is stopped at step 1"]
    assert not folder.exists()
