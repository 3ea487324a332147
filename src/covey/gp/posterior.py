"""Posterior: the model after the data, ready to be asked about any candidates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Mask, beside, cholesky, host, plus_diagonal, solve_lower
from covey.belief import LEAST_VARIANCE, Belief, Gaussian
from covey.gp.fit import MANY
from covey.kernels import KernelMatrix, squared_distance
from covey.large.lowrank import Evidence, Explained, Streamed
from covey.large.resources import MEMORY, each_chunk, side_by_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from covey.gp.model import Model
    from covey.gp.observations import Observations
    from covey.kernels import Kernel


@dataclass(frozen=True)
class Posterior:
    """Fitted models conditioned on observations and on pending locations.

    Where there are ``failures``, the mean is lowered around them. ``known`` is the mean and the
    standard deviation of f where values were told (`Recall.told`), which beliefs carry along.
    """

    models: tuple[Model, ...]
    evidence: tuple[Evidence, ...]  # one per model
    data: Observations
    failures: Failures | None = None
    known: tuple[Array, Array] | None = None

    def belief(self, at: Array, round: int = 1, memory: int = MEMORY) -> Belief:
        """Posterior of f at the candidates (n, d), an array or a tensor on any device.

        One pass over them. Cost per model n·m² + n·m·d, m observations; it takes at most so many
        bytes of ``memory``.
        """
        share = memory // len(self.models)
        parts = tuple(
            self._part(model, seen, at, share)
            for model, seen in zip(self.models, self.evidence, strict=True)
        )
        open_looks = len(self.evidence[0].at) - len(self.data.at)
        looks = self.data.looks + open_looks
        return Belief(at, parts, self.data.best, round, looks, self.known)

    def _part(self, model: Model, seen: Evidence, at: Array, memory: int) -> Gaussian:
        made = Streamed(model.kernel, beside(seen.at, at), seen.factor, at, memory)
        survey = made.survey(seen.weights)
        mean = model.mean + host(survey.sums)
        return Gaussian(
            prior=KernelMatrix(model.kernel, at),
            mean=mean if self.failures is None else self.failures.lowered(mean, at),
            explained=Explained((survey.layer,), survey.squares, memory),
            noise=model.noise,
            evidence=seen,
        )

    @property
    def size(self) -> int:
        """How many models."""
        return len(self.models)

    @property
    def rows(self) -> int:
        """Distinct points it is conditioned on, those under way included."""
        return len(self.evidence[0].at)

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f in the units of the observations.

        f is the mean of a look, E[y | f_w], also where outcomes were bent: there f_w is the
        median, and noise that is even after the bend is skewed before it. So the mean is E[y].
        """
        belief = self.belief(at)
        return self.moments(belief.mean, belief.std)

    def moments(self, mean: Array, std: Array, *, of_f: bool = True) -> tuple[Array, Array]:
        """Those of f where a belief has these, in the units of the observations; or of a look."""
        noise = self._noise if of_f else 0.0
        centre, spread = self.data.warp.moments(mean, std, noise)
        return self.data.shift + self.data.scale * centre, self.data.scale * spread

    def expected(self, values: Array) -> Array:
        """The mean of a look where a belief has these values, in the units of the observations."""
        return self.data.shift + self.data.scale * self.data.warp.expected(values, self._noise)

    @property
    def _noise(self) -> float:
        """Standard deviation of one look, of all models."""
        return float(np.sqrt(np.mean([model.noise for model in self.models])))

    def outcome(self, values: Array) -> Array:
        """Values of a belief in the units of the observations, not far beyond what was seen."""
        return self.data.shift + self.data.scale * self.data.warp.straighten(values)

    def bound(self, values: Array) -> Array:
        """Bounds on a belief in the units of the observations, however far; ±∞ where none is."""
        return self.data.shift + self.data.scale * self.data.warp.undone(values)

    def upper(self, at: Array, width: float) -> tuple[Array, Array]:
        """μ + width · σ at (n, d) and its gradient (n, d), averaged over the models."""
        value, gradient = np.zeros(len(at)), np.zeros_like(at)
        share = 1.0 / len(self.models)
        for model, seen in zip(self.models, self.evidence, strict=True):
            kernel = model.kernel
            r2 = squared_distance(seen.at, at, kernel.lengths)
            cross, slope = kernel.at_distance(r2), 2.0 * kernel.slope(r2)
            white = solve_lower(seen.factor, cross)
            variance = kernel.variance - np.einsum("mn,mn->n", white, white)
            std = np.sqrt(np.maximum(variance, LEAST_VARIANCE * kernel.variance))
            mean = model.mean + seen.weights @ cross
            # ∂μ = Σ_i w_i ∂k_i and ∂σ = -Σ_i (K⁻¹k)_i ∂k_i / σ, with ∂k_i = 2k' (x - x_i)/ℓ².
            fall = solve_lower(seen.factor, white, transposed=True) * (width / std)
            weights = seen.weights[:, None]
            if self.failures is None:
                rise = _moved(at, seen.at, slope * (weights - fall), kernel.lengths)
            else:
                rise = _moved(at, seen.at, slope * weights, kernel.lengths)
                mean, rise = self.failures.climbed(mean, rise, at)
                rise = rise - _moved(at, seen.at, slope * fall, kernel.lengths)
            value += share * (mean + width * std)
            gradient += share * rise
        return value, gradient


