"""Contracts for parts of your own: inherit from one, say how the part is made, run pytest.

A contract is a class of tests with a hook or two. This package is imported without pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey.testing.engine import EngineContract
    from covey.testing.log import LogContract
    from covey.testing.parameter import ParameterContract
    from covey.testing.policy import PolicyContract
    from covey.testing.strategy import StrategyContract

__all__ = [
    "EngineContract",
    "LogContract",
    "ParameterContract",
    "PolicyContract",
    "StrategyContract",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'covey.testing' has no attribute {name!r}")
    module = import_module(f"covey.testing.{name.removesuffix('Contract').lower()}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
