"""What prepares once and draws often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from covey.arrays import Array
from covey.dpp import categorical


class Sampler(Protocol):
    """A k-DPP ready to be drawn from; a frozen value, so draws depend on ``rng`` alone."""

    @property
    def method(self) -> str:
        """The method used: direct, spectral, mixture, walk or swap."""
        ...

    @property
    def steps(self) -> int:
        """Steps of the Markov chain per draw; 0 for an exact method."""
        ...

    @property
    def error(self) -> float:
        """Bound on the total variation distance to the k-DPP; 0.0 for an exact method."""
        ...

    def draw(self, rng: np.random.Generator) -> list[int]:
        """One set of k distinct indices, ascending."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """k = 1: one item with probability proportional to its diagonal entry."""

    cumulative: Array  # (n,), running sum of the diagonal

    method: ClassVar[str] = "direct"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    def draw(self, rng: np.random.Generator) -> list[int]:
        """One index. Cost log n."""
        return [int(i) for i in categorical.draw(self.cumulative, rng.random(1))]


@dataclass(frozen=True, slots=True)
class Everything:
    """k = n: all items, always."""

    n: int

    method: ClassVar[str] = "direct"
    steps: ClassVar[int] = 0
    error: ClassVar[float] = 0.0

    def draw(self, rng: np.random.Generator) -> list[int]:
        """All indices; ``rng`` is not touched."""
        return list(range(self.n))
