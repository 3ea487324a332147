"""ExplainedCovariance: what observations have explained of a covariance, V (m, n) with Σ = K - VᵀV.

V has a row for each observation and a column for each candidate: for a thousand of the one and a
million of the other it would take 8 GB. So it comes in layers, some held in memory and some made
anew, chunk by chunk, whenever they are needed.
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
class HeldRows:
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
        return SelectedRows(self.rows, cols).product(slice(None), weights)

    def on(self, indices: Indices) -> Layer:
        """A copy of some columns; of more than half of them, only their places."""
        few = 2 * len(indices) <= self.rows.shape[1]
        return HeldRows(self.rows[:, indices]) if few else SelectedRows(self.rows, indices)


@dataclass(frozen=True, slots=True, eq=False)
class SelectedRows:
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
        return HeldRows(self.rows).on(self.places[indices])


class PassResult(NamedTuple):
    """What one pass over the candidates finds."""

    sums: Array  # (n,), Σ_i w_i k(x_i, ·)
    squares: Array  # (n,), the diagonal of VᵀV
    layer: Layer


@dataclass(frozen=True, eq=False)
class StreamedRows:
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
        back = like(solve_lower(self.factor, to_numpy(weights), transposed=True), at)
        parts = each_chunk(lambda part: self.kernel(at[part], self.seen) @ back, at, len(self))
        return namespace(at).concat(list(parts), axis=0)

    def on(self, indices: Indices) -> Layer:
        """HeldRows, if that takes no more than its share of the memory."""
        some = StreamedRows(self.kernel, self.seen, self.factor, self.at[indices], self.memory)
        return some.survey(np.zeros(len(self))).layer if some.fits else some

    @property
    def fits(self) -> bool:
        """Whether all of it may be held."""
        return 8 * len(self) * len(self.at) <= self.memory // SHARE

    def survey(self, weights: Array) -> PassResult:
        """One pass: weighted sums of the kernel, the squares, and the rows if they may be held."""
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

    def on(self, indices: Indices) -> ExplainedCovariance:
        """Of some of the candidates."""
        layers = tuple(layer.on(indices) for layer in self.layers)
        return replace(self, layers=layers, squares=self.squares[indices])

    def with_looks(self, layer: Layer, squares: Array) -> ExplainedCovariance:
        """With one layer for all looks of a batch, and these squares in all."""
        return replace(self, layers=(*self.layers[: self.base], layer), squares=squares)

    def also(self, rows: Array) -> ExplainedCovariance:
        """With further rows (p, n).

        Held layers grow as the digits of a counter do, so that adding k rows one by one copies
        each log k times and not k.
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
    """V given outright, (m, n).

    >>> held_rows(np.array([[1.0, 2.0]])).squares
    array([1., 4.])
    """
    return ExplainedCovariance((HeldRows(rows),), sum_of_squares(rows))


# ImaginedRows: the rows that imagined looks add to V, where they are too many to be held.
#
# .. math:: V' = \begin{pmatrix} V \\ C^{-1}\Sigma_{J\cdot} \end{pmatrix}, \qquad CC^\top =
# \Sigma_{JJ} + \sigma^2 I

_ENTRIES, _ROWS = 2**24, 1024  # of a slab, 128 MiB; and at least so many rows (our choice)


class ImaginedRows:
    """C⁻¹ Σ_J· for all looks at candidates J of a Gaussian, made when asked for."""

    def __init__(self, looks: ImaginedLooks) -> None:
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
        """HeldRows, if the memory allows it."""
        if 8 * len(self) * len(indices) <= self._before.explained.room:
            return HeldRows(self.of(indices))
        return ImaginedRows(self._looks.on(indices))

    def _slabs(self, cols: Indices | slice) -> Iterator[Indices]:
        chosen = np.arange(len(self._looks.places))[cols]
        size = max(_ROWS, _ENTRIES // len(self))
        return (chosen[low : low + size] for low in range(0, max(1, len(chosen)), size))


# Evidence: where observations were made and what they weigh, for pathwise draws and gradients.


@dataclass(frozen=True)
class Evidence:
    """Observations of one Gaussian process."""

    at: Array  # (m, d)
    factor: Array  # (m, m), lower Cholesky factor of K + noise at these points
    weights: Array  # (m,), so that μ(x) = constant + Σ_i w_i k(x, x_i)
    noise: Array  # (m,) variance of each observation


# ImaginedLooks: candidates that are imagined observed, one after the other, their values unknown.


class ImaginedLook(NamedTuple):
    """Some candidates, given all looks before."""

    names: Indices  # (p,), among the candidates of the Gaussian before all looks
    at: Array  # (p, d)
    corner: Array  # (p, p), lower Cholesky factor of their covariance, noise included


@dataclass(frozen=True, eq=False)
class ImaginedLooks:
    """All looks since a Gaussian that imagined none; what follows from them is made when asked for.

    A batch imagines its picks one by one and seldom asks; and a factor of ten thousand observations
    takes 800 MB to copy.
    """

    before: Gaussian
    places: Indices  # of the present candidates among those of before
    each: tuple[ImaginedLook, ...] = ()

    @staticmethod
    def none(before: Gaussian) -> ImaginedLooks:
        """Before the first."""
        return ImaginedLooks(before, np.arange(len(before.mean)))

    def also(self, indices: Indices, at: Array, corner: Array) -> ImaginedLooks:
        """With some of the present candidates."""
        return replace(self, each=(*self.each, ImaginedLook(self.places[indices], at, corner)))

    def on(self, indices: Indices) -> ImaginedLooks:
        """For some of the present candidates."""
        return replace(self, places=self.places[indices])

    def __len__(self) -> int:
        return sum(len(look.names) for look in self.each)

    @cached_property
    def names(self) -> Indices:
        """Of all of them, (p,)."""
        return np.concatenate([look.names for look in self.each])

    @cached_property
    def corner(self) -> Array:
        """Lower Cholesky factor (p, p) of their covariance before, noise included."""
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
        """What was observed and what is imagined."""
        seen, p = self.before.evidence, len(self)
        if seen is None:
            return None
        m = len(seen.at)
        factor = np.zeros((m + p, m + p))
        factor[:m, :m], factor[m:, m:] = seen.factor, self.corner
        factor[m:, :m] = to_numpy(self.before.explained.of(self.names)).T
        # An imagined value equal to the mean carries no weight: μ does not move.
        weights = np.concatenate([seen.weights, np.zeros(p)])
        noise = np.concatenate([seen.noise, np.full(p, self.before.noise)])
        return Evidence(
            np.vstack([seen.at, *(look.at for look in self.each)]), factor, weights, noise
        )
