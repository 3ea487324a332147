"""The low-rank part of a posterior covariance: V (m, n) with Σ = K - VᵀV, in layers of rows.

V has a row for each of m observations and a column for each of n candidates; a thousand by a
million would take 8 GB. So a layer of rows is held in memory (`HeldRows`, `SelectedRows`) or
computed in chunks whenever it is needed (`StreamedRows` for observations, `ImaginedRows` for the
future observations that a batch imagines). `Evidence` holds the observations of one Gaussian
process, `ImaginedLooks` the imagined ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple, Protocol

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

if TYPE_CHECKING:
    from covey.belief import Gaussian


# Shares of the memory: V is held if it takes at most a half, since a region may copy as much again
# as half of that; rows that a batch imagines are held up to a quarter.
SHARE = 2
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
        """V[:, cols]ᵀ w. Cost len(cols) · m · p; no copy if these are most of the candidates."""
        if isinstance(cols, slice):
            return self.rows[:, cols].T @ weights
        return SelectedRows(self.rows, cols).product(slice(None), weights)

    def on(self, indices: Indices) -> Layer:
        """A copy of these columns; if they are more than half, only their places."""
        few = 2 * len(indices) <= self.rows.shape[1]
        return HeldRows(self.rows[:, indices]) if few else SelectedRows(self.rows, indices)


@dataclass(frozen=True, slots=True, eq=False)
class SelectedRows:
    """Rows for n of N candidates, read from the rows that are held for all N."""

    rows: Array  # (m, N)
    places: Indices  # (n,)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def of(self, cols: Indices) -> Array:
        """A copy of these columns."""
        return self.rows[:, self.places[cols]]

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w. Cost len(cols) · m · p, or N · m · p if these are more than half of N."""
        places = self.places[cols]
        if 2 * len(places) > self.rows.shape[1]:
            return (self.rows.T @ weights)[places]
        return self.rows[:, places].T @ weights

    def on(self, indices: Indices) -> Layer:
        """As `HeldRows.on` of the rows for all N."""
        return HeldRows(self.rows).on(self.places[indices])


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
    base: int = 1  # number of layers that belong to real observations

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

    def with_looks(self, layer: Layer, squares: Array) -> ExplainedCovariance:
        """With one layer for all imagined observations of a batch; ``squares`` (n,) of all V."""
        return replace(self, layers=(*self.layers[: self.base], layer), squares=squares)

    def also(self, rows: Array) -> ExplainedCovariance:
        """With further rows (p, n).

        Held layers merge like the digits of a binary counter, so that k rows added one by one are
        copied log k times each.
        """
        squares = self.squares + sum_of_squares(rows)
        layers = self.layers
        while (
            len(layers) > self.base
            and isinstance(last := layers[-1], HeldRows)
            and len(last) <= len(rows)
        ):
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


# Imagined observations: candidates that are observed in thought, one after the other, with values
# unknown. They add the rows C⁻¹ Σ_J· to V, with C Cᵀ = Σ_JJ + σ²I.

_ENTRIES, _ROWS = 2**20, 1024  # entries of a slab of columns, 8 MiB; its least size (our choice)


