from __future__ import annotations

import logging
import os
import sys
import time

import pytest
from tests.doors.run.conftest import Bench, need

from covey.errors import MissingExtraError
from covey.run import Task
from covey.run.ray import RayEngine
from covey.run.task import Function


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[ray\]'"):
        RayEngine()


def test_what_cannot_be_sent_is_lost(monkeypatch):
    need("ray", "ray")

    def full(thing):
        raise MemoryError("the object store is full")

    engine = RayEngine()
    monkeypatch.setattr(engine._ray, "put", full)
    engine.submit(Task(0, 1, "covey-0-0-a1", {}, 0, None, Function(abs)))
    (found,) = engine.poll(0.0)
    assert (found.name, found.status) == ("covey-0-0-a1", "lost")
    assert "the object store is full" in found.reason


def test_it_says_that_it_remembers_nothing(caplog):
    need("ray", "ray")
    task = Task(0, 1, "covey-0-0-a1", {}, 0, None, Function(abs))
    with caplog.at_level(logging.INFO, logger="covey"):
        assert RayEngine().adopt([task]) == set()
        assert RayEngine().adopt([]) == set()
    assert caplog.text.count("does not keep evaluations") == 1


def test_an_evaluation_has_the_gpu_that_ray_gives_it(ray):
    def f(point):
        time.sleep(0.5)
        gpu = os.environ["CUDA_VISIBLE_DEVICES"]
        return {"value": 1.0, "slot": os.environ.get("COVEY_SLOT"), "gpu": gpu}

    bench = Bench("ray", RayEngine(num_gpus=1), lambda: None)
    for _ in range(2):
        bench.submit(f)
    found = [outcome.metrics for outcome in bench.outcomes(2)]
    assert sorted((one["slot"], one["gpu"]) for one in found) == [("0", "0"), ("1", "1")]
    half = Bench("ray", RayEngine(num_gpus=0.5), lambda: None).outcome_of(f).metrics
    assert half["slot"] is None  # two evaluations may share that GPU