def _moved(at: Array, seen: Array, pull: Array, lengths: tuple[float, ...]) -> Array:
    """Σ_i pull_i (x - x_i)/ℓ² at (n, d), for pulls (m, n)."""
    moved = at * pull.sum(axis=0)[:, None] - pull.T @ seen
    return moved / np.square(lengths)


def condition(
    models: Sequence[Model], data: Observations, pending: Array | None = None
) -> Posterior:
    r"""Condition each model on the data, and its covariance on pending locations (p, d).

    .. math:: \mu = m + k_*^\top (K + D)^{-1} (y - m), \qquad
              \Sigma = k_{**} - k_*^\top (K + D)^{-1} k_*

    The mean ignores what is pending, the covariance does not. Cost per model (n + p)³/3.
    """
    pending = data.at[:0] if pending is None else pending
    at, n = np.vstack([data.at, pending]), len(data.at)
    evidence = []
    for model in models:
        noise = np.concatenate([data.noise(model.noise), np.full(len(pending), model.noise)])
        factor = cholesky(plus_diagonal(model.kernel(at, at), noise))
        # The leading block of the factor is the factor of the leading block.
        head = factor[:n, :n]
        weights = solve_lower(head, solve_lower(head, data.values - model.mean), transposed=True)
        weights = np.concatenate([weights, np.zeros(len(pending))])
        evidence.append(Evidence(at, factor, weights, noise))
    return Posterior(tuple(models), tuple(evidence), data)


# Factor: the Cholesky factor of many observations' covariance, grown as observations come.
#
# Notation: A = K + D at m observations, A = L Lᵀ, in blocks of 256 rows and columns; I and J
# number the blocks, and <J stands for all before J.

BLOCK = 256  # rows: enough for matrix products to run at full speed, little enough to make anew


