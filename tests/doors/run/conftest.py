"""Engines to try things on, each with what it can and cannot do."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import cloudpickle
import pytest
from tests.two_workers import two_workers

from covey.run import LocalEngine, Outcome, Task
from covey.run.remote import FuturesEngine
from covey.run.task import Call, Function, name_of

KINDS = ["local", "threads", "processes"]
KINDS += [pytest.param(kind, marks=pytest.mark.host) for kind in ("dask", "ray")]
ALONE = ("local", "dask", "ray")  # each evaluation has a process that can be stopped
REMEMBERING = ("local", "dask")  # evaluations outlive their runner


@pytest.fixture(autouse=True, scope="module")
def _pickled_by_value(request) -> Iterator[None]:
    """The process of an evaluation gets functions of a test without importing its file."""
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


@dataclass(frozen=True)
class Bench:
    """An engine and its gifts."""

    kind: str
    engine: object
    reopen: Callable[[], object]  # as another runner would, after this one has died

    @property
    def alone(self) -> bool:
        """Each evaluation has a process of its own, that can be stopped and whose log is kept."""
        return self.kind in ALONE

    def submit(self, f: Callable[..., object] | Call, label: str = "", **fields) -> Task:
        call = Function(f) if callable(f) else f
        given = {"id": 0, "attempt": 1, "point": {"x": 1.5}, "seed": 7, "timeout": None, **fields}
        named = name_of(os.urandom(4).hex(), given["id"], given["attempt"])
        task = Task(name=named, call=call, **given)
        self.engine.submit(task)
        return task

    def outcomes(self, count: int, within: float = 60.0, engine=None) -> list[Outcome]:
        """So many outcomes, and no more for a moment."""
        found: list[Outcome] = []
        until = time.monotonic() + within
        while len(found) < count and time.monotonic() < until:
            found += (engine or self.engine).poll(0.5)
        found += (engine or self.engine).poll(0.0)
        assert len(found) == count, found
        return found

    def outcome_of(self, f: Callable[..., object] | Call, **fields) -> Outcome:
        task = self.submit(f, **fields)
        (outcome,) = self.outcomes(1)
        assert outcome.name == task.name
        return outcome


def by_name(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {outcome.name: outcome for outcome in outcomes}


def need(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}: pip install 'covey[{extra}]'")


@pytest.fixture(scope="session")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """A Dask cluster of two workers on this machine, and on no network."""
    with two_workers() as cluster:
        yield cluster


@pytest.fixture(scope="module")  # not longer: a process has one Ray, and others want theirs
def ray() -> Iterator[object]:
    """A Ray of two processors on this machine."""
    need("ray", "ray")
    import ray

    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init("local", num_cpus=2, num_gpus=2, **quiet)  # Ray only counts them
    yield ray
    ray.shutdown()


@dataclass(frozen=True)
class Workshop:
    """Where engines of one kind are made, as many as runners want."""

    kind: str
    make: Callable[[], object]


@pytest.fixture(params=KINDS)
def workshop(request, tmp_path) -> Iterator[Workshop]:
    kind = request.param
    closing: list[object] = []

    def make() -> object:
        if kind == "local":
            engine = LocalEngine(2, tmp_path / "work", grace=2.0)
        elif kind == "threads":
            pool = ThreadPoolExecutor(2)
            closing.append(pool.shutdown)
            engine = FuturesEngine(pool)
        elif kind == "processes":
            engine = FuturesEngine(request.getfixturevalue("processes"))
        elif kind == "dask":
            from covey.run import DaskEngine

            cluster = request.getfixturevalue("cluster")
            client = __import__("distributed").Client(cluster.scheduler_address)
            closing.append(client.close)
            engine = DaskEngine(client, grace=2.0)
        else:
            request.getfixturevalue("ray")
            from covey.run import RayEngine

            engine = RayEngine(grace=2.0, num_cpus=1)
        closing.append(engine.close)
        return engine

    yield Workshop(kind, make)
    for close in reversed(closing):
        close()


@pytest.fixture
def bench(workshop) -> Bench:
    return Bench(workshop.kind, workshop.make(), workshop.make)
