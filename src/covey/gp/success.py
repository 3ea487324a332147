"""Where trials succeed: a Gaussian process classifier of the trials told and failed.

Notation: y = 1 where a trial was told, -1 where it failed; g(x) is a latent function with a
Gaussian process prior, and p(x) = P(y = 1) = E Φ(g(x)) the probability of success.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from covey.arrays import Array, Indices, cholesky, log_normal_cdf, plus_diagonal, solve_lower
from covey.gp.model import PRIORS, LogNormal, Model
from covey.gp.observations import Observations
from covey.gp.posterior import condition
from covey.kernels import KERNELS, Kernel, squared_distance

if TYPE_CHECKING:
    from covey.gp.model import GP, Prior
    from covey.gp.posterior import Posterior

ENOUGH = 3  # failures from which on they are modelled; of fewer little can be said (our choice)
MOST = 300  # labels that are modelled; of more, so many are picked
# Taken off the log evidence of θ at its most probable, which has chosen its hyper-parameters after
# the fact, before it is compared with that of chance (our choice).
_OCCAM, _OCCAM_EACH = 1.0, 0.25  # ... and so much for each hyper-parameter


@dataclass(frozen=True, eq=False)
class Success:
    r"""The probability of success, by two models: one of where trials fail, one of chance alone.

    .. math:: p(x) = v\, \Phi(m(x) / \sqrt{1 + s^2(x)}) + (1 - v)\, p_0, \qquad
              g(x) \sim N(m(x), s^2(x))

    v is the posterior probability of the first. By the second all trials succeed with the same
    probability, p₀ by the rule of succession: where failures have nothing to do with the point, no
    point is to be avoided because of them.

    g is Gaussian by expectation propagation (Rasmussen & Williams 2006, section 3.6): each label
    acts as an observation ν/τ of g with variance 1/τ. So g is kept as the posterior of these, and
    read, streamed and climbed like any other.
    """

    latent: Posterior
    where: float = 1.0  # v
    chance: float = 0.5  # p₀
    # Odds of success among the labels that are modelled, over those among all: 1, unless there are
    # so many that results and failures were picked at different rates.
    favoured: float = 1.0

    @staticmethod
    def among(
        told: Array,
        failed: Array,
        gp: GP,
        rng: np.random.Generator,
        groups: tuple[int, ...] | None = None,
    ) -> Success:
        """Learnt from the points told (n, d) and failed (f, d), with the kernel and priors of gp.

        ``groups`` (d,): columns that share a length-scale. Cost some 200 (n + f)³, of at most
        `MOST` points.
        """
        counts = len(told), len(failed)
        told, failed = informative_labels(told, failed, rng)
        at, label = np.vstack([told, failed]), np.repeat([1.0, -1.0], [len(told), len(failed)])
        labels = Labels(at, label, gp, groups)
        theta = labels.most_probable()
        # Under chance alone, with p₀ uniform: n! f! / (n + f + 1)!
        alone = math.lgamma(len(told) + 1) + math.lgamma(len(failed) + 1)
        alone -= math.lgamma(len(at) + 2)
        odds = labels.value_and_gradient(theta)[0] - alone - _OCCAM - _OCCAM_EACH * len(theta)
        return replace(
            labels.success(theta),
            where=0.5 + 0.5 * math.tanh(0.5 * odds),
            chance=(counts[0] + 1) / (sum(counts) + 2),
            favoured=(len(told) * counts[1]) / (len(failed) * counts[0]),
        )

    def probability(self, at: Array) -> Array:
        """p at the points (n, d): (n,), on the host. Cost n·m² for m labels, in one pass."""
        belief = self.latent.belief(at, memory=0)  # streamed: nothing of it is needed later
        here = self._among_all(np.exp(log_normal_cdf(belief.mean / np.sqrt(1.0 + belief.var))))[0]
        return self.where * here + (1.0 - self.where) * self.chance

    def _among_all(self, p: Array) -> tuple[Array, Array]:
        """Probabilities among all labels from those among the modelled, and their derivative."""
        share = p + (1.0 - p) * self.favoured
        return p / share, self.favoured / np.square(share)

    def climbed(self, above: Array, slope: Array, at: Array) -> tuple[Array, Array]:
        """p · above (n,) and its gradient (n, d), from a score ``above`` and its ``slope``."""
        mean, rise = self.latent.upper(at, 0.0)
        upper, steep = self.latent.upper(at, 1.0)
        std, widening = upper - mean, steep - rise
        spread = np.sqrt(1.0 + np.square(std))
        z = mean / spread
        # ∂z = ∂m / S - z ∂S / S with S = √(1 + s²), so ∂S = s ∂s / S.
        turn = rise / spread[:, None] - (z * std / np.square(spread))[:, None] * widening
        p, steeper = self._among_all(np.exp(log_normal_cdf(z)))
        p = self.where * p + (1.0 - self.where) * self.chance
        density = self.where * steeper * np.exp(-0.5 * np.square(z)) / math.sqrt(2.0 * math.pi)
        slope, above = np.where(above[:, None] > 0.0, slope, 0.0), np.maximum(above, 0.0)
        return p * above, p[:, None] * slope + (above * density)[:, None] * turn


def informative_labels(told: Array, failed: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """At most `MOST` of the points told (n, d) and failed (f, d): what tells most about borders.

    Up to a quarter of them are failures at random, each with the result nearest to it; the rest
    are results at random. `Success.favoured` makes up for the shares.
    """
    if len(told) + len(failed) <= MOST:
        return told, failed
    few = np.sort(rng.permutation(len(failed))[: max(MOST // 4, MOST - len(told))])
    ones = (1.0,) * told.shape[1]
    near: Indices = squared_distance(failed[few], told, ones).argmin(axis=1)
    order = np.concatenate([near, rng.permutation(len(told))])
    _, first = np.unique(order, return_index=True)
    kept = order[np.sort(first)][: MOST - len(few)]
    return told[np.sort(kept)], failed[few]


# Expectation propagation, and the most probable hyper-parameters under it.

_LENGTHS, _VARIANCE, _MEAN = (1e-2, 1e3), (1e-2, 1e4), 10.0  # bounds of the fit
_SHARP = LogNormal(4.0, 3.0)  # prior of the variance of g: borders may be sharp (our choice)
_SWEEPS, _CLOSE, _DAMPED = 60, 1e-4, 0.4  # of the propagation: how many, until, and its steps
_LEAST_PRECISION = 1e-8  # of a label: one that was certain tells next to nothing
_ITERATIONS = 60


class Sites(NamedTuple):
    """What each label says about g - m: a Gaussian with precision τ and mean ν/τ, (n,) each."""

    tau: Array
    nu: Array

    def near(self, other: Sites, close: float) -> bool:
        """Whether the two differ by no more than ``close``, as a share of the largest."""
        return all(
            np.abs(a - b).max() <= close * max(1.0, float(np.abs(a).max()))
            for a, b in zip(self, other, strict=True)
        )


class Sweep(NamedTuple):
    """One pass over all labels: the sites it was made with, and the sites that it found."""

    sites: Sites
    found: Sites
    factor: Array  # (n, n), Cholesky factor of B = I + τ½ K τ½
    centre: Array  # (n,), mean of g - m
    precision: Array  # (n,), of g at a label given all others (its cavity)
    away: Array  # (n,), mean of g - m there
    logs: Array  # (n,), log Z_i: of the probability of a label given all others
    pull: Array  # (n,), ∂ log Z_i / ∂ m


@dataclass(frozen=True)
class Labels:
    """log p(y | θ) + log p(θ) by expectation propagation; θ = (log ℓ_1 .. log ℓ_g, log s, m)."""

    at: Array  # (n, d)
    y: Array  # (n,), 1 or -1
    gp: GP
    groups: tuple[int, ...] | None = None  # (d,) number of each column's length-scale

    @cached_property
    def _scales(self) -> int:
        """The number of length-scales, g."""
        return self.at.shape[1] if self.groups is None else max(self.groups) + 1

    @cached_property
    def _priors(self) -> tuple[Prior, ...]:
        """The prior of each entry of θ but m, which is N(0, 1)."""
        return (*(PRIORS[self.gp.priors](self.at.shape[1]).length,) * self._scales, _SHARP)

    def most_probable(self) -> Array:
        """The most probable θ, by L-BFGS-B."""
        from scipy.optimize import minimize

        last: list[Sites | None] = [None]  # where the next propagation starts

        def loss(theta: Array) -> tuple[float, Array]:
            value, gradient, last[0] = self.value_and_gradient(theta, last[0])
            return -value, -gradient

        boxes = [*(_LENGTHS,) * self._scales, _VARIANCE]
        bounds = [*((math.log(a), math.log(b)) for a, b in boxes), (-_MEAN, _MEAN)]
        start = np.array([*(prior.start for prior in self._priors), 0.0])
        found = minimize(
            loss,
            np.clip(start, *np.array(bounds).T),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _ITERATIONS, "ftol": 1e-5, "gtol": 1e-2},
        )
        return np.asarray(found.x)

    def success(self, theta: Array) -> Success:
        """The probability of success at θ, by the first model alone."""
        kernel, mean = self._unpack(theta)
        tau, nu = self._propagated(kernel(self.at, self.at), mean, None, _CLOSE).sites
        tau = np.maximum(tau, _LEAST_PRECISION)
        one, none = np.ones(len(tau)), np.zeros(len(tau))
        data = Observations(self.at, mean + nu / tau, one, 1.0 / tau, none, none, 0.0, 1.0)
        return Success(condition([Model(kernel, 1.0, mean)], data))

    def value_and_gradient(
        self, theta: Array, start: Sites | None = None, close: float = _CLOSE
    ) -> tuple[float, Array, Sites]:
        """The log posterior of θ (eq. 3.65), its gradient (5.27) and the sites. Cost some 20 n³.

        At the fixed point of the propagation the derivative by way of the sites vanishes.
        """
        g = self._scales
        kernel, mean = self._unpack(theta)
        r2 = squared_distance(self.at, self.at, kernel.lengths)
        gram = kernel.at_distance(r2)
        last = self._propagated(gram, mean, start, close)
        (tau, nu), precision, away = last.sites, last.precision, last.away
        value = last.logs.sum() - np.log(np.diagonal(last.factor)).sum() - 0.5 * mean * mean
        value += 0.5 * (np.log1p(tau / precision).sum() + nu @ last.centre)
        shift = away * precision * (tau * away - 2.0 * nu) - nu * nu
        value += 0.5 * (shift / (tau + precision)).sum()
        half = solve_lower(last.factor, np.diag(np.sqrt(tau)))
        inverse = half.T @ half  # (K + τ⁻¹)⁻¹
        alpha = nu - inverse @ (gram @ nu)
        weight = np.outer(alpha, alpha) - inverse
        bent = weight * kernel.slope(r2)
        x = (self.at - self.at.mean(axis=0)) / np.asarray(kernel.lengths)
        slopes = np.empty(g + 2)  # ½ tr(weight ∂K/∂θ), as in `covey.gp.Likelihood`
        each = -2.0 * (bent.sum(axis=1) @ np.square(x) - np.einsum("id,id->d", x, bent @ x))
        slopes[:g] = each if self.groups is None else np.bincount(self.groups, each)
        slopes[g] = 0.5 * np.sum(weight * gram)
        slopes[g + 1] = last.pull.sum() - mean
        for i, prior in enumerate(self._priors):
            density, slope = prior.log_density(theta[i])
            # Less its height at the start, so that evidence compares whatever the prior.
            density = density - prior.log_density(np.asarray(prior.start))[0]
            value, slopes[i] = value + float(density), slopes[i] + float(slope)
        return float(value), slopes, last.sites

    def _propagated(self, gram: Array, mean: float, start: Sites | None, close: float) -> Sweep:
        """The last sweep, after which the sites would move by no more than ``close``.

        All sites are updated at once, in damped steps.
        """
        none = np.zeros(len(self.y))
        sweep = self._sweep(gram, mean, Sites(none, none) if start is None else start)
        for _ in range(_SWEEPS):
            if sweep.sites.near(sweep.found, close):
                break
            moved = zip(sweep.sites, sweep.found, strict=True)
            sites = Sites(*(old + _DAMPED * (new - old) for old, new in moved))
            sweep = self._sweep(gram, mean, sites)
        return sweep

    def _sweep(self, gram: Array, mean: float, sites: Sites) -> Sweep:
        """Every site anew, from the moments of its label with what all others say (eq. 3.58)."""
        tau, nu = sites
        root = np.sqrt(tau)
        factor = cholesky(plus_diagonal(root[:, None] * gram * root, np.ones(len(tau))))
        white = solve_lower(factor, root[:, None] * gram)
        variance = np.diagonal(gram) - np.einsum("ij,ij->j", white, white)
        centre = gram @ nu - white.T @ (white @ nu)
        precision = np.maximum(1.0 / variance - tau, _LEAST_PRECISION)
        natural = centre / variance - nu
        away, spread = natural / precision, np.sqrt(1.0 + 1.0 / precision)
        z = self.y * (away + mean) / spread
        logs = log_normal_cdf(z)
        ratio = np.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - logs)
        pull = self.y * ratio / spread
        narrowed = 1.0 - ratio * (z + ratio) / (1.0 + precision)
        found = Sites(
            np.maximum(precision / narrowed - precision, _LEAST_PRECISION),
            (natural + pull) / narrowed - natural,
        )
        return Sweep(sites, found, factor, centre, precision, away, logs, pull)

    def _unpack(self, theta: Array) -> tuple[Kernel, float]:
        """The kernel and the constant mean at θ."""
        g = self._scales
        values = np.exp(theta[: g + 1])
        lengths = values[:g] if self.groups is None else values[list(self.groups)]
        kernel = KERNELS[self.gp.kernel](tuple(map(float, lengths)), float(values[g]))
        return kernel, float(theta[g + 1])
