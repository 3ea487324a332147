r"""The relevance region: the candidates that may still be the maximiser.

Notation: μ, σ posterior mean and standard deviation, w the width of a policy's confidence band.
"""

from __future__ import annotations

import logging

import numpy as np

from covey.arrays import Indices
from covey.belief import Belief
from covey.policies import Judgement

_log = logging.getLogger("covey")


def relevant(
    belief: Belief, judgement: Judgement, factor: float = 2.0, at_least: int = 1
) -> Indices:
    r"""Indices of the candidates that may still be the maximiser (Contal et al. 2013).

    .. math:: R^+ = \{x : \mu + c\sqrt{\beta_{t+1}}\,\sigma \ge y^\bullet\}, \qquad
              y^\bullet = \max_x \mu - \sqrt{\beta_t}\,\sigma

    The maximum is over the candidates and the points whose value is known (in a finite space those
    are no candidates any more).

    The factor c is 2 in the paper and 1 in Contal's code. Late in a run R⁺ can hold fewer points
    than a batch needs; it is then widened to the ``at_least`` highest. (Our choice: the paper is
    silent.)
    """
    upper = belief.mean + factor * judgement.next_width * belief.std
    inside = np.flatnonzero(upper >= belief.highest_lower(judgement.width))
    wanted = min(at_least, len(belief))
    if len(inside) >= wanted:
        return inside
    # A stable sort, so that ties go to the lowest index.
    return np.sort(np.argsort(-upper, kind="stable")[:wanted])


def enough(k: int, n: int) -> int:
    """How many candidates the region must hold for a batch of k (MATH section 5).

    Exactly k would make sampling deterministic and clumped.
    """
    return min(n, max(10 * k, -(-n // 100)))
