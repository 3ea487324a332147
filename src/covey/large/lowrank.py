"""The low-rank part of a posterior covariance: V (m, n) with Σ = K - VᵀV, in layers of rows.

V has a row for each of m observations and a column for each of n candidates; a thousand by a
million would take 8 GB. So a layer of rows is held in memory (`HeldRows`), or computed in chunks
whenever it is needed (`StreamedRows`). `Evidence` holds the observations of one Gaussian process,
`Imagined` one of those that a batch imagines.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple, Protocol

import numpy as np

from covey.arrays import (
    MEMORY,
    Array,
    Indices,
    Whitening,
    each_chunk,
    like,
    namespace,
    solve_lower,
    sum_of_squares,
    to_numpy,
)

# Shares of the memory: V is held if it takes at most a third, since a region may copy as much
# again; rows that a batch imagines are held up to a quarter.
SHARE = 3
_ROWS_SHARE = 4


class Layer(Protocol):
    """A group of m rows of V."""

    def __len__(self) -> int:
        """The number of rows, m."""
        ...

    def of(self, cols: Indices) -> Array:
        """The columns V[:, cols], (m, len(cols))."""
        ...

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights w (m, p): (len(cols), p)."""
        ...

    def on(self, indices: Indices) -> Layer:
        """The rows restricted to a subset of the candidates."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Rows held in memory."""

    rows: Array  # (m, n)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def of(self, cols: Indices) -> Array:
        """A copy of these columns."""
        return self.rows[:, cols]

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w. Cost len(cols) · m · p, or n · m · p if these are more than half of n."""
        if not isinstance(cols, slice) and 2 * len(cols) > self.rows.shape[1]:
            return (self.rows.T @ weights)[cols]  # cheaper than a copy of most columns
        return self.rows[:, cols].T @ weights

    def on(self, indices: Indices) -> Layer:
        """A copy of these columns."""
        return HeldRows(self.rows[:, indices])


class PassResult(NamedTuple):
    """The result of one pass over the candidates."""

    sums: Array  # (n,), Σ_i w_i k(x_i, ·)
    squares: Array  # (n,), the diagonal of VᵀV
    layer: Layer


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """The rows C⁻¹ k(X, ·) of observations at X, computed when they are needed.

    A product costs m and not m² for each candidate, since V[:, cols]ᵀ w = k(cols, X) C⁻ᵀ w.
    """

    kernel: Callable[[Array, Array], Array]
    seen: Array  # X (m, d), on the device of the candidates
    factor: Array  # C (m, m), on the host
    at: Array  # (n, d)
    memory: int  # bytes that may be used

    def __len__(self) -> int:
        return int(self.seen.shape[0])

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self.factor, self.at)

    def of(self, cols: Indices) -> Array:
        """V[:, cols], (m, len(cols)). Cost len(cols) · m²."""
        return self._whiten(self.kernel(self.seen, self.at[cols]))

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w. Cost len(cols) · m · (d + p)."""
        at = self.at[cols]
        back = like(solve_lower(self.factor, to_numpy(weights), transposed=True), at)
        parts = each_chunk(lambda part: self.kernel(at[part], self.seen) @ back, at, len(self))
        return namespace(at).concat(list(parts), axis=0)

    def on(self, indices: Indices) -> Layer:
        """The rows of these candidates: held if they fit in their share of the memory."""
        some = StreamedRows(self.kernel, self.seen, self.factor, self.at[indices], self.memory)
        return some.survey(np.zeros(len(self))).layer if some.fits else some

    @property
    def fits(self) -> bool:
        """Whether all rows fit in their share of the memory."""
        return 8 * len(self) * len(self.at) <= self.memory // SHARE

    def survey(self, weights: Array) -> PassResult:
        """One pass: the sums for weights (m,), the squares, and the rows if they fit. Cost n m²."""
        weights, held = like(weights, self.at), self._room() if self.fits else None
        xp = namespace(self.at)

        def some(part: slice) -> tuple[Array, Array]:
            cross = self.kernel(self.seen, self.at[part])
            white = self._whiten(cross)
            if held is not None:
                held[:, part] = white
            return weights @ cross, sum_of_squares(white)

        sums, squares = zip(*each_chunk(some, self.at, len(self)), strict=True)
        layer = self if held is None else HeldRows(held)
        return PassResult(xp.concat(sums), xp.concat(squares), layer)

    def _room(self) -> Array:
        xp = namespace(self.at)
        shape = (len(self), len(self.at))
        room: Array = xp.empty(shape, dtype=self.at.dtype, device=self.at.device)
        return room


