"""Conditional variances under a kernel, given some items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.arrays import Array, Indices, beside, cholesky, host, is_host, namespace
from covey.chunks import each_chunk
from covey.dpp.kernel import Blocks
from covey.whitening import Whitening


@dataclass(frozen=True, eq=False)
class Conditional:
    """The items R that are given, and the Cholesky factor of L_RR."""

    kernel: Blocks
    items: Indices  # (m,)
    factor: Array  # (m, m), lower

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self.factor, self.kernel.diagonal)

    def variances(self, at: Indices) -> Array:
        r"""v(j|R) = L_jj - L_jR L_RR⁻¹ L_Rj for the items ``at``; zero for those in R.

        Reads m entries of L for each. Cost m² each.
        """
        diagonal = self.kernel.diagonal
        white = self._whiten(self.kernel.block(self.items, at))
        explained = namespace(diagonal).sum(white * white, axis=0)
        variances = host(diagonal[beside(at, diagonal)] - explained)
        variances[np.isin(at, self.items)] = 0.0
        return np.maximum(variances, 0.0)

    def all_variances(self) -> Array:
        """v(j|R) for all n items, chunk by chunk. Cost n m²."""
        diagonal = self.kernel.diagonal
        every = np.arange(len(diagonal))
        size = share(self.items, diagonal)
        return np.concatenate(
            list(each_chunk(lambda part: self.variances(every[part]), diagonal, size))
        )


def share(items: Indices, where: Array) -> int:
    """Entries counted for each candidate of a chunk, with so many items to condition on.

    On the host fewer than there are, since a kernel may spend as much on these items for each chunk
    as on hundreds of candidates; an array of the chunk then takes 16 MB. (Our choice.)
    """
    return max(1, len(items) // 4 if is_host(where) else len(items))


def given(kernel: Blocks, items: Indices) -> Conditional:
    """Condition on ``items``. Cost m³."""
    return Conditional(kernel, items, cholesky(host(kernel.block(items, items))))
