"""Run a study to its end: evaluate batches in parallel, here or on a cluster."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey.run.api import Result, maximize, minimize, run
    from covey.run.command import Command
    from covey.run.dask import DaskEngine
    from covey.run.local import LocalEngine
    from covey.run.plan import Progress
    from covey.run.ray import RayEngine
    from covey.run.remote import FuturesEngine
    from covey.run.reports import Stopped, report
    from covey.run.stopping import Halving, MedianRule
    from covey.run.task import Engine, Outcome, Retries, Task

__all__ = [
    "Command",
    "DaskEngine",
    "Engine",
    "FuturesEngine",
    "Halving",
    "LocalEngine",
    "MedianRule",
    "Outcome",
    "Progress",
    "RayEngine",
    "Result",
    "Retries",
    "Stopped",
    "Task",
    "maximize",
    "minimize",
    "report",
    "run",
]

# Imported when first used: the process of each evaluation imports this package and needs little.
_MODULES = {
    "Command": "command",
    "DaskEngine": "dask",
    "Engine": "task",
    "FuturesEngine": "remote",
    "Halving": "stopping",
    "LocalEngine": "local",
    "MedianRule": "stopping",
    "Outcome": "task",
    "Progress": "plan",
    "RayEngine": "ray",
    "Result": "api",
    "Retries": "task",
    "Stopped": "reports",
    "Task": "task",
    "maximize": "api",
    "minimize": "api",
    "report": "reports",
    "run": "api",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'covey.run' has no attribute {name!r}")
    value = getattr(import_module(f"covey.run.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
