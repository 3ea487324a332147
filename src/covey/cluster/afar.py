"""Afar: a layer of V whose rows are with the workers, and the belief that stands on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from covey.arrays import Array, Indices
from covey.belief import Belief, Gaussian
from covey.gp import Posterior
from covey.kernels import KernelMatrix
from covey.large.lowrank import Explained, Held, Layer, Streamed

# Up to so many candidates, and as long as their columns of V take no more multiplications than
# that, it is quicker to work them out here. (Our choice.)
HERE, _LITTLE = 20_000, 1e10


class Keepers(Protocol):
    """Those who keep V, for candidates that they call 0 to n - 1."""

    def summary(self) -> Sequence[tuple[Array, Array]]:
        """Of each member the mean (n,), and the squares (n,) of V summed over its rows."""
        ...

    def columns(self, member: int, cols: Indices) -> Array:
        """V[:, cols], (m, len(cols))."""
        ...

    def product(self, member: int, cols: Indices | None, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights (m, p): (len(cols), p); None: for all."""
        ...


class Afar:
    """Rows of V for n candidates, kept by others; a few columns of it are made here."""

    def __init__(
        self, near: Streamed, keepers: Keepers, member: int, names: Indices | None = None
    ) -> None:
        self._near = near
        self._keepers, self._member = keepers, member
        self._names = names  # of the candidates, among those that the keepers know; None: all

    def __len__(self) -> int:
        return len(self._near)

    def of(self, cols: Indices) -> Array:
        """Cost len(cols) · m², here or afar."""
        if len(cols) * len(self) ** 2 <= _LITTLE:
            return self._near.of(cols)
        return self._keepers.columns(self._member, self._known(cols))

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """Cost len(cols) · m · p, and one number a candidate to carry; few are done here."""
        n, every = len(self._near.at), False
        if isinstance(cols, slice):
            cols = np.arange(n)[cols]
            every = self._names is None and len(cols) == n
        if len(cols) <= HERE:
            return self._near.product(cols, weights)
        names = None if every else self._known(cols)
        return self._keepers.product(self._member, names, weights)

    def on(self, indices: Indices) -> Layer:
        """Held here if they are few; else as far away as before."""
        near = self._near
        some = Streamed(near.kernel, near.seen, near.factor, near.at[indices], near.memory)
        if len(indices) <= HERE and some.fits:
            return Held(self.of(indices))
        return Afar(some, self._keepers, self._member, self._known(indices))

    def _known(self, cols: Indices) -> Indices:
        return cols if self._names is None else self._names[cols]


def belief_afar(
    keepers: Keepers, posterior: Posterior, at: Array, round: int, memory: int
) -> Belief:
    """What `Posterior.belief` says about the candidates (n, d), without a pass over them here."""
    parts = []
    each = zip(posterior.models, posterior.evidence, keepers.summary(), strict=True)
    for member, (model, seen, (mean, squares)) in enumerate(each):
        near = Streamed(model.kernel, seen.at, seen.factor, at, memory // len(posterior.models))
        explained = Explained((Afar(near, keepers, member),), squares, near.memory)
        parts.append(Gaussian(KernelMatrix(model.kernel, at), mean, explained, model.noise, seen))
    return replace(posterior.belief(at[:1], round), at=at, parts=tuple(parts))
