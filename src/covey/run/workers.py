"""Workers: who evaluates, from what a user gives: a number, an executor, a client, an engine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from covey.errors import StrategyError
from covey.run.call import Call, pack
from covey.run.dask import DaskEngine, is_client
from covey.run.engine import Engine
from covey.run.futures import FuturesEngine
from covey.run.local import LocalEngine

if TYPE_CHECKING:
    from distributed import Client

    Workers: TypeAlias = int | Executor | Engine | Client

_log = logging.getLogger("covey")


def check_workers(workers: object, call: Call) -> None:
    """Raise StrategyError unless these can evaluate it; before anything is written."""
    if isinstance(workers, Executor) and not isinstance(workers, ProcessPoolExecutor):
        return
    if isinstance(workers, bool | str) or not (
        isinstance(workers, int | Executor | Engine) or is_client(workers)
    ):
        raise StrategyError(
            "workers is a whole number >= 1, an executor of concurrent.futures, a Dask client, or "
            f"an engine such as covey.run.RayEngine(); got {workers!r}."
        )
    if isinstance(workers, int) and workers < 1:
        raise StrategyError(f"workers must be a whole number >= 1; got {workers!r}.")
    if not isinstance(workers, FuturesEngine):
        pack(call)


@contextmanager
def engine_for(workers: Workers, journal: Path | None) -> Iterator[Engine]:
    """An engine; one that was given stays open."""
    if isinstance(workers, Engine):
        yield workers
        return
    engine = _engine(workers, journal)
    try:
        yield engine
    finally:
        engine.close()


def _engine(workers: int | Executor | Client, journal: Path | None) -> Engine:
    if isinstance(workers, Executor):
        return FuturesEngine(workers)
    if not isinstance(workers, int):
        return DaskEngine(workers)
    if find_spec("fcntl") is None:
        _log.warning("no file locks on this system: evaluations run in threads of this process")
        return FuturesEngine(ThreadPoolExecutor(workers, "covey"), owned=True)
    return LocalEngine(workers, None if journal is None else work_folder(journal))


def work_folder(journal: Path) -> Path:
    """Where evaluations keep their files; of no use when no trial is pending."""
    journal = journal.resolve()
    return journal.with_name(f"{journal.name}.work")
