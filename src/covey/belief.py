r"""Belief: the narrow waist between any model and any choice.

Notation: n candidates at coordinates ``at`` (n, d); μ (n,) and Σ (n, n): mean and covariance of f
there; σ² is the noise variance of one look. Σ is never formed: it is a prior covariance given by
blocks, less what observations have explained, Σ = K - VᵀV with V (m, n).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from covey.arrays import cholesky, solve_lower
from covey.errors import NumericsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.arrays import Array, Indices

_EXACT_DRAW = 2000  # candidates up to which a joint draw factorises Σ; above it is pathwise
_LEAST_VARIANCE = 1e-12  # of the prior's: below this a standard deviation is rounding error


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

    def paths(self, rng: np.random.Generator, draws: int, elsewhere: Array) -> tuple[Array, Array]:
        """Joint prior draws at the candidates and elsewhere."""
        ...

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """Gradient at the candidates of Σ_i w_i k(·, x_i)."""
        ...


@dataclass(frozen=True)
class DensePrior:
    """A covariance matrix given outright: how a foreign model enters when n is small.

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

    def paths(self, rng: np.random.Generator, draws: int, elsewhere: Array) -> tuple[Array, Array]:
        """A matrix knows nothing elsewhere; its draws are exact."""
        here = rng.standard_normal((draws, len(self.matrix))) @ cholesky(self.matrix).T
        return here, np.zeros((draws, len(elsewhere)))

    def gradient(self, elsewhere: Array, weights: Array) -> Array:
        """A matrix has no gradient."""
        raise NumericsError(
            "a belief given as a covariance matrix has no gradient; local penalisation needs one. "
            "Use another strategy, or a belief made by covey.gp."
        )


@dataclass(frozen=True)
class Evidence:
    """Where observations were made and what they weigh, for pathwise draws and gradients."""

    at: Array  # (m, d)
    factor: Array  # (m, m), lower Cholesky factor of K + noise at these points
    weights: Array  # (m,), so that μ(x) = constant + Σ_i w_i k(x, x_i)
    noise: Array  # (m,) variance of each observation


