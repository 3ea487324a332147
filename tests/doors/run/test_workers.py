from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.doors.run.scripted import Scripted, value

from covey.errors import StrategyError
from covey.run import LocalEngine
from covey.run import api as workers
from covey.run.api import check_workers, engine_for, work_folder
from covey.run.remote import FuturesEngine
from covey.run.task import Function

CALL = Function(abs)


def test_a_number_is_so_many_processes(tmp_path):
    with engine_for(3, tmp_path / "run.jsonl") as engine:
        assert isinstance(engine, LocalEngine)
        assert engine.slots == 3
    assert list(tmp_path.iterdir()) == []  # nothing was run


def test_what_is_given_stays_open():
    given = Scripted(value)
    with engine_for(given, None) as engine:
        assert engine is given
    assert not given.closed
    with ThreadPoolExecutor(1) as pool:
        with engine_for(pool, None) as engine:
            assert isinstance(engine, FuturesEngine)
        assert pool.submit(abs, -1).result() == 1


def test_without_file_locks_it_is_threads(monkeypatch, caplog):
    """Windows, by its one difference that matters here; not tried there."""
    monkeypatch.setattr(workers, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING, logger="covey"), engine_for(2, None) as engine:
        assert isinstance(engine, FuturesEngine)
        pool = engine._executor
    assert "no file locks" in caplog.text
    with pytest.raises(RuntimeError):
        pool.submit(abs, -1)  # it was ours


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "ray", None])
def test_what_cannot_work_is_named(wrong):
    with pytest.raises(StrategyError, match=r"workers .*got"):
        check_workers(wrong, CALL)


def test_the_folder_lies_beside_the_journal(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "run.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "run.jsonl")
    assert work_folder(Path(tmp_path / "link.jsonl")) == tmp_path / "real" / "run.jsonl.work"
