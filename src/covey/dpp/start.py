"""Where a Markov chain on k-sets starts: at the greedy maximum, whose mass is bounded below."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from covey.arrays import Indices
from covey.dpp import greedy, symmetric
from covey.dpp.kernel import Blocks


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A first set, and an upper bound on log 1/μ(S₀)."""

    items: Indices  # (k,)
    log_inverse_mass: float


def greedy_start(kernel: Blocks, k: int) -> Start:
    r"""The greedy maximum S₀ and the smaller of two bounds on log 1/μ(S₀) = log e_k - log det L_S₀.

    .. math::
        \log\tbinom{n}{k} + 2 \log k!
        \qquad\text{and}\qquad
        \log\tbinom{n}{k} + k \log(\operatorname{tr} L / n) - \log\det L_{S_0}

    The first is greedy's guarantee (Çivril & Magdon-Ismail 2009), the second Maclaurin's
    inequality for e_k. (Our choice to take the second as well: it is usually far smaller.)
    """
    n = len(kernel.diagonal)
    choice = greedy.choose(kernel, k)
    guarantee = 2.0 * math.lgamma(k + 1)
    maclaurin = k * math.log(float(kernel.diagonal.mean())) - float(np.log(choice.gains).sum())
    return Start(choice.picks, symmetric.log_binomial(n, k) + min(guarantee, maclaurin))