@dataclass(frozen=True)
class Gaussian:
    """One joint Gaussian about f at n candidates, and the noise of a future look."""

    prior: Prior
    mean: Array  # (n,)
    explained: Array  # V (m, n)
    noise: float  # σ²
    evidence: Evidence | None = None

    @cached_property
    def var(self) -> Array:
        """σ²(x) = k(x, x) - Σ_m V², kept above rounding error."""
        prior = self.prior.diagonal
        left = prior - np.einsum("mn,mn->n", self.explained, self.explained)
        return np.maximum(left, _LEAST_VARIANCE * prior)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Posterior covariances (len(rows), len(cols))."""
        return self.prior.block(rows, cols) - self.explained[:, rows].T @ self.explained[:, cols]

    def columns(self, cols: Indices) -> Array:
        """Posterior covariances (n, len(cols)). Cost n · len(cols) · (m + d)."""
        return self.prior.columns(cols) - self.explained.T @ self.explained[:, cols]

    def on(self, indices: Indices) -> Gaussian:
        """The same Gaussian about a subset."""
        return replace(
            self,
            prior=self.prior.on(indices),
            mean=self.mean[indices],
            explained=self.explained[:, indices],
        )

    def after_looking_at(self, indices: Indices, at: Array) -> Gaussian:
        r"""Once the candidates ``indices`` (at ``at``) will have been observed.

        .. math:: \Sigma' = \Sigma - \Sigma_{\cdot J}(\Sigma_{JJ} + \sigma^2 I)^{-1}\Sigma_{J\cdot}
        """
        columns = self.columns(indices)
        corner = cholesky(columns[indices] + self.noise * np.eye(len(indices)))
        explained = np.vstack([self.explained, solve_lower(corner, columns.T)])
        evidence = self.evidence
        if evidence is not None:
            old, new = len(evidence.at), len(indices)
            factor = np.zeros((old + new, old + new))
            factor[:old, :old], factor[old:, old:] = evidence.factor, corner
            factor[old:, :old] = self.explained[:, indices].T
            evidence = Evidence(
                np.vstack([evidence.at, at]),
                factor,
                # An imagined value equal to the mean carries no weight: μ does not move.
                np.concatenate([evidence.weights, np.zeros(new)]),
                np.concatenate([evidence.noise, np.full(new, self.noise)]),
            )
        return replace(self, explained=explained, evidence=evidence)

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """Joint draws (draws, n): exact while n is small, pathwise (Matheron's rule) above."""
        n = len(self.mean)
        if self.evidence is None or n <= _EXACT_DRAW:
            every = np.arange(n)
            factor = cholesky(self.block(every, every))
            return self.mean + rng.standard_normal((draws, n)) @ factor.T
        seen = self.evidence
        here, there = self.prior.paths(rng, draws, seen.at)
        noisy = there + rng.standard_normal(there.shape) * np.sqrt(seen.noise)
        return self.mean + here - solve_lower(seen.factor, noisy.T).T @ self.explained


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
    looks: int = 0  # number of observations

    @staticmethod
    def dense(
        at: Array, mean: Sequence[float] | Array, cov: Array, noise: float, best: float = 0.0
    ) -> Belief:
        """A belief from a mean and a covariance matrix."""
        mean, cov = np.asarray(mean, dtype=float), np.asarray(cov, dtype=float)
        return Belief(
            np.asarray(at, dtype=float),
            (Gaussian(DensePrior(cov), mean, np.zeros((0, len(mean))), float(noise)),),
            best,
        )

    def __len__(self) -> int:
        return len(self.at)

    @property
    def members(self) -> tuple[Belief, ...]:
        """The beliefs this one averages; itself if there is one."""
        if len(self.parts) == 1:
            return (self,)
        return tuple(replace(self, parts=(part,)) for part in self.parts)

    @cached_property
    def mean(self) -> Array:
        """μ (n,)."""
        return np.mean([part.mean for part in self.parts], axis=0)

    @cached_property
    def var(self) -> Array:
        """σ² (n,): the mean variance plus the variance of the means."""
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
        within = np.mean([part.columns(cols) for part in self.parts], axis=0)
        if len(self.parts) == 1:
            return np.asarray(within)
        spread = np.array([part.mean - self.mean for part in self.parts])
        return np.asarray(within + spread.T @ spread[:, cols] / len(self.parts))

    def on(self, indices: Sequence[int] | Indices) -> Belief:
        """The belief about a subset of the candidates."""
        keep = np.asarray(indices, dtype=np.intp)
        return replace(self, at=self.at[keep], parts=tuple(part.on(keep) for part in self.parts))

    def after_looking_at(self, indices: Sequence[int] | Indices) -> Belief:
        """The belief once these candidates will have been observed, their values unknown.

        Only the covariance moves, and it does not depend on the values; that is what makes
        batches possible at all.
        """
        cols = np.asarray(indices, dtype=np.intp)
        parts = tuple(part.after_looking_at(cols, self.at[cols]) for part in self.parts)
        return replace(self, parts=parts)

    def information(self) -> Information:
        """The kernel I + Σ/σ² of the DPP (eq. of Algorithm 2, MATH 0.6), by columns."""
        return Information(self.parts)

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """Joint posterior draws (draws, n), shared evenly among the members."""
        shares = np.bincount(np.arange(draws) % len(self.parts), minlength=len(self.parts))
        return np.vstack(
            [part.draw(rng, int(share)) for part, share in zip(self.parts, shares, strict=True)]
        )

    @property
    def slope(self) -> float:
        """The largest gradient norm of the mean over the candidates (for local penalisation)."""
        gradient = np.zeros_like(self.at)
        for part in self.parts:
            seen = part.evidence or Evidence(self.at[:0], *(np.zeros((0, 0)),) * 3)
            gradient = gradient + part.prior.gradient(seen.at, seen.weights) / len(self.parts)
        return float(np.linalg.norm(gradient, axis=1).max())


@dataclass(frozen=True)
class Information:
    """I + mean over members of Σ/σ²: what ``covey.dpp`` takes as L. All eigenvalues are >= 1."""

    parts: tuple[Gaussian, ...]

    @cached_property
    def diagonal(self) -> Array:
        """1 + σ²(x)/σ² (n,)."""
        return 1.0 + np.mean([part.var / part.noise for part in self.parts], axis=0)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Entries (len(rows), len(cols)) of the kernel."""
        inner = np.mean([part.block(rows, cols) / part.noise for part in self.parts], axis=0)
        return np.asarray(inner + np.equal.outer(rows, cols))

    def columns(self, cols: Indices) -> Array:
        """Columns (n, len(cols)) of the kernel."""
        out = np.mean([part.columns(cols) / part.noise for part in self.parts], axis=0)
        out[cols, np.arange(len(cols))] += 1.0
        return np.asarray(out)