@dataclass(frozen=True, eq=False)
class Factor:
    r"""L of the rows ``at``, which can be grown by further rows.

    .. math:: L_{IJ} = (A_{IJ} - L_{I,<J} L_{J,<J}^\top) L_{JJ}^{-\top}

    A whole block is made from itself and from what comes before it, by products whose shapes do
    not depend on what comes after: it is the same to the last bit whether it was made at once, or
    grown, or by how many threads. Only whole blocks are taken over when a factor grows.

    >>> from covey.kernels import Matern52
    >>> at = np.linspace(0.0, 1.0, 5)[:, None]
    >>> some = empty(Matern52((0.5,)), 1).grown(at[:3], np.full(3, 0.1))
    >>> np.allclose(some.grown(at, np.full(5, 0.1)).lower[:3, :3], some.lower)
    True
    """

    kernel: Kernel
    at: Array  # (m, d)
    noise: Array  # (m,), the diagonal D
    lower: Array  # L (m, m), by rows
    _shares: list[Array] = field(default_factory=list)  # of whole blocks, see `precision`

    def __len__(self) -> int:
        return len(self.at)

    def grown(self, at: Array, noise: Array) -> Factor:
        """The factor of other rows: those it begins with like this one are not made again.

        Cost m² for each new row; memory m² beside the old factor.
        """
        shared = min(_common(self.at, at), _common(self.noise, noise))
        if shared == len(self) == len(at):
            return self
        head = shared // BLOCK
        lower = np.zeros((len(at), len(at)))
        for rows in _blocks(head * BLOCK):
            lower[rows, : rows.stop] = self.lower[rows, : rows.stop]
        made = Factor(self.kernel, at, noise, lower, self._shares[:head])
        made._fill(head)
        return made

    def _fill(self, head: int) -> None:
        """Make the blocks of all rows but the first ``head`` of them."""
        blocks = _blocks(len(self))
        list(side_by_side(self._covariances, blocks[head:]))
        for j, cols in enumerate(blocks):
            if j >= head:
                self._corner(cols)
            # The blocks of a column do not need each other.
            list(side_by_side(partial(self._below, cols), blocks[max(j + 1, head) :]))

    def _covariances(self, rows: slice) -> None:
        """K up to the diagonal, where L will be."""
        self.lower[rows, : rows.stop] = self.kernel(self.at[rows], self.at[: rows.stop])

    def _corner(self, cols: slice) -> None:
        left = self.lower[cols, : cols.start]
        corner = plus_diagonal(self.lower[cols, cols], self.noise[cols]) - left @ left.T
        # Rounding is relative to the prior, however little of it is left.
        self.lower[cols, cols] = cholesky(corner, self.kernel.variance)

    def _below(self, cols: slice, rows: slice) -> None:
        lower = self.lower
        block = lower[rows, cols] - lower[rows, : cols.start] @ lower[cols, : cols.start].T
        lower[rows, cols] = solve_lower(_copy(lower[cols, cols]), block.T).T

    @property
    def precision(self) -> Array:
        r"""The diagonal of A⁻¹, (m,): column sums of squares of L⁻¹, block by block.

        Cost m³/3 once, then m² for each new row.
        """
        blocks, done = _blocks(len(self)), len(self._shares)
        made = list(side_by_side(self._share, blocks[done:]))
        whole = len(self) // BLOCK
        self._shares.extend(made[: whole - done])
        total = np.zeros(len(self))
        for share in (*self._shares, *made[max(whole - done, 0) :]):
            total[: len(share)] += share
        return total

    def _share(self, rows: slice) -> Array:
        """What the rows of L⁻¹ of one block add: L_II⁻¹ (X, 1) with X L_{<I} = -L_{I,<I}."""
        lower = self.lower
        inverse = np.zeros((rows.stop - rows.start, rows.stop))
        inverse[:, rows] = np.eye(rows.stop - rows.start)
        left = inverse[:, : rows.start]
        left[:] = -lower[rows, : rows.start]
        for cols in reversed(_blocks(rows.start)):
            after = slice(cols.stop, rows.start)
            block = left[:, cols] - left[:, after] @ lower[after, cols]
            left[:, cols] = solve_lower(_copy(lower[cols, cols]), block.T, transposed=True).T
        white = solve_lower(_copy(lower[rows, rows]), inverse)
        return np.einsum("ij,ij->j", white, white)


