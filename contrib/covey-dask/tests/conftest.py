"""What the tests of a cluster share: a posterior, a client that is none, and real ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import settings
from tests.two_workers import two_workers

from cases import Plain, posterior_of
from covey.gp import Posterior

settings.register_profile("covey", derandomize=True, max_examples=50, deadline=None)
settings.load_profile("covey")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Plain:
    monkeypatch.setattr("covey_dask.workers.one_thread", nullcontext)  # slow, and done in a Study
    return Plain()


@pytest.fixture(params=[1, 2], ids=["one member", "two members"])
def posterior(request: pytest.FixtureRequest) -> Posterior:
    return posterior_of(request.param)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with two_workers() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(cluster.scheduler_address) as client:
        yield client


@pytest.fixture
def mortal() -> Iterator[Any]:
    """A client of a cluster of its own, whose workers may be killed."""
    with two_workers() as cluster:
        from distributed import Client

        with Client(cluster.scheduler_address) as client:
            yield client
