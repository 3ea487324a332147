"""Batches of a large pool, worked out by the workers of a Dask cluster."""

from covey.cluster.spread import Spread

__all__ = ["Spread"]
