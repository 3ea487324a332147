from __future__ import annotations

import os
import sys
import time

import pytest
from tests.doors.run.conftest import Bench, need

from covey.errors import MissingExtraError, StrategyError
from covey.run.api import engine_for
from covey.run.dask import DaskEngine, is_client


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[dask\]'"):
        DaskEngine(object())
    assert not is_client(object())


def test_what_is_no_client_is_named():
    need("distributed", "dask")
    with pytest.raises(StrategyError, match="Dask client"):
        DaskEngine("tcp://127.0.0.1:8786")


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster.scheduler_address) as client:
        yield client


def test_a_client_is_known_when_it_is_seen(client):
    assert is_client(client)
    with engine_for(client, None) as engine:
        assert isinstance(engine, DaskEngine)
    assert client.status == "running"


def test_nothing_is_left_behind(client):
    engine = DaskEngine(client)
    bench = Bench("dask", engine, lambda: None)
    assert bench.outcome_of(lambda p: 2.0).value == 2.0
    assert client.list_datasets() == ()
    engine.close()
    assert client.status == "running"


def test_what_is_not_written_down_yet_can_be_found_again(client):
    engine = DaskEngine(client)
    task = Bench("dask", engine, lambda: None).submit(lambda p: 2.0)
    assert [found.value for found in engine.poll(120.0)] == [2.0]
    engine.close()  # the log failed, or the runner was killed
    again = DaskEngine(client)
    assert again.adopt([task]) == {task.name}
    assert [found.value for found in again.poll(120.0)] == [2.0]
    assert again.adopt([task]) == {task.name}  # a second run with the same engine
    assert [found.value for found in again.poll(120.0)] == [2.0]
    again.poll(0.0)
    assert client.list_datasets() == ()


def test_without_a_connection_all_is_lost_and_nothing_raises(cluster):
    from distributed import Client

    client = Client(cluster.scheduler_address)
    bench = Bench("dask", DaskEngine(client), lambda: None)
    bench.submit(lambda p: time.sleep(20.0))
    client.close()
    bench.submit(lambda p: 1.0, "b")
    assert {found.status for found in bench.outcomes(2)} == {"lost"}


def test_what_the_scheduler_forgets_is_lost(client, cluster):
    from distributed import Client, Future

    bench = Bench("dask", DaskEngine(client), lambda: None)
    task = bench.submit(lambda p: time.sleep(20.0))
    with Client(cluster.scheduler_address) as somebody:
        somebody.cancel([Future(task.name, somebody)], force=True)
    (found,) = bench.outcomes(1)
    assert (found.name, found.status) == (task.name, "lost")


def test_each_evaluation_has_a_gpu_of_its_worker(monkeypatch):
    """Two at once on a worker with two GPUs, as Dask counts them; two halves of one, if asked."""
    need("distributed", "dask")
    from distributed import Client, LocalCluster

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def f(point):
        time.sleep(0.5)
        gpu = os.environ["CUDA_VISIBLE_DEVICES"]
        return {"value": 1.0, "slot": os.environ["COVEY_SLOT"], "gpu": gpu}

    options = {"n_workers": 1, "threads_per_worker": 4, "resources": {"GPU": 2}}
    where = {"host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options, **where) as cluster, Client(cluster) as client:
        for share, count in ((1, 2), (0.5, 4)):
            bench = Bench("dask", DaskEngine(client, resources={"GPU": share}), lambda: None)
            for _ in range(count):
                bench.submit(f)
            found = [outcome.metrics for outcome in bench.outcomes(count)]
            assert sorted(one["slot"] for one in found) == list("0123"[:count])
            assert sorted(one["gpu"] for one in found) == sorted("0101"[:count])
