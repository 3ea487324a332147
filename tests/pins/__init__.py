"""Batches pinned before the house was rebuilt."""
