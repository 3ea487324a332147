r"""Gaussian: one joint Gaussian about f at n candidates, with its covariance by blocks.

Notation: μ (n,) and Σ (n, n) are mean and covariance of f, σ² is the noise variance of one look.
Σ is never formed: it is a prior covariance given by blocks, less what observations have explained,
Σ = K - VᵀV with V (m, n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from covey.arrays import (
    Array,
    Indices,
    beside,
    cholesky,
    host,
    namespace,
    plus_diagonal,
    solve_lower,
)
from covey.belief.evidence import Evidence
from covey.belief.explained import Explained
from covey.belief.looked import Looked
from covey.belief.looks import Looks
from covey.errors import NumericsError
from covey.whitening import Whitening

_EXACT_DRAW = 4000  # candidates up to which a joint draw factorises Σ; above it is pathwise
LEAST_VARIANCE = 1e-12  # of the prior's: below this a standard deviation is rounding error


class Prior(Protocol):
    """Prior covariance of the candidates (what a kernel, or a foreign model, provides)."""

    @property
    def diagonal(self) -> Array:
        """Prior variances (n,)."""
        ...

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Covariances (len(rows), len(cols))."""
        ...

    def columns(self, cols: Indices) -> Array:
        """Covariances (n, len(cols))."""
        ...

    def on(self, indices: Indices) -> Prior:
        """The prior of a subset."""
        ...

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array
    ) -> tuple[Callable[[slice], Array], Array]:
        """Joint prior draws: at the candidates, some of them at a time; and elsewhere."""
        ...

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """Gradient at the candidates of Σ_i w_i k(·, x_i)."""
        ...


@dataclass(frozen=True)
class DensePrior:
    """A covariance matrix given outright: how a foreign model enters when n is small.

    >>> from covey.belief import Belief
    >>> belief = Belief.dense(at=np.zeros((2, 1)), mean=[0, 1], cov=np.eye(2), noise=0.1)
    >>> belief.after_looking_at([1]).var.round(3)
    array([1.   , 0.091])
    """

    matrix: Array  # (n, n)

    @property
    def diagonal(self) -> Array:
        """Variances (n,)."""
        return self.matrix.diagonal()

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Covariances (len(rows), len(cols))."""
        return self.matrix[np.ix_(rows, cols)]

    def columns(self, cols: Indices) -> Array:
        """Covariances (n, len(cols))."""
        return self.matrix[:, cols]

    def on(self, indices: Indices) -> DensePrior:
        """The prior of a subset."""
        return DensePrior(self.block(indices, indices))

    def paths(
        self, rng: np.random.Generator, draws: int, elsewhere: Array
    ) -> tuple[Callable[[slice], Array], Array]:
        """Not needed: without evidence a draw is exact."""
        raise NumericsError("a covariance matrix knows nothing elsewhere.")

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """Not to be had."""
        raise NumericsError("a covariance matrix has no gradient.")


@dataclass(frozen=True)
class Gaussian:
    """One joint Gaussian about f at n candidates, and the noise of a future look.

    Mean and variances are on the host; covariances are where the candidates are.
    """

    prior: Prior
    mean: Array  # (n,)
    explained: Explained  # V (m, n)
    noise: float  # σ²
    evidence: Evidence | None = None
    looks: Looks | None = None  # that a batch has imagined

    @cached_property
    def left(self) -> Array:
        """σ²(x) = k(x, x) - Σ_m V², kept above rounding error."""
        prior = self.prior.diagonal
        return namespace(prior).maximum(prior - self.explained.squares, LEAST_VARIANCE * prior)

    @property
    def var(self) -> Array:
        """The variances (n,), on the host."""
        return host(self.left)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Posterior covariances (len(rows), len(cols)).

        Where V is made on demand, m² for each of the fewer, m for each of the others.
        """
        if len(rows) < len(cols):
            return self.block(cols, rows).T
        inner = self.explained.product(rows, self.explained.of(cols))
        return self.prior.block(rows, cols) - inner

    def columns(self, cols: Indices) -> Array:
        """Posterior covariances (n, len(cols)). Cost n · len(cols) · (m + d)."""
        inner = self.explained.product(slice(None), self.explained.of(cols))
        return self.prior.columns(cols) - inner

    def on(self, indices: Indices) -> Gaussian:
        """The same Gaussian about a subset."""
        return replace(
            self,
            prior=self.prior.on(indices),
            mean=self.mean[indices],
            explained=self.explained.on(indices),
            looks=None if self.looks is None else self.looks.on(indices),
        )

    def after_looking_at(self, indices: Indices, at: Array, on: Indices | None = None) -> Gaussian:
        r"""Once the candidates ``indices`` (at ``at``) will have been observed; of a subset ``on``.

        .. math:: \Sigma' = \Sigma - \Sigma_{\cdot J}(\Sigma_{JJ} + \sigma^2 I)^{-1}\Sigma_{J\cdot}
        """
        corner = cholesky(plus_diagonal(host(self.block(indices, indices)), self.noise))
        looks = Looks.none(self) if self.looks is None else self.looks
        looks = looks.also(indices, host(at), corner)
        rest, explained = self if on is None else self.on(on), self.explained
        if on is not None:
            looks, explained = looks.on(on), rest.explained
        if self.looks is None:
            explained = replace(explained, base=len(explained.layers))
        if 8 * len(looks) * len(rest.mean) <= explained.room:
            columns = self.columns(indices) if on is None else self.block(on, indices)
            explained = explained.also(Whitening(corner, columns)(columns.T))
        else:
            layer = Looked(looks)
            before = looks.before.explained.squares[looks.places]
            explained = explained.with_looks(layer, before + layer.squares())
        return replace(rest, explained=explained, looks=looks)

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """Joint draws (draws, n): exact while n is small, pathwise (Matheron's rule) above.

        A pathwise draw stands on random Fourier features. With Matérn kernels and next to no
        noise their error shows near the data: standard deviations off by a third were seen at
        σ² = 1e-6.
        """
        return np.concatenate(list(self.each_draw(rng, draws)))

    def each_draw(self, rng: np.random.Generator, draws: int) -> Iterator[Array]:
        """The same draws, as many at a time as a part of the memory holds.

        All that is random is drawn at once: the memory decides how much is worked out together,
        and nothing else.
        """
        n, seen = len(self.mean), self.evidence if self.looks is None else self.looks.evidence
        if seen is None or n <= _EXACT_DRAW:
            every = np.arange(n)
            # Rounding in K - VᵀV is relative to K, however little of it is left.
            prior = float(host(self.prior.diagonal).mean())
            factor = cholesky(host(self.block(every, every)), prior)
            yield self.mean + rng.standard_normal((draws, n)) @ factor.T
            return
        here, there = self.prior.paths(rng, draws, seen.at)
        noisy = there + rng.standard_normal(there.shape) * np.sqrt(seen.noise)
        weights = solve_lower(seen.factor, noisy.T)
        size = max(1, self.explained.room // (16 * n))  # of draws, and half as much to make them
        for low in range(0, draws, size):
            some = slice(low, low + size)
            wrong = self.explained.product(
                slice(None), beside(weights[:, some], self.explained.squares)
            )
            yield self.mean + here(some) - host(wrong).T