@dataclass(frozen=True, eq=False)
class ExplainedCovariance:
    """VᵀV, the part of a covariance that observations explain: V in layers, and its diagonal."""

    layers: tuple[Layer, ...]
    squares: Array  # (n,), the diagonal of VᵀV
    memory: int = MEMORY  # bytes that may be used

    @property
    def room(self) -> int:
        """Bytes that imagined rows may take; beyond that they are streamed."""
        return self.memory // _ROWS_SHARE

    def of(self, cols: Indices) -> Array:
        """Columns of V, (m, len(cols))."""
        return namespace(self.squares).concat([layer.of(cols) for layer in self.layers], axis=0)

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights w (m, p): (len(cols), p)."""
        ends = np.cumsum([len(layer) for layer in self.layers]).tolist()
        parts = [
            layer.product(cols, weights[end - len(layer) : end])
            for layer, end in zip(self.layers, ends, strict=True)
        ]
        return reduce(operator.add, parts)

    def on(self, indices: Indices) -> ExplainedCovariance:
        """The term restricted to a subset of the candidates."""
        layers = tuple(layer.on(indices) for layer in self.layers)
        return replace(self, layers=layers, squares=self.squares[indices])

    def also(self, rows: Array) -> ExplainedCovariance:
        """With further rows (p, n).

        Held layers merge like the digits of a binary counter, so that k rows added one by one are
        copied log k times each.
        """
        squares = self.squares + sum_of_squares(rows)
        layers = self.layers
        while layers and isinstance(last := layers[-1], HeldRows) and len(last) <= len(rows):
            rows, layers = namespace(rows).concat([last.rows, rows], axis=0), layers[:-1]
        return replace(self, layers=(*layers, HeldRows(rows)), squares=squares)


def held_rows(rows: Array) -> ExplainedCovariance:
    """The term VᵀV of rows V (m, n) held in memory.

    >>> held_rows(np.array([[1.0, 2.0]])).squares
    array([1., 4.])
    """
    return ExplainedCovariance((HeldRows(rows),), sum_of_squares(rows))


@dataclass(frozen=True)
class Evidence:
    """The observations of one Gaussian process, for pathwise draws and gradients."""

    at: Array  # (m, d)
    factor: Array  # (m, m), lower Cholesky factor of K + noise at these points
    weights: Array  # (m,), so that μ(x) = constant + Σ_i w_i k(x, x_i)
    noise: Array  # (m,) variance of each observation

    def with_imagined(self, each: Sequence[Imagined], noise: float) -> Evidence:
        """The real and the imagined observations together.

        An imagined value equals the mean, so it has weight zero and μ stays.
        """
        m, more = len(self.at), sum(len(one.at) for one in each)
        factor = np.zeros((m + more, m + more))
        factor[:m, :m] = self.factor
        low = m
        for one in each:
            high = low + len(one.at)
            factor[low:high, :low], factor[low:high, low:high] = one.rows, one.corner
            low = high
        return Evidence(
            np.vstack([self.at, *(one.at for one in each)]),
            factor,
            np.concatenate([self.weights, np.zeros(more)]),
            np.concatenate([self.noise, np.full(more, noise)]),
        )


class Imagined(NamedTuple):
    """p candidates that are observed in thought, given m observations, with values unknown.

    They add the rows C⁻¹ Σ_J· to V, with C Cᵀ = Σ_JJ + σ²I.
    """

    at: Array  # (p, d)
    rows: Array  # (p, m), their columns of V so far, transposed
    corner: Array  # C (p, p), lower Cholesky factor
