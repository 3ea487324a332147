"""What is believed about f at some candidates: all that a strategy sees."""

from covey.belief.belief import Belief, Information
from covey.belief.gaussian import LEAST_VARIANCE, DensePrior, Evidence, Gaussian, Prior

__all__ = [
    "LEAST_VARIANCE",
    "Belief",
    "DensePrior",
    "Evidence",
    "Gaussian",
    "Information",
    "Prior",
]
