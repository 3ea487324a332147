"""Pools of a million: seconds and peak memory of an ask, on the host and on a GPU."""
