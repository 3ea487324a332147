"""What a field is: the points that may be asked for now, as candidates for a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covey.arrays import Array, Indices, Mask
from covey.gp import Posterior

BLOCK = 1024  # a power of two: Sobol blocks stay balanced


@dataclass(frozen=True)
class Candidates:
    """Encoded points a strategy may choose among, and how to read them back."""

    at: Array  # (n, d)
    read: Callable[[Indices], list[dict[str, Any]]]

    def __len__(self) -> int:
        return len(self.at)

    def some(self, keep: Indices) -> Candidates:
        """A part of them."""
        return Candidates(self.at[keep], lambda i: self.read(keep[i]))

    def points(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """The chosen candidates as points."""
        return self.read(np.asarray(indices, dtype=np.intp))


class Field(Protocol):
    """Everything that may be asked for now: feasible, with what is fixed held, not yet taken."""

    def in_order(self, k: int, /) -> Candidates:
        """At least k candidates, the next points of the study's Sobol sequence first."""
        ...

    def scattered(self, k: int, rng: np.random.Generator, /) -> Candidates:
        """At least k candidates, spread uniformly."""
        ...

    def promising(self, k: int, posterior: Posterior, rng: np.random.Generator, /) -> Candidates:
        """At least k candidates, more of them where the model expects much."""
        ...


@dataclass(frozen=True)
class Taken:
    """What a field must leave out, and where its Sobol sequence stands."""

    points: Sequence[Mapping[str, Any]]
    seed: int
    asked: int  # points asked so far: the index into the sequence


def row_keys(at: Array) -> NDArray[np.void]:
    """Rows as comparable keys; rounding absorbs the last bits of decode and encode.

    Their bytes, and not records of numbers: a Ctrl-C while NumPy compares records is turned into a
    TypeError by it, and they take four times as long.
    """
    rounded = np.ascontiguousarray(np.round(at, 13) + 0.0)  # + 0.0 turns -0.0 into 0.0
    return rounded.view(np.dtype((np.void, rounded.itemsize * at.shape[1]))).reshape(-1)


def among(at: Array, others: Array) -> Mask:
    """Which rows of ``at`` are among the others."""
    if len(at) == 0 or len(others) == 0:
        return np.zeros(len(at), dtype=bool)
    return np.isin(row_keys(at), row_keys(others))


def sobol_blocks(width: int, seed: int | np.random.Generator, skip: int = 0) -> Iterator[Array]:
    """Blocks of a scrambled Sobol sequence in [0, 1)^width, from a position on."""
    from scipy.stats import qmc

    engine = qmc.Sobol(width, scramble=True, rng=seed)
    if skip:
        engine.fast_forward(skip)
    while True:
        yield engine.random(BLOCK)
