"""The belief about f at n candidates: a posterior over a finite set, all that a strategy sees.

`Gaussian` is one joint Gaussian with its covariance by blocks; `Belief` averages several, one per
draw of the hyper-parameters, and is what strategies and policies take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NoReturn, Protocol, Self

import numpy as np

from covey.arrays import (
    Array,
    Indices,
    Mask,
    Whitening,
    cholesky,
    close_to,
    like,
    namespace,
    plus_diagonal,
    solve_lower,
    sum_of_squares,
    to_numpy,
)
from covey.covariance import Covariance, Dense, Information, RandomFunction, Scaled
from covey.errors import NumericsError, StrategyError
from covey.hypervolume import Front
from covey.kernels import KernelMatrix
from covey.large.lowrank import (
    Evidence,
    ExplainedCovariance,
    Imagined,
    StreamedRows,
    held_rows,
)

# Notation: μ (n,) and Σ (n, n) are mean and covariance of f, σ² is the noise variance of one
# observation. Σ is never formed: Σ = K - VᵀV, a prior covariance K given by blocks, less what m
# observations explain, V (m, n).

_EXACT_DRAW = 4000  # candidates up to which a joint draw factorises Σ; above it is pathwise
_SLAB = 2**20  # entries of imagined rows that are computed at a time, 8 MiB (our choice)
_TINY = 1e-300  # probability from which on candidates that hardly count are told apart
LEAST_VARIANCE = 1e-12  # as a fraction of the prior variance; smaller ones are rounding errors


@dataclass(frozen=True)
class Gaussian:
    """One joint Gaussian about f at n candidates, and the noise of a future observation.

    As a `Covariance` it is its own Σ; conditioned on an observation it is a Gaussian again. Mean
    and variances are on the host, covariances on the device of the candidates.
    """

    prior: Covariance
    mean: Array  # (n,)
    explained: ExplainedCovariance  # V (m, n)
    noise: float  # σ²
    evidence: Evidence | None = None
    imagined: tuple[Imagined, ...] = ()  # observations that a batch has imagined

    @cached_property
    def diagonal(self) -> Array:
        """σ²(x) = k(x, x) - Σ_m V², (n,), kept above rounding error."""
        prior = self.prior.diagonal
        return namespace(prior).maximum(prior - self.explained.squares, LEAST_VARIANCE * prior)

    @property
    def var(self) -> Array:
        """The variances (n,), on the host."""
        return to_numpy(self.diagonal)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Posterior covariances (len(rows), len(cols)).

        Where V is streamed, cost m² for each index on the shorter side and m on the longer.
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
        """The Gaussian restricted to a subset of the candidates."""
        return replace(
            self,
            prior=self.prior.on(indices),
            mean=self.mean[indices],
            explained=self.explained.on(indices),
        )

    def after_looking_at(self, indices: Indices, at: Array, on: Indices | None = None) -> Gaussian:
        r"""Conditioned on future observations at the candidates J = ``indices``, values unknown.

        .. math:: \Sigma' = \Sigma - \Sigma_{\cdot J}(\Sigma_{JJ} + \sigma^2 I)^{-1}\Sigma_{J\cdot}

        (MATH 1, hallucination.) The mean stays. ``at`` are the coordinates of J; the result is
        about the subset ``on``, or about all candidates. Cost n |J| (m + d + |J|).
        """
        own = self.explained.of(indices)
        here = to_numpy(self.prior.block(indices, indices) - own.T @ own)
        look = Imagined(to_numpy(at), to_numpy(own.T), cholesky(plus_diagonal(here, self.noise)))
        rest, every = (self, np.arange(len(self.mean))) if on is None else (self.on(on), on)
        whiten = Whitening(look.corner, own)

        def rows(some: slice) -> Array:
            inner = rest.explained.product(some, own)
            return whiten((self.prior.block(every[some], indices) - inner).T)

        return rest._with_imagined((*self.imagined, look), rows)

    def _with_imagined(
        self, imagined: tuple[Imagined, ...], rows: Callable[[slice], Array]
    ) -> Gaussian:
        """With these observations, the last of which adds ``rows`` to V, (p, n) for all candidates.

        Where the rows of all imagined observations take too much memory, V is streamed.
        """
        before, n = self.explained, len(self.mean)
        size = max(1, _SLAB // len(imagined[-1].at))
        slabs = [slice(low, low + size) for low in range(0, max(1, n), size)]
        xp = namespace(before.squares)
        fits = 8 * sum(len(look.at) for look in imagined) * n <= before.room
        if fits or self.evidence is None or not isinstance(self.prior, KernelMatrix):
            explained = before.also(xp.concat([rows(slab) for slab in slabs], axis=1))
        else:
            seen = self.evidence.with_imagined(imagined, self.noise)
            kernel, at = self.prior.kernel, self.prior.at
            layer = StreamedRows(kernel, like(seen.at, at), seen.factor, at, before.memory)
            squares = xp.concat([sum_of_squares(rows(slab)) for slab in slabs])
            explained = replace(before, layers=(layer,), squares=before.squares + squares)
        return replace(self, explained=explained, imagined=imagined)

    def doubted(self, factor: float) -> Gaussian:
        r"""The same mean, and the covariance of a sceptic: length-scales divided by ``factor``.

        The sceptic has the same observations, imagined ones included. Where there is no kernel
        with length-scales, the deviations are those of this Gaussian times ``factor``. Cost m³/3,
        and n m² as for a belief.
        """
        if self.evidence is None or not isinstance(self.prior, KernelMatrix):
            bare = np.zeros((0, len(self.mean)))
            return Gaussian(Scaled(self, factor**2), self.mean, held_rows(bare), self.noise)
        seen, at = self.evidence.with_imagined(self.imagined, self.noise), self.prior.at
        kernel = self.prior.kernel
        kernel = replace(kernel, lengths=tuple(length / factor for length in kernel.lengths))  # type: ignore[type-var]
        root = cholesky(plus_diagonal(kernel(seen.at, seen.at), seen.noise))
        memory = self.explained.memory
        survey = StreamedRows(kernel, like(seen.at, at), root, at, memory).survey(seen.weights)
        return Gaussian(
            KernelMatrix(kernel, at),
            self.mean,
            ExplainedCovariance((survey.layer,), survey.squares, memory),
            self.noise,
            replace(seen, factor=root),
        )

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """Joint draws (draws, n): exact for n <= 4000, cost n³/3; pathwise (Matheron's rule) above.

        A pathwise draw uses random Fourier features. With Matérn kernels and next to no noise
        their error shows near the data: at σ² = 1e-6 standard deviations were off by a third.
        """
        return np.concatenate(list(self.each_draw(rng, draws)))

    def each_draw(self, rng: np.random.Generator, draws: int) -> Iterator[Array]:
        """The draws of `draw`, as many at a time as fit in the memory.

        All random numbers are drawn first, so the draws do not depend on the memory.
        """
        n, seen = len(self.mean), self.evidence
        if seen is None or n <= _EXACT_DRAW or not isinstance(self.prior, RandomFunction):
            every = np.arange(n)
            # Rounding in K - VᵀV is relative to K, however little of it is left.
            prior = float(to_numpy(self.prior.diagonal).mean())
            factor = cholesky(to_numpy(self.block(every, every)), prior)
            yield self.mean + rng.standard_normal((draws, n)) @ factor.T
            return
        if self.imagined:
            seen = seen.with_imagined(self.imagined, self.noise)
        here, there = self.prior.paths(rng, draws, seen.at)
        noisy = there + rng.standard_normal(there.shape) * np.sqrt(seen.noise)
        weights = solve_lower(seen.factor, noisy.T)
        size = max(1, self.explained.room // (16 * n))  # draws at a time: half the room holds them
        for low in range(0, draws, size):
            some = slice(low, low + size)
            wrong = self.explained.product(
                slice(None), like(weights[:, some], self.explained.squares)
            )
            yield self.mean + here(some) - to_numpy(wrong).T


class Scored(Protocol):
    """What a policy says of one member: scores (n,), and the width of the band behind them."""

    @property
    def scores(self) -> Array:
        """Scores of the candidates."""
        ...

    @property
    def width(self) -> float:
        """√β."""
        ...


@dataclass(frozen=True)
class Belief:
    """The joint posterior of f at n candidates: the only thing a strategy sees.

    With sampled hyper-parameters it is an equally weighted mixture of Gaussians (``parts``); a
    policy scores each of the ``members`` and averages. Usually there is one.
    """

    at: Array  # (n, d)
    parts: tuple[Gaussian, ...]
    best: float  # largest value observed so far
    round: int = 1  # the paper's t: batches asked for, this one included
    looks: int = 0  # number of observations, pending ones included
    told: tuple[Array, Array] | None = None  # mean and standard deviation where values are known
    shortlisted_from: int | None = None  # candidates in all, where these are the best of more
    resolution: Array | None = None  # (d,): candidates closer than this in every column are copies
    levels: tuple[slice, ...] = ()  # columns of each parameter that has levels or options
    absent_at: Array | None = None  # (d,): coordinates of absent parameters; nan: always present
    seen_at: Array | None = None  # (m, d): points whose values are known
    under_way: Array | None = None  # (p, d): points asked for whose values are not known yet
    awaited: Array | None = None  # (p,): the mean of f there
    # (n,): probability that a candidate counts at all, to choose by as a share of the largest;
    # None: 1.
    weight: Array | None = None

    @staticmethod
    def dense(
        at: Array, mean: Sequence[float] | Array, cov: Array, noise: float, best: float = 0.0
    ) -> Belief:
        """A belief from a mean (n,) and a covariance matrix (n, n), as of a model of one's own.

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
        """The number of candidates before any shortlist was made."""
        return len(self) if self.shortlisted_from is None else self.shortlisted_from

    @property
    def members(self) -> tuple[Belief, ...]:
        """One belief per Gaussian of the mixture; itself if there is one."""
        if len(self.parts) == 1:
            return (self,)
        return tuple(replace(self, parts=(part,)) for part in self.parts)

    def combined(self, each: Sequence[Scored]) -> Array:
        """The score of each candidate, (n,), from what a policy says of the members: their mean."""
        return np.asarray(np.mean([one.scores for one in each], axis=0))

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
        """σ², the variance of one future observation, averaged over the members."""
        return float(np.mean([part.noise for part in self.parts]))

    def columns(self, indices: Sequence[int] | Indices) -> Array:
        """Columns (n, len(indices)) of the posterior covariance, on the host."""
        cols = np.asarray(indices, dtype=np.intp)
        within = np.mean([to_numpy(part.columns(cols)) for part in self.parts], axis=0)
        if len(self.parts) == 1:
            return np.asarray(within)
        spread = np.array([part.mean - self.mean for part in self.parts])
        return np.asarray(within + spread.T @ spread[:, cols] / len(self.parts))

    def on(self, indices: Sequence[int] | Indices) -> Self:
        """The belief about a subset of the candidates."""
        keep = np.asarray(indices, dtype=np.intp)
        parts = tuple(part.on(keep) for part in self.parts)
        return replace(self, at=self.at[keep], parts=parts, weight=self._weight_on(keep))

    def after_looking_at(
        self, indices: Sequence[int] | Indices, on: Sequence[int] | Indices | None = None
    ) -> Self:
        """The belief after future observations of these candidates, whose values are unknown.

        Only the covariance changes, and it does not depend on the values, so the next point of a
        batch can be chosen before the last is evaluated. With ``on``, the belief about a subset.
        """
        cols = np.asarray(indices, dtype=np.intp)
        keep = None if on is None else np.asarray(on, dtype=np.intp)
        parts = tuple(part.after_looking_at(cols, self.at[cols], keep) for part in self.parts)
        if keep is None:
            return replace(self, parts=parts)
        return replace(self, at=self.at[keep], parts=parts, weight=self._weight_on(keep))

    def doubted(self, factor: float) -> Self:
        """Return a sceptic's belief: the same data, length-scales shorter by ``factor``.

        A fit that has seen one wide bump is sure of what lies between its points; the sceptic is
        not (Berkenkamp, Schoellig & Krause 2019).
        """
        return replace(self, parts=tuple(part.doubted(factor) for part in self.parts))

    def _weight_on(self, keep: Indices) -> Array | None:
        return None if self.weight is None else self.weight[keep]

    def copies_of(self, points: Array) -> Mask:
        """Which candidates lie within the resolution of one of the points (m, d), (n,)."""
        if self.resolution is None:
            return np.zeros(len(self), dtype=bool)
        return close_to(to_numpy(self.at), to_numpy(points), self.resolution)

    def highest_lower(self, width: float) -> float:
        """The largest μ - width·σ among the candidates and the observed points."""
        return self.highest_upper(-width)

    def highest_upper(self, width: float) -> float:
        """The largest μ + width·σ among the candidates and the observed points."""
        known = [(self.mean, self.std), *([] if self.told is None else [self.told])]
        return max(float((mean + width * std).max()) for mean, std in known)

    def information(self) -> Information:
        """The kernel K_{t,1} = I + Σ/σ² of the DPP (Algorithm 2, MATH 0.6), read by parts."""
        return Information(self.parts, tuple(part.noise for part in self.parts))

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """Joint posterior draws (draws, n), shared evenly among the members."""
        if len(self.parts) == 1:
            return self.parts[0].draw(rng, draws)
        # The member of each row is random, so that fewer draws than members favour none of them.
        owner = rng.permutation(len(self.parts))[np.arange(draws) % len(self.parts)]
        drawn = np.empty((draws, len(self)))
        for i, part in enumerate(self.parts):
            mine = np.flatnonzero(owner == i)
            if len(mine):
                drawn[mine] = part.draw(rng, len(mine))
        return drawn[rng.permutation(draws)]

    def each_draw(self, rng: np.random.Generator, draws: int) -> Iterator[Array]:
        """The draws of `draw` one by one, (n,) each; with one member they are not all held."""
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


@dataclass(frozen=True)
class Goal:
    """What a belief about several goals knows of one of them."""

    name: str
    size: int  # how many of the parts are about it
    unit: Callable[[Array], Array]  # values of its belief in the units of the front
    best: float  # largest value observed, in units of its belief
    told: tuple[Array, Array] | None = None  # mean and standard deviation where values are known


@dataclass(frozen=True)
class Beliefs(Belief):
    """Beliefs about several goals at the same candidates, and the front of what is known.

    As a `Belief` it has the parts of all goals, goal by goal, so the kernel of a DPP is the mean of
    the goals' I + Σ/σ², and an observation tells about all of them. It has no one mean. What a
    policy's bounds μ + wσ are worth together is what they add to the hypervolume of the front
    (Ponweiser et al. 2008); with one goal that orders candidates as the bounds do.
    """

    goals: tuple[Goal, ...] = ()
    known: bool = True  # whether a point is known that keeps all limits
    front: Front = field(default_factory=lambda: Front(np.zeros((0, 1)), np.zeros(1)))

    @property
    def each(self) -> tuple[Belief, ...]:
        """The belief about each goal."""
        plain = Belief(self.at, (), np.nan, self.round, self.looks, weight=self.weight)
        plain = replace(plain, shortlisted_from=self.shortlisted_from)
        found, first = [], 0
        for goal in self.goals:
            parts = self.parts[first : first + goal.size]
            found.append(replace(plain, parts=parts, best=goal.best, told=goal.told))
            first += goal.size
        return tuple(found)

    @property
    def members(self) -> tuple[Belief, ...]:
        """The members of each goal's belief, goal by goal."""
        return tuple(member for belief in self.each for member in belief.members)

    def combined(self, each: Sequence[Scored]) -> Array:
        """The gains of bounds as wide as the members' are: their scores are of one goal each."""
        return self.gains([one.width for one in each])

    def gains(self, widths: Sequence[float]) -> Array:
        """What the bounds μ + wσ add to the hypervolume, (n,); below zero where they add nothing.

        The widths w are given by member.
        """
        return self.front.scores(self.bounds(widths))

    def weighed(self, gains: Array) -> Array:
        """Gains (n,), of which nothing is left where a candidate does not count.

        Until a known point counts, to find one comes first: log p, and gains between those alike.
        """
        if self.weight is None:
            return gains
        if self.known:
            return np.where(gains > 0.0, self.weight * gains, gains - (1.0 - self.weight))
        return np.log(np.maximum(self.weight, _TINY)) + gains / (1.0 + np.abs(gains))

    def bounds(self, widths: Sequence[float]) -> Array:
        """μ + wσ of every goal in the units of the front, (n, m), w being given by member."""
        bounds, first = [], 0
        for goal, belief in zip(self.goals, self.each, strict=True):
            some = zip(belief.members, widths[first : first + goal.size], strict=True)
            upper = np.mean([member.mean + width * member.std for member, width in some], axis=0)
            bounds.append(goal.unit(upper))
            first += goal.size
        return np.column_stack(bounds)

    def after_looking_at(
        self, indices: Sequence[int] | Indices, on: Sequence[int] | Indices | None = None
    ) -> Self:
        """The beliefs after future observations; the means there join the front.

        Those of candidates that hardly count do not.
        """
        seen = super().after_looking_at(indices, on)
        cols = np.asarray(indices, dtype=np.intp)
        counts = cols if self.weight is None else cols[self.weight[cols] >= 0.5]
        means = self.on(counts).bounds([0.0] * len(self.parts))
        return replace(seen, front=self.front.with_values(means, len(cols)))

    def each_draw(self, rng: np.random.Generator, draws: int) -> Iterator[Array]:
        """What joint draws of all goals add to the hypervolume, (n,) each."""
        drawn = [belief.draw(rng, draws) for belief in self.each]
        for rows in zip(*drawn, strict=True):
            values = [goal.unit(row) for goal, row in zip(self.goals, rows, strict=True)]
            yield self.front.scores(np.column_stack(values))

    def draw(self, rng: np.random.Generator, draws: int) -> Array:
        """The draws of `each_draw`, (draws, n)."""
        return np.array(list(self.each_draw(rng, draws)))

    @cached_property
    def mean(self) -> Array:
        """Raise: every goal has its own."""
        return self._no_single("mean")

    @cached_property
    def var(self) -> Array:
        """Raise: every goal has its own."""
        return self._no_single("variance")

    @property
    def slope(self) -> float:
        """Raise: every goal has its own."""
        return self._no_single("slope")

    def _no_single(self, what: str) -> NoReturn:
        names = ", ".join(goal.name for goal in self.goals)
        raise StrategyError(
            f"this strategy reads the {what} of one goal, and there are several ({names}). Use "
            "another: auto, a DPP strategy, bucb or thompson; or read belief.each."
        )


def _guarded(array: Array) -> Array:
    """A read-only view, so that a strategy cannot change a belief."""
    view = array.view()
    view.flags.writeable = False
    return view