def empty(kernel: Kernel, width: int) -> Factor:
    """The factor of no rows, to grow from."""
    return Factor(kernel, np.zeros((0, width)), np.zeros(0), np.zeros((0, 0)))


def _blocks(stop: int) -> list[slice]:
    return [slice(low, min(low + BLOCK, stop)) for low in range(0, stop, BLOCK)]


def _copy(block: Array) -> Array:
    """LAPACK would copy a part of a larger array anyway, and by columns."""
    return np.ascontiguousarray(block)


def _common(a: Array, b: Array) -> int:
    """How many rows two arrays begin with alike."""
    n = min(len(a), len(b))
    differ = np.any(a[:n] != b[:n], axis=tuple(range(1, a.ndim)))
    return int(np.argmax(differ)) if differ.any() else n


# Recall: what conditioning on many results leaves behind, to make the next one quick.

_DROWNED = 1e4  # variances of f: above so much noise its own formula loses digits


class Recall:
    """Keeps the factors of the last conditioning and grows them: speed changes, no bit of a result.

    An empty one gives the same posteriors (see `Factor`). Few observations leave nothing behind.
    """

    def __init__(self) -> None:
        self._kept: dict[Kernel, Factor] = {}

    def condition(
        self, models: Sequence[Model], data: Observations, pending: Array | None = None
    ) -> Posterior:
        """As `covey.gp.condition`; of many rows, at a cost of m² for each new one."""
        pending = data.at[:0] if pending is None else pending
        if len(data) + len(pending) <= MANY:
            self._kept = {}
            return condition(models, data, pending)
        at = np.vstack([data.at, pending])
        kernels = {model.kernel for model in models}
        self._kept = {kernel: old for kernel, old in self._kept.items() if kernel in kernels}
        evidence = tuple(self._evidence(model, data, at) for model in models)
        return Posterior(tuple(models), evidence, data)

    def _evidence(self, model: Model, data: Observations, at: Array) -> Evidence:
        n, more = len(data), len(at) - len(data)
        noise = np.concatenate([data.noise(model.noise), np.full(more, model.noise)])
        old = self._kept.get(model.kernel) or empty(model.kernel, at.shape[1])
        factor = self._kept[model.kernel] = old.grown(at, noise)
        # What is pending has no value: with its mean for one, it carries no weight.
        residual = np.concatenate([data.values - model.mean, np.zeros(more)])
        white = solve_lower(factor.lower, residual)
        white[n:] = 0.0
        weights = solve_lower(factor.lower, white, transposed=True)
        return Evidence(at, factor.lower, weights, noise)

    def told(self, posterior: Posterior) -> tuple[Array, Array]:
        r"""Mean and standard deviation of f where its values are known, (n,) each.

        .. math:: \mu = y - D\alpha, \qquad \sigma_i^2 = d_i - d_i^2 (A^{-1})_{ii}

        for A = K + D and α = A⁻¹(y - m). Of many rows this takes a third of what a belief about
        them would, and no memory; and only what new rows add to A⁻¹ is made anew.
        """
        data, models = posterior.data, posterior.models
        noises = [seen.noise[: len(data)] for seen in posterior.evidence]
        drowned = any(
            noise.max() > _DROWNED * model.kernel.variance
            for noise, model in zip(noises, models, strict=True)
        )
        if drowned or len(posterior.evidence[0].at) <= MANY:
            belief = posterior.belief(data.at)
            return belief.mean, belief.std
        means, variances = [], []
        for model, seen, noise in zip(models, posterior.evidence, noises, strict=True):
            left = noise - np.square(noise) * self._factor(model, seen).precision[: len(data)]
            variances.append(np.maximum(left, LEAST_VARIANCE * model.kernel.variance))
            mean = data.values - noise * seen.weights[: len(data)]
            failures = posterior.failures
            means.append(mean if failures is None else failures.lowered(mean, data.at))
        spread = np.mean(variances, axis=0) + np.var(means, axis=0)
        return np.mean(means, axis=0), np.sqrt(spread)

    def _factor(self, model: Model, seen: Evidence) -> Factor:
        kept = self._kept.get(model.kernel)
        if kept is not None and kept.lower is seen.factor:
            return kept
        return Factor(model.kernel, seen.at, seen.noise, seen.factor)


