"""Draws from a projection DPP, one item at a time."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, Indices, namespace
from covey.dpp import categorical
from covey.dpp.factor import Factor


def draw(basis: Array, rng: np.random.Generator) -> Indices:
    r"""Draw S with |S| = k and P(S) = det(U_S)² for orthonormal columns U, (n, k).

    The chain rule: the next item is i with probability proportional to its conditional variance
    under UUᵀ given the items so far, which is greedy maximisation with a random pivot. The
    variances sum to k minus the number drawn; they are renormalised, so rounding does not matter.
    Cost n k².
    """
    xp, k = namespace(basis), basis.shape[1]
    factor = Factor(xp.einsum("ij,ij->i", basis, basis), k)
    chosen = np.empty(k, dtype=np.intp)
    for step in range(k):
        cumulative = xp.cumsum(xp.clip(factor.residual, 0.0, None), axis=0)
        chosen[step] = categorical.draw(cumulative, rng.random(1))[0]
        if step + 1 < k:
            factor.grow(int(chosen[step]), basis @ basis[int(chosen[step])])
    return chosen
