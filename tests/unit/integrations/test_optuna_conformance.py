"""Optuna's own tests for samplers, on three kinds of storage."""

from __future__ import annotations

from functools import partial

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from sqlalchemy import event

from covey.integrations.optuna import CoveySampler


def open_storage(kind, folder):
    if kind == "sqlite":
        storage = RDBStorage(f"sqlite:///{folder / 'study.db'}")
        # Thousands of commits need not reach the disk; the next connections do not wait for it.
        event.listen(storage.engine, "connect", lambda c, _: c.execute("PRAGMA synchronous=OFF"))
        storage.engine.dispose()
        return storage
    if kind == "journal":
        return JournalStorage(JournalFileBackend(str(folder / "study.log")))
    return InMemoryStorage()


@pytest.fixture(scope="module", params=["memory", "sqlite", "journal"])
def storage(request, tmp_path_factory):
    """One storage for all studies of a kind: opening a database takes longer than a test."""
    opened = open_storage(request.param, tmp_path_factory.mktemp(request.param))
    yield opened
    if isinstance(opened, RDBStorage):
        opened.engine.dispose()


@pytest.fixture(autouse=True)
def every_study_is_stored(storage, monkeypatch):
    """The kit creates its studies in memory; here they go to the storage under test."""
    stored = partial(optuna.create_study, storage=storage)
    monkeypatch.setattr(optuna, "create_study", stored)
    monkeypatch.setattr(optuna.study, "create_study", stored)


class TestCovey(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    """SingleOnlySamplerTestCase does not apply: several objectives are searched together."""

    @pytest.fixture
    def sampler(self, storage):
        return partial(CoveySampler, seed=0)
