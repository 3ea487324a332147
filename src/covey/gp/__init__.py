"""A small exact Gaussian process: pooled observations in, a Posterior out."""

from covey.gp.fit import fit
from covey.gp.likelihood import Likelihood
from covey.gp.model import GP, Model
from covey.gp.observations import Observations, observe
from covey.gp.posterior import Posterior, condition
from covey.gp.priors import PRIORS, Priors

__all__ = [
    "GP",
    "PRIORS",
    "Likelihood",
    "Model",
    "Observations",
    "Posterior",
    "Priors",
    "condition",
    "fit",
    "observe",
]
