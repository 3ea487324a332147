"""Covey's sampler for OptunaHub; the code is in the package covey."""

from covey.integrations.optuna import CoveySampler

__all__ = ["CoveySampler"]