# Failures: the mean a batch is chosen by, where a failed trial counts as the worst told.
#
# Notation: q(x) is the share of what was tried around x that failed, y_w the worst value told.

# Our choices, in the unit cube. How far a trial speaks, as a share of the way to the nearest that
# ended otherwise: results less far than failures, or many of them far away would drown a failure.
_TOLD, _FAILED = 0.25, 0.35
_LEAST, _MOST = 1e-4, 0.25  # of that reach; the most per root dimension
_NOBODY = 0.03  # trials that count as told everywhere: where nobody was, nothing is said


@dataclass(frozen=True, eq=False)
class Failures:
    r"""Where trials were told, where they failed, and what a failure is taken for.

    .. math:: q(x) = \frac{\sum_{i\ failed} k_i(x)}{c + \sum_i k_i(x)}, \quad
              k_i(x) = e^{-|x - x_i|^2 / 2h_i^2}, \qquad \mu'(x) = \mu(x) - q(x) [\mu(x) - y_w]_+

    So μ' is what is expected of a trial that fails with probability q and is then worth y_w. A
    failure amid results reaches hardly beyond itself; failures that are among themselves take
    the region between them away, and results told there give it back.
    """

    at: Array  # (m, d) encoded: told, then failed
    reach: Array  # (m,), h
    failed: Mask  # (m,)
    worst: float  # y_w, in units of the mean

    @staticmethod
    def among(told: Array, failed: Array, worst: float) -> Failures:
        """Those at ``failed`` (f, d), beside those told (n, d)."""
        apart = np.sqrt(squared_distance(told, failed, (1.0,) * told.shape[1]))
        near = np.concatenate([_TOLD * apart.min(axis=1), _FAILED * apart.min(axis=0)])
        reach = np.clip(near, _LEAST, _MOST * np.sqrt(told.shape[1]))
        return Failures(np.vstack([told, failed]), reach, np.arange(len(reach)) >= len(told), worst)

    def share(self, at: Array) -> Array:
        """q at (n, d), on the host. Cost n · m · d."""
        at = host(at)

        def some(part: slice) -> Array:
            weights = self._weights(at[part])
            return (self.failed @ weights) / (_NOBODY + weights.sum(axis=0))

        return np.concatenate(list(each_chunk(some, at, len(self.at))))

    def lowered(self, mean: Array, at: Array) -> Array:
        """μ' where the mean is μ (n,), at (n, d)."""
        return mean - self.share(at) * np.maximum(mean - self.worst, 0.0)

    def climbed(self, mean: Array, slope: Array, at: Array) -> tuple[Array, Array]:
        """μ' (n,) and its gradient (n, d), from those of μ."""
        weights = self._weights(at)
        total = _NOBODY + weights.sum(axis=0)
        share = (self.failed @ weights) / total
        # ∂q = Σ_i (1_failed - q) ∂k_i / total, with ∂k_i = k_i (x_i - x)/h².
        pull = (self.failed[:, None] - share) * weights / np.square(self.reach)[:, None] / total
        steep = pull.T @ self.at - at * pull.sum(axis=0)[:, None]
        above = np.maximum(mean - self.worst, 0.0)
        kept = np.where(above > 0.0, 1.0 - share, 1.0)
        return mean - share * above, kept[:, None] * slope - above[:, None] * steep

    def _weights(self, at: Array) -> Array:
        """k_i (m, n)."""
        r2 = squared_distance(self.at, at, (1.0,) * self.at.shape[1])
        weights: Array = np.exp(-0.5 * r2 / np.square(self.reach)[:, None])
        return weights
