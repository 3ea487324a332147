from __future__ import annotations

from tests.doors.run.scripted import Scripted, value

from covey.run.task import Engine


def test_whoever_does_five_things_is_an_engine():
    assert isinstance(Scripted(value), Engine)
    assert not isinstance(object(), Engine)
