"""Run a study to its end: evaluate batches in parallel and tell the results."""

from covey.run.loop import Result, maximize, minimize

__all__ = ["Result", "maximize", "minimize"]
