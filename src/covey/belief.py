"""What is believed about f at some candidates: all that a strategy sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from covey.arrays import (
    Array,
    Indices,
    Mask,
    Whitening,
    beside,
    cholesky,
    host,
    namespace,
    plus_diagonal,
    solve_lower,
)
from covey.covariance import Covariance, Dense, Information, RandomFunction
from covey.errors import NumericsError
from covey.large.lowrank import Evidence, Explained, Looked, Looks, held_rows

# Gaussian: one joint Gaussian about f at n candidates, with its covariance by blocks.
#
# Notation: μ (n,) and Σ (n, n) are mean and covariance of f, σ² is the noise variance of one
# look. Σ is never formed: it is a prior covariance given by blocks, less what observations have
# explained, Σ = K - VᵀV with V (m, n).

_EXACT_DRAW = 4000  # candidates up to which a joint draw factorises Σ; above it is pathwise
LEAST_VARIANCE = 1e-12  # of the prior's: below this a standard deviation is rounding error


@dataclass(frozen=True)
class Gaussian:
    """One joint Gaussian about f at n candidates, and the noise of a future look.

    As a `Covariance` it is its own Σ, and what is left of it after a look is a Gaussian again.

    Mean and variances are on the host; covariances are where the candidates are.
    """

    prior: Covariance
    mean: Array  # (n,)
    explained: Explained  # V (m, n)
    noise: float  # σ²
    evidence: Evidence | None = None
    looks: Looks | None = None  # that a batch has imagined

    @cached_property
    def diagonal(self) -> Array:
        """σ²(x) = k(x, x) - Σ_m V², kept above rounding error."""
        prior = self.prior.diagonal
        return namespace(prior).maximum(prior - self.explained.squares, LEAST_VARIANCE * prior)

    @property
    def var(self) -> Array:
        """The variances (n,), on the host."""
        return host(self.diagonal)

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
        if seen is None or n <= _EXACT_DRAW or not isinstance(self.prior, RandomFunction):
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


# Belief: the narrow waist between any model and any choice.


@dataclass(frozen=True)
class Belief:
    """Joint belief about f at n candidates: the only thing a strategy sees.

    With sampled hyper-parameters a belief is several Gaussians (``parts``), equally weighted; a
    policy scores each of its ``members`` and averages. Usually there is one.
    """

    at: Array  # (n, d)
    parts: tuple[Gaussian, ...]
    best: float  # largest value observed so far
    round: int = 1  # the paper's t: batches asked for, this one included
    looks: int = 0  # number of observations, those under way included
    told: tuple[Array, Array] | None = None  # mean and standard deviation where values are known
    shortlisted_from: int | None = None  # candidates in all, where these are the best of more
    resolution: Array | None = None  # (d,): candidates closer than this in every column are copies
    levels: tuple[slice, ...] = ()  # columns of each parameter that has levels or options
    under_way: Array | None = None  # (p, d): points asked for whose values are not known yet

    @staticmethod
    def dense(
        at: Array, mean: Sequence[float] | Array, cov: Array, noise: float, best: float = 0.0
    ) -> Belief:
        """A belief from a mean and a covariance matrix: how a foreign model enters, if n is small.

        >>> belief = Belief.dense(at=np.zeros((2, 1)), mean=[0, 1], cov=np.eye(2), noise=0.1)
        >>> belief.after_looking_at([1]).var.round(3)
        array([1.   , 0.091])
        """
        mean, cov = np.asarray(mean, dtype=float), np.asarray(cov, dtype=float)
        return Belief(
            np.asarray(at, dtype=float),
            (Gaussian(Dense.of(cov), mean, held_rows(np.zeros((0, len(mean)))), float(noise)),),
            best,
        )

    def __len__(self) -> int:
        return len(self.at)

    @property
    def offered(self) -> int:
        """How many candidates there are in all."""
        return len(self) if self.shortlisted_from is None else self.shortlisted_from

    @property
    def members(self) -> tuple[Belief, ...]:
        """The beliefs this one averages; itself if there is one."""
        if len(self.parts) == 1:
            return (self,)
        return tuple(replace(self, parts=(part,)) for part in self.parts)

    @cached_property
    def mean(self) -> Array:
        """μ (n,)."""
        if len(self.parts) == 1:
            return _guarded(self.parts[0].mean)
        return np.mean([part.mean for part in self.parts], axis=0)

    @cached_property
    def var(self) -> Array:
        """σ² (n,): the mean variance plus the variance of the means."""
        if len(self.parts) == 1:
            return _guarded(self.parts[0].var)
        within = np.mean([part.var for part in self.parts], axis=0)
        return within + np.var([part.mean for part in self.parts], axis=0)

    @cached_property
    def std(self) -> Array:
        """σ (n,), positive."""
        return np.sqrt(self.var)

    @property
    def noise(self) -> float:
        """Variance of one future look."""
        return float(np.mean([part.noise for part in self.parts]))

    def columns(self, indices: Sequence[int] | Indices) -> Array:
        """Columns (n, len) of the posterior covariance."""
        cols = np.asarray(indices, dtype=np.intp)
        within = np.mean([host(part.columns(cols)) for part in self.parts], axis=0)
        if len(self.parts) == 1:
            return np.asarray(within)
        spread = np.array([part.mean - self.mean for part in self.parts])
        return np.asarray(within + spread.T @ spread[:, cols] / len(self.parts))

    def on(self, indices: Sequence[int] | Indices) -> Belief:
        """The belief about a subset of the candidates."""
        keep = np.asarray(indices, dtype=np.intp)
        return replace(self, at=self.at[keep], parts=tuple(part.on(keep) for part in self.parts))

    def after_looking_at(
        self, indices: Sequence[int] | Indices, on: Sequence[int] | Indices | None = None
    ) -> Belief:
        """The belief once these candidates will have been observed, their values unknown.

        Only the covariance moves, and it does not depend on the values; that is what makes
        batches possible at all. With ``on``, the belief about a subset.
        """
        cols = np.asarray(indices, dtype=np.intp)
        keep = None if on is None else np.asarray(on, dtype=np.intp)
        parts = tuple(part.after_looking_at(cols, self.at[cols], keep) for part in self.parts)
        return replace(self, at=self.at if keep is None else self.at[keep], parts=parts)

    def copies_of(self, points: Array) -> Mask:
        """Which candidates lie within the resolution of one of the points (m, d), (n,)."""
        found = np.zeros(len(self), dtype=bool)
        if self.resolution is None:
            return found
        at = host(self.at)
        for point in host(points):
            # Column by column, since few are left after the first: a pool has a million rows.
            close = np.arange(len(at))
            for j, least in enumerate(self.resolution):
                close = close[np.abs(at[close, j] - point[j]) < least]
            found[close] = True
        return found

    def highest_lower(self, width: float) -> float:
        """The largest μ - width·σ, among candidates and where values are known."""
        return self.highest_upper(-width)

    def highest_upper(self, width: float) -> float:
        """The largest μ + width·σ, among candidates and where values are known."""
        known = [(self.mean, self.std), *([] if self.told is None else [self.told])]
        return max(float((mean + width * std).max()) for mean, std in known)

    def information(self) -> Information:
        """The kernel I + Σ/σ² of the DPP (eq. of Algorithm 2, MATH 0.6), by columns."""
        noises = tuple(part.noise for part in self.parts)
        return Information(self.parts, noises, self.parts[0].explained.room)

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """Joint posterior draws (draws, n), shared evenly among the members."""
        if len(self.parts) == 1:
            return self.parts[0].draw(rng, draws)
        # Which member a row comes from is random, so that fewer draws than members favour none.
        owner = rng.permutation(len(self.parts))[np.arange(draws) % len(self.parts)]
        drawn = np.empty((draws, len(self)))
        for i, part in enumerate(self.parts):
            mine = np.flatnonzero(owner == i)
            if len(mine):
                drawn[mine] = part.draw(rng, len(mine))
        return drawn[rng.permutation(draws)]

    def each_draw(self, rng: np.random.Generator, draws: int) -> Iterator[Array]:
        """The same draws, (n,) one after the other; of one member they are not held all at once."""
        if len(self.parts) > 1:
            yield from self.draw(rng, draws)
        else:
            for some in self.parts[0].each_draw(rng, draws):
                yield from some

    @property
    def slope(self) -> float:
        """The largest gradient norm of the mean over the candidates (for local penalisation)."""
        gradient = np.zeros(tuple(self.at.shape))
        for part in self.parts:
            if part.evidence is None or not isinstance(part.prior, RandomFunction):
                raise NumericsError(
                    "a belief given as a covariance matrix has no gradient, and local penalisation "
                    "needs one. Use another strategy, or a belief made by covey.gp."
                )
            slope = part.prior.gradient(part.evidence.at, part.evidence.weights)
            gradient = gradient + slope / len(self.parts)
        return float(np.linalg.norm(gradient, axis=1).max())


def _guarded(array: Array) -> Array:
    """The same numbers, which a strategy cannot write over."""
    view = array.view()
    view.flags.writeable = False
    return view