class ImaginedRows:
    """The rows C⁻¹ Σ_J· of all imagined observations J, computed when they are needed."""

    def __init__(self, looks: ImaginedLooks) -> None:
        self._looks, self._before = looks, looks.before

    def __len__(self) -> int:
        return len(self._looks)

    @cached_property
    def _own(self) -> Array:
        """The columns of V at J, (m, p)."""
        return self._before.explained.of(self._looks.names)

    @cached_property
    def _whiten(self) -> Whitening:
        return Whitening(self._looks.corner, self._before.explained.squares)

    def of(self, cols: Indices) -> Array:
        """V[:, cols] for these rows, (p, len(cols)). Cost len(cols) · p · (m + p)."""
        names = self._looks.places[cols]
        inner = self._before.explained.product(names, self._own)

        def some(part: slice) -> Array:
            covariances = self._before.prior.block(self._looks.names, names[part])
            return self._whiten(covariances - inner[part].T)

        made: Array = namespace(inner).concat(list(each_chunk(some, inner, len(self))), axis=1)
        return made

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """V[:, cols]ᵀ w by `of`, a slab of columns at a time."""
        parts = [self.of(slab).T @ weights for slab in self._slabs(cols)]
        product: Array = namespace(weights).concat(parts, axis=0)
        return product

    def squares(self) -> Array:
        """The sum of squares of each column, (n,)."""
        parts = [sum_of_squares(self.of(slab)) for slab in self._slabs(slice(None))]
        squares: Array = namespace(parts[0]).concat(parts, axis=0)
        return squares

    def on(self, indices: Indices) -> Layer:
        """The rows of these candidates: held if they fit in the room for imagined rows."""
        if 8 * len(self) * len(indices) <= self._before.explained.room:
            return HeldRows(self.of(indices))
        return ImaginedRows(self._looks.on(indices))

    def _slabs(self, cols: Indices | slice) -> Iterator[Indices]:
        """The columns in slabs whose rows take at most `_ENTRIES` entries."""
        chosen = np.arange(len(self._looks.places))[cols]
        size = max(_ROWS, _ENTRIES // len(self))
        return (chosen[low : low + size] for low in range(0, max(1, len(chosen)), size))


class ImaginedLook(NamedTuple):
    """One imagined observation of p candidates, given all before it."""

    names: Indices  # (p,), indices among the candidates of the first Gaussian
    at: Array  # (p, d)
    corner: Array  # (p, p), lower Cholesky factor of their covariance, noise included


@dataclass(frozen=True, eq=False)
class ImaginedLooks:
    """All imagined observations since the Gaussian ``before``, which has none.

    Factors are computed only when needed: a batch imagines its picks one by one and seldom needs
    them, and the factor of ten thousand observations takes 800 MB to copy.
    """

    before: Gaussian
    places: Indices  # (n,), indices of the present candidates among those of ``before``
    each: tuple[ImaginedLook, ...] = ()

    @staticmethod
    def none(before: Gaussian) -> ImaginedLooks:
        """No imagined observations."""
        return ImaginedLooks(before, np.arange(len(before.mean)))

    def also(self, indices: Indices, at: Array, corner: Array) -> ImaginedLooks:
        """With an imagined observation of these of the present candidates."""
        return replace(self, each=(*self.each, ImaginedLook(self.places[indices], at, corner)))

    def on(self, indices: Indices) -> ImaginedLooks:
        """The same observations, seen from a subset of the present candidates."""
        return replace(self, places=self.places[indices])

    def __len__(self) -> int:
        return sum(len(look.names) for look in self.each)

    @cached_property
    def names(self) -> Indices:
        """Indices J (p,) of all imagined observations among the candidates of ``before``."""
        return np.concatenate([look.names for look in self.each])

    @cached_property
    def corner(self) -> Array:
        """C, lower Cholesky factor (p, p) of Σ_JJ + σ²I under ``before``."""
        corner = np.zeros((len(self), len(self)))
        done = 0
        for look in self.each:
            end = done + len(look.names)
            if done:
                cross = to_numpy(self.before.block(self.names[:done], look.names))
                known = np.ascontiguousarray(corner[:done, :done])
                corner[done:end, :done] = Whitening(known, cross)(cross).T
            corner[done:end, done:end] = look.corner
            done = end
        return corner

    @cached_property
    def evidence(self) -> Evidence | None:
        """The real and the imagined observations together, m + p."""
        seen, p = self.before.evidence, len(self)
        if seen is None:
            return None
        m = len(seen.at)
        factor = np.zeros((m + p, m + p))
        factor[:m, :m], factor[m:, m:] = seen.factor, self.corner
        factor[m:, :m] = to_numpy(self.before.explained.of(self.names)).T
        # An imagined value equals the mean, so it has weight zero and μ stays.
        weights = np.concatenate([seen.weights, np.zeros(p)])
        noise = np.concatenate([seen.noise, np.full(p, self.before.noise)])
        return Evidence(
            np.vstack([seen.at, *(look.at for look in self.each)]), factor, weights, noise
        )
