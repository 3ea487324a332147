"""Known problems to try an optimiser on."""

from covey.bench.problems import Problem, hartmann6, hartmann6_values

__all__ = ["Problem", "hartmann6", "hartmann6_values"]
