"""A folder in memory: for what does not depend on a disk, and is done thousands of times."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Each of ten thousand repairs would be kept for the report of a test that passed."""
    log = logging.getLogger("covey")
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(logging.NOTSET)


@pytest.fixture
def ram(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, in memory where there is such a place: there fsync costs nothing."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=_MEMORY) as folder:
        yield Path(folder)
