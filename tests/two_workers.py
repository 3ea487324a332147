"""A Dask cluster of two workers on this machine, and on no network."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def two_workers() -> Iterator[Any]:
    """Skips the test where Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("needs distributed: pip install 'covey[dask]'")
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster:
            yield cluster
