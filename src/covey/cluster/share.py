"""Share: what one worker believes about its part of the candidates, and works out for all.

Its methods run where the rows are; what they take and return is small, or one number a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.arrays import Array, Indices, Mask, one_thread
from covey.belief import Belief
from covey.cluster.apart import Kernels, after_looking_there
from covey.cluster.coreset import Check, Chosen, check, core_set
from covey.gp import Posterior

Bits: TypeAlias = NDArray[np.uint8]
"""A mask, eight rows to the byte."""


def packed(mask: Mask) -> Bits:
    """The mask as it travels.

    >>> unpacked(packed(np.array([True, False, True])), 3)
    array([ True, False,  True])
    """
    return np.packbits(mask)


def unpacked(bits: Bits, count: int) -> Mask:
    """The mask again."""
    return np.unpackbits(bits, count=count).astype(np.bool_)


@dataclass(frozen=True, eq=False)
class Share:
    """A belief about some of the candidates, and the kernels of its members."""

    belief: Belief
    kernels: Kernels

    @staticmethod
    def of(rows: Array, left: Bits, posterior: Posterior, memory: int) -> Share:
        """One pass over the rows that are left. Cost n·m²; takes at most so many bytes."""
        at = rows[unpacked(left, len(rows))]
        kernels = tuple(model.kernel for model in posterior.models)
        return Share(posterior.belief(at, memory=memory), kernels)

    def summary(self) -> list[tuple[Array, Array]]:
        """Mean of each member, and what observations have explained of its variance."""
        return [(part.mean, part.explained.squares) for part in self.belief.parts]

    def columns(self, member: int, cols: Indices) -> Array:
        """Columns of V, (m, len(cols))."""
        return self.belief.parts[member].explained.of(cols)

    def product(self, member: int, cols: Indices | None, weights: Array) -> Array:
        """V[:, cols]ᵀ w; None: of every column."""
        explained = self.belief.parts[member].explained
        return explained.product(slice(None) if cols is None else cols, weights)

    def region(self, inside: Bits, head: Belief) -> Share:
        """Of some of its candidates, once one that may be elsewhere will have been looked at."""
        mask = unpacked(inside, len(self.belief))
        some = self.belief if mask.all() else self.belief.on(np.flatnonzero(mask))
        return Share(after_looking_there(self.kernels, some, head), self.kernels)

    def core_set(self, size: int) -> Indices:
        """The few that stand for all of it."""
        return core_set(self.belief, size)

    def check(self, chosen: Chosen, mine: Indices) -> Check:
        """A batch compared with its candidates."""
        return check(self.kernels, self.belief, chosen, mine)


def work(task: Callable[..., Any], *args: Any) -> Any:
    """What a worker runs; on one thread, as every ask (decision 8)."""
    with one_thread():
        return task(*args)
