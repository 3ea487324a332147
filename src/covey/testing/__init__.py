"""Tests that anybody can run against a part of their own: what Covey asks of it."""

from covey.testing.log import LogContract
from covey.testing.parameter import ParameterContract

__all__ = ["LogContract", "ParameterContract"]
