r"""Candidates that are kept apart: what a belief about some says about others elsewhere.

Both beliefs come from one posterior, Σ = K - VᵀV with the same rows of V in the same order, so the
covariance of x here with z there is k(x, z) - V_xᵀV_z: of z only its column of V has to travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from covey.arrays import Array, Whitening, cholesky, plus_diagonal
from covey.belief import Belief, Gaussian
from covey.kernels import Kernel

Kernels = Sequence[Kernel]
"""The prior covariance of each member of a belief."""


def covariance(kernel: Kernel, here: Belief, there: Belief, member: int, rows: slice) -> Array:
    """Posterior covariances (len(rows), len(there)) of one member. Cost rows · there · (m + d)."""
    mine, theirs = here.parts[member], there.parts[member]
    inner = mine.explained.product(rows, theirs.explained.of(np.arange(len(there))))
    return kernel(here.at[rows], there.at) - inner


def information(kernels: Kernels, here: Belief, there: Belief, rows: slice) -> Array:
    """Entries of I + Σ/σ² between candidates here and others there, (len(rows), len(there)).

    No candidate may be in both: the identity is left out.
    """
    each = [
        covariance(kernel, here, there, member, rows) / here.parts[member].noise
        for member, kernel in enumerate(kernels)
    ]
    return each[0] if len(each) == 1 else np.asarray(np.mean(each, axis=0))


def after_looking_there(kernels: Kernels, here: Belief, there: Belief) -> Belief:
    r"""The belief here once the candidates there will have been observed, their values unknown.

    .. math:: V' = \begin{pmatrix} V \\ C^{-1}\Sigma_{J\cdot} \end{pmatrix}, \qquad
              CC^\top = \Sigma_{JJ} + \sigma^2 I

    which is `Belief.after_looking_at` for candidates J that are not here.
    """

    def seen(member: int, kernel: Kernel) -> Gaussian:
        part, other = here.parts[member], there.parts[member]
        every = np.arange(len(there))
        corner = cholesky(plus_diagonal(other.block(every, every), part.noise))
        cross = covariance(kernel, here, there, member, slice(0, len(here)))
        rows = Whitening(corner, cross)(cross.T)
        return replace(part, explained=part.explained.also(rows))

    return replace(here, parts=tuple(seen(i, kernel) for i, kernel in enumerate(kernels)))


def light(belief: Belief) -> Belief:
    """The belief without what is large and not needed elsewhere."""
    parts = tuple(replace(part, evidence=None, looks=None) for part in belief.parts)
    return replace(belief, parts=parts, told=None)
