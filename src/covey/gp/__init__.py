"""A small exact Gaussian process: pooled observations in, a Posterior out."""

from covey.gp.failures import Failures
from covey.gp.fit import fit, fit_best
from covey.gp.likelihood import Likelihood
from covey.gp.model import GP, Model
from covey.gp.observations import Observations, observe
from covey.gp.posterior import Posterior, condition
from covey.gp.priors import PRIORS, Priors
from covey.gp.recall import Recall
from covey.gp.refit import outgrown
from covey.gp.subset import informative
from covey.gp.warp import Warp

__all__ = [
    "GP",
    "PRIORS",
    "Failures",
    "Likelihood",
    "Model",
    "Observations",
    "Posterior",
    "Priors",
    "Recall",
    "Warp",
    "condition",
    "fit",
    "fit_best",
    "informative",
    "observe",
    "outgrown",
]
