"""An exact Gaussian process: results in, a `Posterior` out; README.md says which file does what."""

from covey.gp.fit import fit, fit_best, informative, outgrown
from covey.gp.likelihood import Likelihood
from covey.gp.model import GP, PRIORS, Model, Priors
from covey.gp.observations import Observations, View, beyond_belief, observe, views_of
from covey.gp.posterior import Posterior, Recall, condition, without_shifts
from covey.gp.several import Bound, Posteriors, Scale, learnt_scale, scaled
from covey.gp.shifts import Sharing
from covey.gp.success import Success
from covey.gp.warp import Warp

__all__ = [
    "GP",
    "PRIORS",
    "Bound",
    "Likelihood",
    "Model",
    "Observations",
    "Posterior",
    "Posteriors",
    "Priors",
    "Recall",
    "Scale",
    "Sharing",
    "Success",
    "View",
    "Warp",
    "beyond_belief",
    "condition",
    "fit",
    "fit_best",
    "informative",
    "learnt_scale",
    "observe",
    "outgrown",
    "scaled",
    "views_of",
    "without_shifts",
]
