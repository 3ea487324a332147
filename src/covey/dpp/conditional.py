"""Conditional variances under a kernel, given some items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.arrays import Array, Indices, cholesky, solve_lower
from covey.dpp.kernel import Blocks

# Below this size a general solve costs less than a triangular one, and needs no SciPy.
_SMALL = 32


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """The items R that are given, and the Cholesky factor of L_RR."""

    kernel: Blocks
    items: Indices  # (m,)
    factor: Array  # (m, m), lower

    def variances(self, at: Indices) -> Array:
        r"""v(j|R) = L_jj - L_jR L_RR⁻¹ L_Rj for the items ``at``; zero for those in R.

        Reads m entries of L for each. Cost m² each.
        """
        whitened = self.whiten(at)
        variances = self.kernel.diagonal[at] - np.einsum("ij,ij->j", whitened, whitened)
        variances[(at[:, None] == self.items).any(axis=1)] = 0.0
        return np.maximum(variances, 0.0)

    def whiten(self, at: Indices) -> Array:
        """C⁻¹ L_Rj for the items ``at``, (m, len(at))."""
        block = self.kernel.block(self.items, at)
        if len(self.items) <= _SMALL:
            return np.asarray(np.linalg.solve(self.factor, block), dtype=np.float64)
        return solve_lower(self.factor, block)

    def also(self, more: Indices) -> Conditional:
        """Given ``more`` as well. Cost m² len(more): the factor is extended, not made anew."""
        if len(more) == 0:
            return self
        m, size = len(self.items), len(self.items) + len(more)
        cross = self.whiten(more)
        factor = np.zeros((size, size))
        factor[:m, :m] = self.factor
        factor[m:, :m] = cross.T
        factor[m:, m:] = cholesky(self.kernel.block(more, more) - cross.T @ cross)
        return Conditional(self.kernel, np.concatenate([self.items, more]), factor)


def given(kernel: Blocks, items: Indices) -> Conditional:
    """Condition on ``items``. Cost m³."""
    return Conditional(kernel, items, cholesky(kernel.block(items, items)))
