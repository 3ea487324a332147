r"""Explained: what observations have explained of a covariance, V (m, n) with Σ = K - VᵀV.

V has a row for each observation and a column for each candidate: for a thousand of the one and a
million of the other it would take 8 GB. So it comes in layers, some held in memory and some made
anew, chunk by chunk, whenever they are needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple, Protocol

import numpy as np

from covey.arrays import Array, Indices, beside, host, namespace, solve_lower, sum_of_squares
from covey.chunks import each_chunk
from covey.resources import MEMORY
from covey.whitening import Whitening

SHARE = 2  # V may take one part in two of it: as much as half of that is copied for a region
_ROWS_SHARE = 4  # and rows that a batch imagines one part in four, before they are not held either


class Layer(Protocol):
    """Some rows of V."""

    def __len__(self) -> int:
        """How many."""
        ...

    def of(self, cols: Indices) -> Array:
        """These columns, (rows, len(cols))."""
        ...

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights w (rows, p): (len(cols), p)."""
        ...

    def on(self, indices: Indices) -> Layer:
        """The same rows for some of the candidates."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Rows held in memory."""

    rows: Array  # (m, n)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def of(self, cols: Indices) -> Array:
        """Read off."""
        return self.rows[:, cols]

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """Cost len(cols) · m · p; of most candidates without a copy."""
        if isinstance(cols, slice):
            return self.rows[:, cols].T @ weights
        return Sifted(self.rows, cols).product(slice(None), weights)

    def on(self, indices: Indices) -> Layer:
        """A copy of some columns; of more than half of them, only their places."""
        few = 2 * len(indices) <= self.rows.shape[1]
        return Held(self.rows[:, indices]) if few else Sifted(self.rows, indices)


@dataclass(frozen=True, slots=True, eq=False)
class Sifted:
    """Rows held in memory for more candidates than these, of which they are not copied."""

    rows: Array  # (m, N)
    places: Indices  # (n,)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def of(self, cols: Indices) -> Array:
        """Read off."""
        return self.rows[:, self.places[cols]]

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """Cost len(cols) · m · p, or N · m · p if these are most."""
        places = self.places[cols]
        if 2 * len(places) > self.rows.shape[1]:
            return (self.rows.T @ weights)[places]
        return self.rows[:, places].T @ weights

    def on(self, indices: Indices) -> Layer:
        """As of what holds them."""
        return Held(self.rows).on(self.places[indices])


class Survey(NamedTuple):
    """What one pass over the candidates finds."""

    sums: Array  # (n,), Σ_i w_i k(x_i, ·)
    squares: Array  # (n,), the diagonal of VᵀV
    layer: Layer


@dataclass(frozen=True, eq=False)
class Streamed:
    """C⁻¹ k(X, ·) for observations at X, made when asked for.

    A product takes one value of the kernel for each pair and no m² for each candidate, since
    V[:, cols]ᵀ w = k(cols, X) C⁻ᵀ w.
    """

    kernel: Callable[[Array, Array], Array]
    seen: Array  # X (m, d), in the same place as the candidates
    factor: Array  # C (m, m), on the host
    at: Array  # (n, d)
    memory: int  # bytes that may be taken

    def __len__(self) -> int:
        return int(self.seen.shape[0])

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self.factor, self.at)

    def of(self, cols: Indices) -> Array:
        """Cost len(cols) · m²."""
        return self._whiten(self.kernel(self.seen, self.at[cols]))

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """Cost len(cols) · m · (d + p)."""
        at = self.at[cols]
        back = beside(solve_lower(self.factor, host(weights), transposed=True), at)
        parts = each_chunk(lambda part: self.kernel(at[part], self.seen) @ back, at, len(self))
        return namespace(at).concat(list(parts), axis=0)

    def on(self, indices: Indices) -> Layer:
        """Held, if that takes no more than its share of the memory."""
        some = Streamed(self.kernel, self.seen, self.factor, self.at[indices], self.memory)
        return some.survey(np.zeros(len(self))).layer if some.fits else some

    @property
    def fits(self) -> bool:
        """Whether all of it may be held."""
        return 8 * len(self) * len(self.at) <= self.memory // SHARE

    def survey(self, weights: Array) -> Survey:
        """One pass: weighted sums of the kernel, the squares, and the rows if they may be held."""
        weights, held = beside(weights, self.at), self._room() if self.fits else None
        xp = namespace(self.at)

        def some(part: slice) -> tuple[Array, Array]:
            cross = self.kernel(self.seen, self.at[part])
            white = self._whiten(cross)
            if held is not None:
                held[:, part] = white
            return weights @ cross, sum_of_squares(white)

        sums, squares = zip(*each_chunk(some, self.at, len(self)), strict=True)
        layer = self if held is None else Held(held)
        return Survey(xp.concat(sums), xp.concat(squares), layer)

    def _room(self) -> Array:
        xp = namespace(self.at)
        shape = (len(self), len(self.at))
        room: Array = xp.empty(shape, dtype=self.at.dtype, device=self.at.device)
        return room


@dataclass(frozen=True, eq=False)
class Explained:
    """V in layers, and the diagonal of VᵀV."""

    layers: tuple[Layer, ...]
    squares: Array  # (n,)
    memory: int = MEMORY  # bytes that may be taken
    base: int = 1  # layers that are no looks of a batch

    @property
    def room(self) -> int:
        """Bytes that further rows may take; more are made when asked for."""
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

    def on(self, indices: Indices) -> Explained:
        """Of some of the candidates."""
        layers = tuple(layer.on(indices) for layer in self.layers)
        return replace(self, layers=layers, squares=self.squares[indices])

    def with_looks(self, layer: Layer, squares: Array) -> Explained:
        """With one layer for all looks of a batch, and these squares in all."""
        return replace(self, layers=(*self.layers[: self.base], layer), squares=squares)

    def also(self, rows: Array) -> Explained:
        """With further rows (p, n).

        Held layers grow as the digits of a counter do, so that adding k rows one by one copies
        each log k times and not k.
        """
        squares = self.squares + sum_of_squares(rows)
        layers = self.layers
        while (
            len(layers) > self.base
            and isinstance(last := layers[-1], Held)
            and len(last) <= len(rows)
        ):
            rows, layers = namespace(rows).concat([last.rows, rows], axis=0), layers[:-1]
        return replace(self, layers=(*layers, Held(rows)), squares=squares)


def held(rows: Array) -> Explained:
    """V given outright, (m, n).

    >>> held(np.array([[1.0, 2.0]])).squares
    array([1., 4.])
    """
    return Explained((Held(rows),), sum_of_squares(rows))
