from __future__ import annotations

import logging
import sys

import pytest
from tests.doors.run.conftest import need

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
