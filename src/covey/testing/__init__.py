"""Contracts for parts of your own: inherit from one, say how the part is made, run pytest.

A contract is a class of tests with a hook or two. pytest is needed to run it, not to import it.
"""

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
