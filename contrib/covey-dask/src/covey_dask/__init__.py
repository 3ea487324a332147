"""Batches of a large pool, worked out by the workers of a Dask cluster."""

from covey_dask.proposer import DaskProposer

Spread = DaskProposer
"""Its name while it was `covey.cluster.Spread`."""

__all__ = ["DaskProposer", "Spread"]
