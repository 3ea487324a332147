"""Where a Markov chain on k-sets starts: at a greedy maximum, whose mass is bounded below."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from covey.arrays import Indices, host
from covey.dpp import greedy, symmetric
from covey.dpp.choice import Choice
from covey.dpp.kernel import Divisible
from covey.dpp.shortlist import spread
from covey.errors import NumericsError

# Of a large kernel greedy looks at this many items, or at eight for each of the k. (Our choice.)
_FEW = 8192


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A first set, and an upper bound on log 1/μ(S₀)."""

    items: Indices  # (k,)
    log_inverse_mass: float


def greedy_start(kernel: Divisible, k: int) -> Start:
    r"""The greedy maximum S₀ and the smaller of two bounds on log 1/μ(S₀) = log e_k - log det L_S₀.

    .. math::
        \log\tbinom{n}{k} + 2 \log k!
        \qquad\text{and}\qquad
        \log\tbinom{n}{k} + k \log(\operatorname{tr} L / n) - \log\det L_{S_0}

    The first is greedy's guarantee (Çivril & Magdon-Ismail 2009), the second Maclaurin's
    inequality for e_k. (Our choice to take the second as well: it is usually far smaller.) The
    second holds for any set: where n is large S₀ is the greedy maximum among a few items, so that
    the start does not depend on n. (Our choice.)
    """
    diagonal = host(kernel.diagonal)
    n = len(diagonal)
    few = _among_few(kernel, k) if greedy.is_large(kernel, k) else None
    choice = greedy.choose(kernel, k) if few is None else few
    guarantee = 2.0 * math.lgamma(k + 1) if few is None else math.inf
    maclaurin = k * math.log(float(diagonal.mean())) - float(np.log(choice.gains).sum())
    return Start(choice.picks, symmetric.log_binomial(n, k) + min(guarantee, maclaurin))


def _among_few(kernel: Divisible, k: int) -> Choice | None:
    """Greedy on some of the items, half of them those with the largest variance, if it can."""
    items = spread(host(kernel.diagonal), max(_FEW, 8 * k))
    try:
        found = greedy.plain(kernel.on(items), k)
    except NumericsError:  # the few have too low a rank
        return None
    return found._replace(picks=items[found.picks])
