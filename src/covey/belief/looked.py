r"""Looked: the rows that imagined looks add to V, where they are too many to be held.

.. math:: V' = \begin{pmatrix} V \\ C^{-1}\Sigma_{J\cdot} \end{pmatrix}, \qquad
          CC^\top = \Sigma_{JJ} + \sigma^2 I
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Indices, namespace, sum_of_squares
from covey.belief.explained import Held, Layer
from covey.chunks import each_chunk
from covey.whitening import Whitening

if TYPE_CHECKING:
    from covey.belief.looks import Looks

_ENTRIES, _ROWS = 2**24, 1024  # of a slab, 128 MiB; and at least so many rows (our choice)


class Looked:
    """C⁻¹ Σ_J· for all looks at candidates J of a Gaussian, made when asked for."""

    def __init__(self, looks: Looks) -> None:
        self._looks, self._before = looks, looks.before

    def __len__(self) -> int:
        return len(self._looks)

    @cached_property
    def _own(self) -> Array:
        """The columns of V at the looks themselves, (m, p)."""
        return self._before.explained.of(self._looks.names)

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self._looks.corner, self._before.explained.squares)

    def of(self, cols: Indices) -> Array:
        """Cost len(cols) · p · (m + p)."""
        names = self._looks.places[cols]
        inner = self._before.explained.product(names, self._own)

        def some(part: slice) -> Array:
            covariances = self._before.prior.block(self._looks.names, names[part])
            return self._whiten(covariances - inner[part].T)

        made: Array = namespace(inner).concat(list(each_chunk(some, inner, len(self))), axis=1)
        return made

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """As `of`, a slab at a time."""
        parts = [self.of(slab).T @ weights for slab in self._slabs(cols)]
        product: Array = namespace(weights).concat(parts, axis=0)
        return product

    def squares(self) -> Array:
        """The sum of squares of each column, (n,)."""
        parts = [sum_of_squares(self.of(slab)) for slab in self._slabs(slice(None))]
        squares: Array = namespace(parts[0]).concat(parts, axis=0)
        return squares

    def on(self, indices: Indices) -> Layer:
        """Held, if the memory allows it."""
        if 8 * len(self) * len(indices) <= self._before.explained.room:
            return Held(self.of(indices))
        return Looked(self._looks.on(indices))

    def _slabs(self, cols: Indices | slice) -> Iterator[Indices]:
        chosen = np.arange(len(self._looks.places))[cols]
        size = max(_ROWS, _ENTRIES // len(self))
        return (chosen[low : low + size] for low in range(0, max(1, len(chosen)), size))
