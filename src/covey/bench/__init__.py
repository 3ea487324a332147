"""Known problems to try an optimiser on."""

from covey.bench.problems import Problem, hartmann6

__all__ = ["Problem", "hartmann6"]
