"""What is believed about f at some candidates: all that a strategy sees."""

from covey.belief.belief import Belief, Information
from covey.belief.evidence import Evidence
from covey.belief.explained import Explained, Streamed, held
from covey.belief.gaussian import LEAST_VARIANCE, DensePrior, Gaussian, Prior

__all__ = [
    "LEAST_VARIANCE",
    "Belief",
    "DensePrior",
    "Evidence",
    "Explained",
    "Gaussian",
    "Information",
    "Prior",
    "Streamed",
    "held",
]
