"""Contracts that a stranger's parts can be tested against, as ours are."""

from __future__ import annotations

from covey.testing.parameter import ParameterContract

__all__ = ["ParameterContract"]
